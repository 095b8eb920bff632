"""Signing: from an operator's definitions to the bundle that devices check."""

from collections.abc import Iterable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.contract import (
    SIGNATURE_CONTEXT,
    Bundle,
    Metric,
    SealingKey,
    parse_metric,
)
from hubbub.errors import InvalidContract, PrivacyNotProved
from hubbub.exact import Epsilon
from hubbub.limits import MAX_CHARGE_PER_REPORT
from hubbub.mechanisms import MECHANISMS, Mechanism, most_accurate
from hubbub.v1 import contract_pb2
from hubbub_aggregator.definitions import (
    Definitions,
    MetricDefinition,
    OnceDefinition,
    PeriodicDefinition,
)

AUTO: Final = "auto"


class ChangedDefinition(Exception):
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
        contract = _message(definition, now, None).SerializeToString(deterministic=True)
        parse_metric(contract)
        return contract
    before = contract_pb2.Metric.FromString(known.contract)
    mechanism = known.mechanism if definition.mechanism == AUTO else None
    after = _message(definition, before.schedule.starts, mechanism)
    if after.SerializeToString(deterministic=True) != known.contract:
        raise ChangedDefinition(definition.name, _differing(before, after))
    return known.contract


def _differing(before: contract_pb2.Metric, after: contract_pb2.Metric) -> list[str]:
    """What differs, by the keys that metrics.toml has for it."""
    keys = [
        key
        for key in ("question", "source", "epsilon", "schedule")
        if getattr(before, key) != getattr(after, key)
    ]
    keys += [
        key
        for key in ("values", "other", "absent")
        if getattr(before.domain, key) != getattr(after.domain, key)
    ]
    if before.WhichOneof("mechanism") != after.WhichOneof("mechanism"):
        keys.append("mechanism")
    return keys


def _message(
    definition: MetricDefinition, default_start: int, mechanism: Mechanism | None
) -> contract_pb2.Metric:
    """Build the contract; with `mechanism` given, "auto" is settled already."""
    try:
        epsilon = Epsilon.parse(definition.epsilon)
    except ValueError as error:
        raise InvalidContract(definition.name, "epsilon", str(error)) from None
    if epsilon.charge > MAX_CHARGE_PER_REPORT:
        raise PrivacyNotProved(
            definition.name, f"ε = {epsilon.text} is above 8, the most a report may cost"
        )
    message = contract_pb2.Metric(
        name=definition.name,
        question=definition.question,
        source=definition.source,
        epsilon=epsilon.text,
        domain=contract_pb2.Domain(
            values=definition.values, other=definition.other, absent=definition.absent
        ),
        schedule=_schedule(definition, default_start),
    )
    k = len(definition.values) + bool(definition.other) + bool(definition.absent)
    if mechanism is None:
        # A domain of one value is refused with the other faults, when the bytes are parsed.
        mechanism = _calibrate(definition.mechanism, max(k, 2), epsilon)
    parameters = getattr(message, mechanism.name.replace("-", "_"))
    for name, threshold in mechanism.thresholds.items():
        setattr(parameters, name, threshold)
    return message


def _calibrate(name: str, k: int, epsilon: Epsilon) -> Mechanism:
    return most_accurate(k, epsilon) if name == AUTO else MECHANISMS[name].calibrate(k, epsilon)


def _schedule(definition: MetricDefinition, default_start: int) -> contract_pb2.Schedule:
    match definition.schedule:
        case PeriodicDefinition() as periodic:
            return contract_pb2.Schedule(
                starts=default_start if periodic.starts is None else periodic.starts,
                periodic=contract_pb2.Periodic(
                    every=periodic.every,
                    rounds=periodic.rounds,
                    grace=periodic.every if periodic.grace is None else periodic.grace,
                ),
            )
        case OnceDefinition() as once:
            return contract_pb2.Schedule(
                starts=default_start if once.starts is None else once.starts,
                once=contract_pb2.Once(ends=once.ends or 0),
            )
        case _:
            return contract_pb2.Schedule(starts=default_start, once=contract_pb2.Once())
