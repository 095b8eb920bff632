"""Adopting a bundle: whose it is, whether it is newer, and what it may not change.

A device takes bundles from the app it lives in, and over the network. The app's own may stand
behind what was fetched since; neither may go back behind itself.
"""

import sqlite3
from collections.abc import Sequence

from hubbub import rows
from hubbub.bundle import Bundle
from hubbub.digest import sha256
from hubbub.errors import ChangedContract, ForeignOperator, LowerRevision
from hubbub.rows import BundleRecord


def adopt(
    connection: sqlite3.Connection,
    bundle: Bundle,
    operator_keys: Sequence[str],
    *,
    now: int,
    fetched: bool,
) -> bytes:
    """Take a verified bundle, inside a transaction; return the SignedBundle that is in force.

    Raises ForeignOperator, LowerRevision or ChangedContract.
    """
    _require_known(connection, operator_keys, bundle)
    known = rows.bundles(connection, "WHERE operator = ? ORDER BY revision", (bundle.operator,))
    newest = known[-1] if known else None
    offered = _record(bundle, known, now=now, fetched=fetched)
    _bind_contracts(connection, bundle)
    if newest is not None and newest.revision > offered.revision:
        rows.write(connection, "bundle", offered._replace(signed=None))
        return newest.signed or b""
    if newest is not None and newest.revision < offered.revision:
        rows.write(connection, "bundle", newest._replace(signed=None))
    if offered != newest:
        rows.write(connection, "bundle", offered)
    return bundle.signed


def _require_known(
    connection: sqlite3.Connection, operator_keys: Sequence[str], bundle: Bundle
) -> None:
    for (operator,) in connection.execute("SELECT DISTINCT operator FROM bundle"):
        if operator not in operator_keys:
            raise ForeignOperator(operator, bundle.operator)


def _record(
    bundle: Bundle, known: Sequence[BundleRecord], *, now: int, fetched: bool
) -> BundleRecord:
    """The row of the bundle that is offered. Raises LowerRevision."""
    fingerprint = sha256(bundle.signed)
    earlier = {record.revision: record for record in known}.get(bundle.revision)
    if earlier is not None and earlier.fingerprint != fingerprint:
        raise LowerRevision(earlier.revision, bundle.revision)
    # What was fetched never goes back; the app's own never behind what it handed in before.
    behind = [record.revision for record in known if fetched or not record.fetched]
    if behind and bundle.revision < max(behind):
        raise LowerRevision(max(behind), bundle.revision)
    return BundleRecord(
        operator=bundle.operator,
        revision=bundle.revision,
        fingerprint=fingerprint,
        adopted_at=now if earlier is None else earlier.adopted_at,
        fetched=fetched and (earlier is None or earlier.fetched),
        signed=bundle.signed,
    )


def _bind_contracts(connection: sqlite3.Connection, bundle: Bundle) -> None:
    """Bind each metric's name to its contract, for ever. Raises ChangedContract."""
    contracts = dict(connection.execute("SELECT metric, digest FROM contract"))
    for metric in bundle.metrics.values():
        digest = contracts.get(metric.name)
        if digest is None:
            rows.write(connection, "contract", (metric.name, metric.digest, metric.contract))
        elif digest != metric.digest:
            raise ChangedContract(metric.name, digest, metric.digest)
