"""Reading estimates from Python: `with hubbub_aggregator.connect() as aggregator: …`."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.answers import (
    Estimates,
    Metric,
    PooledEstimates,
    estimates_of,
    metric_of,
    pooled_of,
)
from hubbub_aggregator.connection import DEFAULT_ADDRESS, TIMEOUT, calling, open_channel
from hubbub_aggregator.records import TARGETS

# A decoding, or the pooling of many rounds, takes up to some 20 seconds of one core. Seconds.
_LONG_TIMEOUT: Final = 60.0


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
        return [metric_of(summary) for summary in answer.metrics]

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
        _require_range(target, level)
        asked = estimate_pb2.GetEstimatesRequest(
            metric=name, round=round, target=TARGETS[target], level=level
        )
        with calling(self._address):
            if candidates is None:
                answer = self._stub.GetEstimates(asked, timeout=TIMEOUT).estimates
            else:
                answer = self._decode(asked, candidates)
        return estimates_of(answer)

    def pooled(
        self,
        name: str,
        rounds: tuple[int, int] | None = None,
        target: str = "respondents",
        level: float = 0.95,
    ) -> PooledEstimates:
        """A metric's shares over several rounds, each of which weighs as many reports as it has.

        `rounds`: the first and the last one; without it, all that have a snapshot. `target` and
        `level` as for `estimates`, and the same is raised.
        """
        _require_range(target, level)
        first, last = (None, None) if rounds is None else rounds
        request = estimate_pb2.PoolRequest(
            metric=name, first=first, last=last, target=TARGETS[target], level=level
        )
        with calling(self._address):
            return pooled_of(self._stub.Pool(request, timeout=_LONG_TIMEOUT))

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
        return self._stub.Decode(request, timeout=_LONG_TIMEOUT).estimates


def connect(address: str = DEFAULT_ADDRESS, keys: str | PathLike[str] | None = None) -> Reader:
    """Read from the private listener at host:port; use it as a context manager.

    `keys`: the keys folder, if that listener runs with --private-tls.
    Raises BadAddress or KeysError.
    """
    return Reader(address, None if keys is None else Path(keys))


def _require_range(target: str, level: float) -> None:
    """Raises ValueError."""
    if target not in TARGETS:
        raise ValueError(f"the target is respondents or population, not {target!r}")
    if not 0 < level < 1:
        raise ValueError(f"the level is between 0 and 1, for example 0.95, not {level:g}")
