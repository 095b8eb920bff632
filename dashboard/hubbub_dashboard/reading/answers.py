"""What the private listener answers, as plain frozen data. Pure."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.records import target_name


class Target(Enum):
    """Whose shares they are."""

    RESPONDENTS = "respondents"
    POPULATION = "population"


class RoundState(Enum):
    """Where a round stands."""

    NOT_OPEN = estimate_pb2.ROUND_STATE_NOT_OPEN
    OPEN = estimate_pb2.ROUND_STATE_OPEN
    CLOSED = estimate_pb2.ROUND_STATE_CLOSED


@dataclass(frozen=True, slots=True)
class Epsilon:
    """Decimal text: what a report is charged, and the exact worst case of its integers."""

    declared: str
    realised: str


@dataclass(frozen=True, slots=True)
class Round:
    """A round that has opened."""

    number: int
    state: RoundState
    n: int
    """Reports in its newest snapshot; 0: it has none yet."""


# Before a metric's first round opens, this stands for it.
_UNOPENED: Final = Round(0, RoundState.NOT_OPEN, 0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the catalogue."""

    name: str
    question: str
    digest: bytes
    """Names its contract."""
    values: tuple[str, ...]
    """The domain, in its order; empty if it is open."""
    rounds: tuple[Round, ...]
    """Rounds that have opened, oldest first; of many, the newest."""
    source: str = ""
    """The fact on a device that one budget protects."""

    @property
    def newest(self) -> Round:
        """The newest round that has a snapshot, else the newest that has opened."""
        published = [round_ for round_ in self.rounds if round_.n]
        return (published or self.rounds or (_UNOPENED,))[-1]


@dataclass(frozen=True, slots=True)
class Value:
    """One value's figures: shares (1 = everybody), never clipped."""

    label: str
    count: int
    estimate: float
    std_error: float
    low: float
    high: float
    simultaneous_low: float
    simultaneous_high: float
    rank_low: int
    rank_high: int
    influence: float
    """How far one hostile report moves the estimate."""
    consistent: float
    """The nearest share that is one of a whole: none below zero, all together everybody."""
    found: bool
    """Whether it may be called present: while the round is open, however often one looks."""


# Compared and hashed by identity: what is worked out from a snapshot is kept with it, and
# hashing 65,536 values at every look would cost more than working it out again.
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Estimates:
    """One snapshot of one round."""

    metric: str
    digest: bytes
    round: int
    state: RoundState
    n: int
    """Reports in it; 0: there is no snapshot."""
    mechanism: str
    epsilon: Epsilon
    level: float
    """Probability that an interval covers."""
    as_of: float
    """Seconds since 1970-01-01 UTC."""
    publish_step: int
    values: tuple[Value, ...]
    """In the domain's order; empty if n = 0, or if the domain is open and lists none."""
    plain: int = 0
    """How many of the reports came unsealed."""
    target: Target = Target.RESPONDENTS
    message: estimate_pb2.Estimates = field(default_factory=estimate_pb2.Estimates, repr=False)
    """All of it, as it came."""


# By identity, as snapshots.
@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """A share on the left less one on the right, never clipped."""

    left: str
    right: str
    """The values' labels."""
    estimate: float
    std_error: float
    low: float
    high: float
    """Interval for this difference alone."""
    simultaneous_low: float
    simultaneous_high: float
    """Intervals that cover all differences of the comparison at once."""
    p_value: float
    adjusted_p_value: float
    distinguishable: bool
    """Whether the simultaneous interval excludes 0."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is on one side of a comparison: a snapshot of one round."""

    metric: str
    round: int
    state: RoundState
    n: int
    """Reports in it; 0: there is no snapshot, and no difference."""
    as_of: float


# By identity, as snapshots.
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Comparison:
    """What differs between two snapshots, or within one."""

    left: Side
    right: Side
    target: Target
    level: float
    differences: tuple[Difference, ...]
    """Empty if either side has no snapshot."""
    message: estimate_pb2.CompareResponse = field(
        default_factory=estimate_pb2.CompareResponse, repr=False
    )
    """All of it, as it came."""

    @property
    def final(self) -> bool:
        """Whether both rounds are closed, so that nothing in it changes any more."""
        return self.left.state is self.right.state is RoundState.CLOSED


@dataclass(frozen=True, slots=True)
class RoundOf:
    """A round of a metric, as the catalogue has both."""

    metric: Metric
    round: Round


def estimates_of(message: estimate_pb2.Estimates) -> Estimates:
    """Read a GetEstimates answer."""
    return Estimates(
        metric=message.metric,
        digest=message.digest,
        round=message.round,
        state=RoundState(message.state),
        n=message.n,
        mechanism=message.mechanism,
        epsilon=Epsilon(message.epsilon.declared, message.epsilon.realised),
        level=message.level,
        as_of=message.as_of,
        publish_step=message.publish_step,
        values=tuple(map(_value, message.values)) if message.n else (),
        plain=message.plain,
        target=Target(target_name(message.target)),
        message=message,
    )


def _value(message: estimate_pb2.ValueEstimate) -> Value:
    return Value(
        label=message.value,
        count=message.count,
        estimate=message.estimate,
        std_error=message.std_error,
        low=message.low,
        high=message.high,
        simultaneous_low=message.simultaneous_low,
        simultaneous_high=message.simultaneous_high,
        rank_low=message.rank_low,
        rank_high=message.rank_high,
        influence=message.influence,
        consistent=message.consistent,
        found=message.found,
    )


def comparison_of(message: estimate_pb2.CompareResponse) -> Comparison:
    """Read a Compare answer."""
    left, right = _side(message.left), _side(message.right)
    return Comparison(
        left,
        right,
        Target(target_name(message.target)),
        message.level,
        tuple(map(_difference, message.differences)) if left.n and right.n else (),
        message,
    )


def _side(message: estimate_pb2.Provenance) -> Side:
    return Side(message.metric, message.round, RoundState(message.state), message.n, message.as_of)


def _difference(message: estimate_pb2.Difference) -> Difference:
    return Difference(
        left=message.values.left,
        right=message.values.right,
        estimate=message.estimate,
        std_error=message.std_error,
        low=message.low,
        high=message.high,
        simultaneous_low=message.simultaneous_low,
        simultaneous_high=message.simultaneous_high,
        p_value=message.p_value,
        adjusted_p_value=message.adjusted_p_value,
        distinguishable=message.distinguishable,
    )
