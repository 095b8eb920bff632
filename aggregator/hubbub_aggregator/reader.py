"""Reading estimates from Python: `with hubbub_aggregator.connect() as aggregator: …`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.arrow import AnalysisMissing, arrow_table
from hubbub_aggregator.connection import DEFAULT_ADDRESS, TIMEOUT, calling, open_channel
from hubbub_aggregator.records import TARGETS, as_report, rows, state_name

if TYPE_CHECKING:
    import pandas
    import pyarrow

# A decoding takes up to some 20 seconds of one core. Seconds.
_DECODING_TIMEOUT: Final = 60.0


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
    """Reports in its newest snapshot; 0: it has none yet."""


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


@dataclass(frozen=True, slots=True)
class Estimates:
    """One snapshot of one round, and what its figures rest on."""

    metric: str
    digest: str
    """SHA-256 of the contract, 64 hexadecimal digits."""
    round: int
    state: str
    """Where the round stood: "not begun", "open" or "closed"."""
    n: int
    """Reports in the snapshot; 0: there is none yet, and no figures."""
    mechanism: str
    epsilon: Epsilon
    kind: str
    """Which estimator: "unbiased"."""
    target: str
    level: float
    """Probability that an interval covers."""
    as_of: datetime | None
    """When the snapshot was taken, UTC; None: there is none yet."""
    publish_step: int
    """New reports that a snapshot waits for while the round is open."""
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


class Reader:
    """An open connection to an aggregator's private listener. Safe to use from many threads."""

    def __init__(self, address: str, keys: Path | None) -> None:
        """Raises BadAddress or KeysError. Nobody is asked anything yet."""
        self._address = address
        self._channel = open_channel(address, keys)
        self._stub = estimate_pb2_grpc.EstimateServiceStub(self._channel)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def metrics(self) -> list[Metric]:
        """Every metric that the aggregator knows. Raises CallFailed."""
        with calling(self._address):
            answer = self._stub.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
        return [_metric(summary) for summary in answer.metrics]

    def estimates(
        self,
        name: str,
        round: int | None = None,
        target: str = "respondents",
        level: float = 0.95,
        candidates: Sequence[str] | None = None,
    ) -> Estimates:
        """A metric's newest snapshot, of the newest round that has one unless `round` is given.

        `target`: whose shares, those of the "respondents" or of the "population" that they are
        a sample of; `level`: probability in (0, 1) that an interval covers; `candidates`: the
        texts whose shares are wanted, for an open domain alone. Raises ValueError for arguments
        out of range, CallFailed if the aggregator refuses or does not answer.
        """
        if isinstance(candidates, str):
            raise ValueError(f"candidates are a list of texts, for example [{candidates!r}]")
        if target not in TARGETS:
            raise ValueError(f"the target is respondents or population, not {target!r}")
        if not 0 < level < 1:
            raise ValueError(f"the level is between 0 and 1, for example 0.95, not {level:g}")
        asked = estimate_pb2.GetEstimatesRequest(
            metric=name, round=round, target=TARGETS[target], level=level
        )
        with calling(self._address):
            if candidates is None:
                answer = self._stub.GetEstimates(asked, timeout=TIMEOUT).estimates
            else:
                answer = self._decode(asked, candidates)
        return _estimates(answer)

    def _decode(
        self, asked: estimate_pb2.GetEstimatesRequest, candidates: Sequence[str]
    ) -> estimate_pb2.Estimates:
        request = estimate_pb2.DecodeRequest(
            metric=asked.metric,
            round=asked.round if asked.HasField("round") else None,
            target=asked.target,
            level=asked.level,
            candidates=candidates,
        )
        return self._stub.Decode(request, timeout=_DECODING_TIMEOUT).estimates


def connect(address: str = DEFAULT_ADDRESS, keys: str | PathLike[str] | None = None) -> Reader:
    """Read from the private listener at host:port; use it as a context manager.

    `keys`: the keys folder, if that listener runs with --private-tls.
    Raises BadAddress or KeysError.
    """
    return Reader(address, None if keys is None else Path(keys))


def _metric(summary: estimate_pb2.MetricSummary) -> Metric:
    return Metric(
        name=summary.name,
        digest=summary.digest.hex(),
        question=summary.question,
        source=summary.source,
        mechanism=summary.mechanism,
        epsilon=Epsilon(summary.epsilon.declared, summary.epsilon.realised),
        values=tuple(summary.values),
        listed=summary.listed,
        rounds=tuple(
            Round(known.round, state_name(known.state), known.n) for known in summary.rounds
        ),
    )


def _estimates(answer: estimate_pb2.Estimates) -> Estimates:
    report = as_report(answer)
    return Estimates(
        metric=report["metric"],
        digest=report["digest"],
        round=report["round"],
        state=state_name(answer.state),
        n=report["n"],
        mechanism=report["mechanism"],
        epsilon=Epsilon(**report["epsilon"]),
        kind=report["kind"],
        target=report["target"],
        level=report["level"],
        as_of=datetime.fromisoformat(report["as_of"]) if report["n"] else None,
        publish_step=answer.publish_step,
        report=report,
    )
