"""What reading gives: estimates, and what they rest on."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.arrow import AnalysisMissing, arrow_table
from hubbub_aggregator.records import as_pooled_report, as_report, rows, state_name

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True, slots=True)
class Epsilon:
    """Decimal text: what a report is charged, and the exact worst case of its integers."""

    declared: str
    realised: str


@dataclass(frozen=True, slots=True)
class Round:
    """A round that has begun."""

    number: int
    state: str
    """"not begun", "open" or "closed"."""
    n: int
    """Reports in its newest snapshot; 0: it has none."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What an aggregator says of a metric."""

    name: str
    digest: str
    """SHA-256 of its contract, 64 hexadecimal digits."""
    question: str
    source: str
    mechanism: str
    epsilon: Epsilon
    values: tuple[str, ...]
    listed: bool
    """Whether the bundle in force still lists it."""
    rounds: tuple[Round, ...]
    """Rounds that have begun, oldest first; of many, the newest 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """Every value's figures, and what they have in common."""

    metric: str
    digest: str
    """SHA-256 of the contract, 64 hexadecimal digits."""
    mechanism: str
    epsilon: Epsilon
    kind: str
    """Which estimator: "unbiased"."""
    target: str
    level: float
    """Probability that an interval covers."""
    report: dict[str, Any] = field(repr=False)
    """All of it, as `hubbub estimate --format json` prints it."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """A row for each value, with the columns of `hubbub estimate --format csv`."""
        return rows(self.report)

    def to_arrow(self) -> "pyarrow.Table":
        """The same rows as an Arrow table with types. Raises AnalysisMissing."""
        return arrow_table(self.report)

    def to_pandas(self) -> "pandas.DataFrame":
        """The same rows as a pandas DataFrame. Raises AnalysisMissing."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError:
            raise AnalysisMissing("pandas") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates(_Figures):
    """One snapshot of one round, and what its figures rest on."""

    round: int
    state: str
    """Where the round stood: "not begun", "open" or "closed"."""
    n: int
    """Reports in the snapshot; 0: there is none, and no figures."""
    as_of: datetime | None
    """When the snapshot was taken, UTC; None: there is none."""
    publish_step: int
    """New reports that a snapshot waits for while the round is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledEstimates(_Figures):
    """The snapshots of several rounds together, and what their figures rest on."""

    first_round: int
    last_round: int
    rounds: tuple[Round, ...]
    """Those of them that have a snapshot, in their order."""
    n: int
    """Reports in all these snapshots; 0: there are none, and no figures."""
    at_most: bool
    """Whether errors and intervals are the largest that are possible, since reports of one device
    vary together and nobody knows who answered which rounds; else they are what they are."""
    as_of: datetime | None
    """When the newest snapshot was taken, UTC; None: there is none."""


def metric_of(summary: estimate_pb2.MetricSummary) -> Metric:
    return Metric(
        name=summary.name,
        digest=summary.digest.hex(),
        question=summary.question,
        source=summary.source,
        mechanism=summary.mechanism,
        epsilon=Epsilon(summary.epsilon.declared, summary.epsilon.realised),
        values=tuple(summary.values),
        listed=summary.listed,
        rounds=_rounds(summary.rounds),
    )


def estimates_of(answer: estimate_pb2.Estimates) -> Estimates:
    report = as_report(answer)
    return Estimates(
        round=answer.round,
        state=state_name(answer.state),
        n=answer.n,
        publish_step=answer.publish_step,
        **_shared(report),
    )


def pooled_of(answer: estimate_pb2.PoolResponse) -> PooledEstimates:
    report = as_pooled_report(answer)
    return PooledEstimates(
        first_round=answer.first,
        last_round=answer.last,
        rounds=_rounds(answer.rounds),
        n=answer.n,
        at_most=answer.at_most,
        **_shared(report),
    )


def _shared(report: dict[str, Any]) -> dict[str, Any]:
    """What both kinds of answers say, by its names."""
    same = {name: report[name] for name in ("metric", "digest", "mechanism", "kind")}
    return {
        **same,
        "epsilon": Epsilon(**report["epsilon"]),
        "target": report["target"],
        "level": report["level"],
        "as_of": datetime.fromisoformat(report["as_of"]) if report["n"] else None,
        "report": report,
    }


def _rounds(summaries: Iterable[estimate_pb2.RoundSummary]) -> tuple[Round, ...]:
    return tuple(Round(known.round, state_name(known.state), known.n) for known in summaries)
