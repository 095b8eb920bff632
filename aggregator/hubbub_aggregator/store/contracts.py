"""What bundles have said: who the operator is, and what each metric's name means for ever."""

from sqlalchemy import Connection, select

from hubbub.bundle import Bundle
from hubbub.contract import Metric, parse_metric
from hubbub.errors import BundleError, ChangedContract, ForeignOperator, LowerRevision
from hubbub_aggregator.store import schema
from hubbub_aggregator.store.errors import StoreDamaged
from hubbub_aggregator.store.serial import one_at_a_time
from hubbub_aggregator.store.statements import insert, upsert


def adopt(connection: Connection, bundle: Bundle, now: float) -> None:
    """Put a verified bundle in force.

    Raises ForeignOperator, LowerRevision or ChangedContract; the transaction is then void.
    """
    # Two replicas that start with two revisions: the second one to look must see the first's.
    one_at_a_time(connection)
    known = connection.execute(select(schema.bundle)).one_or_none()
    if known is not None:
        if known.operator != bundle.operator:
            raise ForeignOperator(known.operator, bundle.operator)
        same_revision = bundle.revision == known.revision
        if bundle.revision < known.revision or (same_revision and bundle.signed != known.signed):
            raise LowerRevision(known.revision, bundle.revision)
    for metric in bundle.metrics.values():
        _remember(connection, metric)
    connection.execute(
        upsert(connection.dialect, schema.bundle),
        {"operator": bundle.operator, "revision": bundle.revision, "signed": bundle.signed},
    )
    connection.execute(
        insert(connection.dialect, schema.in_force).on_conflict_do_nothing(),
        {"revision": bundle.revision, "since": now, "or_earlier": False},
    )


def _remember(connection: Connection, metric: Metric) -> None:
    table, digest = schema.contract, metric.digest
    connection.execute(
        insert(connection.dialect, table).on_conflict_do_nothing(),
        {"digest": digest, "name": metric.name, "contract": metric.contract},
    )
    known = connection.execute(select(table.c.digest).where(table.c.name == metric.name))
    known_digest: bytes = known.scalar_one()
    if known_digest != digest:
        raise ChangedContract(metric.name, known_digest, digest)


def metrics(connection: Connection, location: str) -> list[Metric]:
    """Every metric that any bundle has listed, by name. Raises StoreDamaged."""
    return [
        _metric(row.name, row.digest, row.contract, location)
        for row in connection.execute(select(schema.contract).order_by(schema.contract.c.name))
    ]


def _metric(name: str, digest: bytes, contract: bytes, location: str) -> Metric:
    try:
        metric = parse_metric(contract)
    except BundleError as error:
        raise StoreDamaged(location, f"holds a contract that no device accepts: {error}") from error
    if (metric.name, metric.digest) != (name, digest):
        raise StoreDamaged(location, f"holds another contract than it says for metric {name!r}")
    return metric
