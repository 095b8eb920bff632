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
from hubbub.limits import MAX_CHARGE_PER_REPORT, MAX_VALUES
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.v1 import contract_pb2
from hubbub_aggregator.definitions import (
    Definitions,
    MetricDefinition,
    OnceDefinition,
    PeriodicDefinition,
)
from hubbub_aggregator.mistakes import Mistake
from hubbub_aggregator.planning.choice import (
    OPEN_MECHANISM,
    Aim,
    NothingFits,
    best,
    explain,
    most_accurate,
    ranked,
)

AUTO: Final = "auto"


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


def reason(definition: MetricDefinition) -> str:
    """Why "auto" picks what it does for a definition that was signed: a sentence for a person."""
    aim = _aim(definition)
    return explain(ranked(_size(definition), Epsilon.parse(definition.epsilon), aim), aim)


def _contract(definition: MetricDefinition, known: Metric | None, now: int) -> bytes:
    """The metric's bytes: the known ones if the definition still says the same."""
    if known is None:
        contract = _message(definition, now, None).SerializeToString(deterministic=True)
        parse_metric(contract)
        return contract
    before = contract_pb2.Metric.FromString(known.contract)
    # What was chosen once, a mechanism or its parameters, is not chosen again.
    settled = definition.mechanism in (AUTO, known.mechanism.name)
    after = _message(definition, before.schedule.starts, known.mechanism if settled else None)
    if after.SerializeToString(deterministic=True) != known.contract:
        raise ChangedDefinition(definition.name, _differing(before, after))
    limit = definition.max_payload_bytes
    if limit is not None and known.mechanism.payload_size > limit:
        raise ChangedDefinition(definition.name, ["max_payload_bytes"])
    return known.contract


def _differing(before: contract_pb2.Metric, after: contract_pb2.Metric) -> list[str]:
    """What differs, by the keys that metrics.toml has for it."""
    keys = [
        key
        for key in ("question", "source", "epsilon", "schedule", "retain")
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


def _message(
    definition: MetricDefinition, default_start: int, mechanism: Mechanism | None
) -> contract_pb2.Metric:
    """Build the contract; `mechanism` is given if it is settled already."""
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
            values=definition.values,
            other=definition.other,
            absent=definition.absent,
            open=definition.open,
        ),
        schedule=_schedule(definition, default_start),
        retain=definition.retain,
    )
    if mechanism is None:
        mechanism = _choose(definition, epsilon)
    parameters = getattr(message, mechanism.name.replace("-", "_"))
    for name, number in mechanism.parameters.items():
        setattr(parameters, name, number)
    return message


def _size(definition: MetricDefinition) -> int:
    """How many indices the domain has."""
    if definition.open:
        return OPEN_PRIME
    k = len(definition.values) + bool(definition.other) + bool(definition.absent)
    # A domain of one value, or of too many, is refused with the other faults, when the bytes
    # are parsed.
    return min(max(k, 2), MAX_VALUES)


def _aim(definition: MetricDefinition) -> Aim:
    return Aim(definition.expected_share or 0.0, definition.max_payload_bytes)


def _choose(definition: MetricDefinition, epsilon: Epsilon) -> Mechanism:
    """The mechanism that was asked for, at its best. Raises InvalidContract."""
    name, k, aim = definition.mechanism, _size(definition), _aim(definition)
    if definition.open and name not in (AUTO, OPEN_MECHANISM):
        raise InvalidContract(
            definition.name, "mechanism", f'of an open domain is "{OPEN_MECHANISM}" or "{AUTO}"'
        )
    if definition.open and not definition.retain:
        raise InvalidContract(
            definition.name, "retain", "must be true for an open domain, to be asked about later"
        )
    try:
        mechanism = most_accurate(k, epsilon, aim) if name == AUTO else best(name, k, epsilon, aim)
    except NothingFits as error:
        raise InvalidContract(
            definition.name, "max_payload_bytes", f"{error}; allow more bytes"
        ) from None
    steered = name == AUTO or len(mechanism.parameters) > 1
    if definition.expected_share is not None and not steered:
        raise InvalidContract(
            definition.name, "expected_share", f"steers nothing in {name}; leave it out"
        )
    return mechanism


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
