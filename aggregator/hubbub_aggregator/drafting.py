"""One metric's contract, from its definition: what is written there, and what is chosen for it."""

from typing import Final

from hubbub.errors import InvalidContract, PrivacyNotProved
from hubbub.exact import Epsilon
from hubbub.limits import MAX_CHARGE_PER_REPORT, MAX_VALUES
from hubbub.mechanisms import MECHANISMS, MEMOISED, Mechanism
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.v1 import contract_pb2
from hubbub_aggregator.definitions import MetricDefinition, OnceDefinition, PeriodicDefinition
from hubbub_aggregator.planning.choice import (
    OPEN_MECHANISM,
    Aim,
    NothingFits,
    best,
    chosen,
    explain,
    most_accurate,
    ranked,
)
from hubbub_aggregator.planning.memoised import (
    Memo,
    NoMemo,
    best_memoised,
    explain_memoised,
    ranked_memoised,
)

AUTO: Final = "auto"


def draft(
    definition: MetricDefinition, default_start: int, mechanism: Mechanism | None
) -> contract_pb2.Metric:
    """The contract; `mechanism` is given if it is settled already.

    What the contract itself forbids is left for `parse_metric` to refuse, unless nothing can
    be chosen then. Raises InvalidContract or PrivacyNotProved.
    """
    epsilon, memo = _epsilon(definition, "epsilon", definition.epsilon), _memo(definition)
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
        permanent=memo.permanent.text if memo else "",
    )
    if mechanism is None:
        mechanism = _choose(definition, epsilon, memo)
    parameters = getattr(message, mechanism.name.replace("-", "_"))
    for name, number in mechanism.parameters.items():
        setattr(parameters, name, number)
    return message


def reason(definition: MetricDefinition) -> str:
    """Why "auto" picks what it does for a definition that was signed: a sentence for a person."""
    k, epsilon, aim = _size(definition), Epsilon.parse(definition.epsilon), _aim(definition)
    memo = _memo(definition)
    if memo is None:
        return explain(ranked(k, epsilon, aim), aim)
    return explain_memoised(ranked_memoised(k, epsilon, memo, aim), memo, aim)


def _epsilon(definition: MetricDefinition, key: str, text: str) -> Epsilon:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError as error:
        raise InvalidContract(definition.name, key, str(error)) from None
    if epsilon.charge > MAX_CHARGE_PER_REPORT:
        raise PrivacyNotProved(
            definition.name, f"{key} = {epsilon.text} is above 8, the most a report may cost"
        )
    return epsilon


def _memo(definition: MetricDefinition) -> Memo | None:
    if definition.permanent is None:
        return None
    return Memo(_epsilon(definition, "permanent", definition.permanent), definition.cells)


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


def _choose(definition: MetricDefinition, epsilon: Epsilon, memo: Memo | None) -> Mechanism:
    """The mechanism that was asked for, at its best. Raises InvalidContract."""
    name, k, aim = definition.mechanism, _size(definition), _aim(definition)
    if memo is None:
        _require_one_time(definition)
    else:
        _require_memoised(definition, epsilon, memo)
    try:
        if memo is None:
            mechanism = (
                most_accurate(k, epsilon, aim) if name == AUTO else best(name, k, epsilon, aim)
            )
        elif name == AUTO:
            mechanism = ranked_memoised(k, epsilon, memo, aim)[0]
        else:
            mechanism = best_memoised(name, k, epsilon, memo, aim)
    except NothingFits as error:
        raise InvalidContract(
            definition.name, "max_payload_bytes", f"{error}; allow more bytes"
        ) from None
    except NoMemo as error:
        raise InvalidContract(definition.name, "permanent", str(error)) from None
    steered = name == AUTO or chosen(mechanism)
    if definition.expected_share is not None and not steered:
        raise InvalidContract(
            definition.name, "expected_share", f"steers nothing in {name}; leave it out"
        )
    return mechanism


def _require_one_time(definition: MetricDefinition) -> None:
    """Raise InvalidContract unless the mechanism that was named suits a metric with no memo."""
    name = definition.mechanism
    if name in MEMOISED:
        raise InvalidContract(
            definition.name,
            "permanent",
            f"is missing in schedule; {name} needs one, such as "
            f'{{ every = "1d", rounds = 365, permanent = "2" }}',
        )
    if definition.open and name not in (AUTO, OPEN_MECHANISM):
        raise InvalidContract(
            definition.name, "mechanism", f'of an open domain is "{OPEN_MECHANISM}" or "{AUTO}"'
        )
    if definition.open and not definition.retain:
        raise InvalidContract(
            definition.name, "retain", "must be true for an open domain, to be asked about later"
        )


def _require_memoised(definition: MetricDefinition, epsilon: Epsilon, memo: Memo) -> None:
    """Raise InvalidContract unless a memo can answer the metric."""
    if definition.open:
        raise InvalidContract(
            definition.name, "permanent", "is not for an open domain, whose answers nobody lists"
        )
    if definition.mechanism in MECHANISMS:
        names = ", ".join(f'"{name}"' for name in MEMOISED)
        raise InvalidContract(
            definition.name, "mechanism", f'beside permanent is "{AUTO}", {names}'
        )
    # Said by the contract as well, but there is no mechanism to write into one.
    if memo.permanent.charge <= epsilon.charge:
        raise InvalidContract(
            definition.name, "permanent", "must be above epsilon, which one report tells"
        )


def _grace(periodic: PeriodicDefinition) -> int:
    """A series' reports leave within a period after their round: two, so that a device which is
    switched on once in each round still comes in time."""
    series = periodic.join is not None or periodic.permanent is not None
    return (2 if series else 1) * periodic.every


def _schedule(definition: MetricDefinition, default_start: int) -> contract_pb2.Schedule:
    match definition.schedule:
        case PeriodicDefinition() as periodic:
            return contract_pb2.Schedule(
                starts=default_start if periodic.starts is None else periodic.starts,
                periodic=contract_pb2.Periodic(
                    every=periodic.every,
                    rounds=periodic.rounds,
                    grace=_grace(periodic) if periodic.grace is None else periodic.grace,
                    join=periodic.join or 0,
                ),
            )
        case OnceDefinition() as once:
            return contract_pb2.Schedule(
                starts=default_start if once.starts is None else once.starts,
                once=contract_pb2.Once(ends=once.ends or 0),
            )
        case _:
            return contract_pb2.Schedule(starts=default_start, once=contract_pb2.Once())
