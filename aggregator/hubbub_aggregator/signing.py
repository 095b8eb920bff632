"""Signing: from an operator's definitions to the bundle that devices check."""

from collections.abc import Iterable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundle import SIGNATURE_CONTEXT, Bundle, SealingKey
from hubbub.contract import Metric, parse_metric
from hubbub.v1 import contract_pb2
from hubbub_aggregator.definitions import Definitions, MetricDefinition
from hubbub_aggregator.drafting import AUTO, draft
from hubbub_aggregator.mistakes import Mistake


class ChangedDefinition(Mistake):
    """A known name with another definition than the one devices hold."""

    def __init__(self, metric: str, fields: Iterable[str]) -> None:
        self.metric = metric
        self.fields = tuple(fields)
        super().__init__(
            f"metric {metric!r} is signed already with another definition "
            f"(what differs: {', '.join(self.fields)}); give the changed question a new name"
        )


def sign_definitions(
    definitions: Definitions,
    *,
    operator: Ed25519PrivateKey,
    sealing_keys: Iterable[SealingKey],
    certificate_authority: bytes,
    previous: Bundle | None,
    now: int,
) -> bytes:
    """Return a SignedBundle, one revision above `previous`.

    A metric that `previous` knows keeps its very bytes. `now` (seconds UTC) is when a new
    metric starts unless it says otherwise. Raises InvalidContract or ChangedDefinition.
    """
    bundle = contract_pb2.Bundle(
        revision=previous.revision + 1 if previous else 1,
        endpoint=definitions.endpoint,
        certificate_authority=certificate_authority,
        sealing_keys=[
            contract_pb2.SealingKey(
                key_id=key.key_id,
                suite=contract_pb2.SealingSuite.ValueType(key.suite),
                public_key=key.public_key,
            )
            for key in sealing_keys
        ],
    )
    for definition in definitions.metric:
        known = previous.metrics.get(definition.name) if previous else None
        bundle.metrics.append(_contract(definition, known, now))
    data = bundle.SerializeToString(deterministic=True)
    envelope = contract_pb2.SignedBundle(
        bundle=data, signature=operator.sign(SIGNATURE_CONTEXT + data)
    )
    return envelope.SerializeToString(deterministic=True)


def _contract(definition: MetricDefinition, known: Metric | None, now: int) -> bytes:
    """The metric's bytes: the known ones if the definition still says the same."""
    if known is None:
        contract = draft(definition, now, None).SerializeToString(deterministic=True)
        parse_metric(contract)
        return contract
    before = contract_pb2.Metric.FromString(known.contract)
    # What was chosen once, a mechanism or its parameters, is not chosen again.
    settled = definition.mechanism in (AUTO, known.mechanism.name)
    after = draft(definition, before.schedule.starts, known.mechanism if settled else None)
    if after.SerializeToString(deterministic=True) != known.contract:
        raise ChangedDefinition(definition.name, _differing(before, after))
    limit = definition.max_payload_bytes
    if limit is not None and known.mechanism.payload_size > limit:
        raise ChangedDefinition(definition.name, ["max_payload_bytes"])
    cells = definition.cells
    if cells is not None and known.memoised is not None and known.memoised.rows > cells:
        raise ChangedDefinition(definition.name, ["cells"])
    return known.contract


def _differing(before: contract_pb2.Metric, after: contract_pb2.Metric) -> list[str]:
    """What differs, by the keys that metrics.toml has for it."""
    keys = [
        key
        for key in ("question", "source", "epsilon", "permanent", "schedule", "retain")
        if getattr(before, key) != getattr(after, key)
    ]
    keys += [
        key
        for key in ("values", "other", "absent", "open")
        if getattr(before.domain, key) != getattr(after.domain, key)
    ]
    if before.WhichOneof("mechanism") != after.WhichOneof("mechanism"):
        keys.append("mechanism")
    return keys
