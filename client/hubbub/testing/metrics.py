"""A metric in a line, with a contract such as an operator signs."""

from collections.abc import Sequence
from typing import Final

from hubbub.contract import Metric, parse_metric
from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism, MemoisedRandomisedResponse, RandomisedResponse
from hubbub.v1 import contract_pb2

_QUESTION: Final = "What does this test ask?"


def metric(
    name: str,
    values: Sequence[str],
    *,
    epsilon: str = "1",
    source: str = "",
    question: str = _QUESTION,
    other: str = "",
    absent: str = "",
    starts: int = 0,
    ends: int = 0,
    every: int = 0,
    rounds: int = 1,
    grace: int | None = None,
    join: int = 0,
    permanent: str = "",
) -> Metric:
    """A metric answered by randomised response; from a memo if `permanent` says what a row costs.

    The names are those of metrics.toml, times in seconds UTC. `source`: its own name, if none is
    given. `every`: 0 for one round, from `starts` until `ends`, or for ever if that is 0; else
    there are `rounds` of so many seconds, each with `grace`: as many more, if none is given.

    Raises InvalidContract for what no device accepts, or ValueError for an `epsilon` that is none.
    """
    if every:
        periodic = contract_pb2.Periodic(
            every=every, rounds=rounds, grace=every if grace is None else grace, join=join
        )
        schedule = contract_pb2.Schedule(starts=starts, periodic=periodic)
    else:
        schedule = contract_pb2.Schedule(starts=starts, once=contract_pb2.Once(ends=ends))
    message = contract_pb2.Metric(
        name=name,
        question=question,
        source=source or name,
        epsilon=epsilon,
        domain=contract_pb2.Domain(values=values, other=other, absent=absent),
        schedule=schedule,
        permanent=permanent,
    )
    k = len(values) + bool(other) + bool(absent)
    # With fewer than two values there is no mechanism; the contract's own error says it best.
    mechanism = _mechanism(max(2, k), Epsilon.parse(epsilon), permanent)
    parameters = getattr(message, mechanism.name.replace("-", "_"))
    for field, number in mechanism.parameters.items():
        setattr(parameters, field, number)
    return parse_metric(message.SerializeToString(deterministic=True))


def _mechanism(k: int, epsilon: Epsilon, permanent: str) -> Mechanism:
    if not permanent:
        return RandomisedResponse.calibrate(k, epsilon)
    row = RandomisedResponse.calibrate(k, Epsilon.parse(permanent))
    return MemoisedRandomisedResponse.calibrate(row, epsilon)
