"""Decoding: the figures of candidate texts, from the reports that an open domain retains."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

import grpc
import numpy as np

from hubbub.domain import text_index
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.candidates import CandidatesError, require_candidates
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.oracles import OpenHashingOracle
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.figures import figures_of, no_figures
from hubbub_aggregator.services.turns import Turns
from hubbub_aggregator.store import ReportsForgotten, Snapshot, Store

if TYPE_CHECKING:
    from hubbub_aggregator.estimation.intervals import Target

# Reports times candidates of one call: some 20 seconds of one core, at 15 to 20 ns each.
MAX_STEPS: Final = 1_000_000_000

# To read a report and take it apart costs as much as asking it about so many candidates.
_READING: Final = 20


class Decoder:
    """Asks retained reports about candidates, for one caller at a time. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns = Turns("decoding")

    def figures(
        self,
        metric: CataloguedMetric,
        number: int,
        snapshot: Snapshot | None,
        candidates: Sequence[str],
        *,
        closed: bool,
        target: "Target",
        level: float,
        wanted: Callable[[], bool],
    ) -> list[estimate_pb2.ValueEstimate]:
        """One message for each candidate, in their order, from a round's snapshot, `closed` or not.

        Simultaneous intervals and ranks are over these candidates. Stops early once nothing is
        `wanted` any more. Raises Refused or StoreError.
        """
        oracle = _oracle(metric)
        _require_askable(candidates)
        if snapshot is None:
            return no_figures(candidates)
        n = snapshot.tally.n
        _require_few(n, candidates)
        with (
            self._turns.taken(),
            closing(
                self._store.retained(metric.digest, number, n, oracle.payload_size)
            ) as retained,
        ):
            counts = np.zeros(len(candidates), np.int64)
            indices = [text_index(candidate) for candidate in candidates]
            try:
                for payloads in retained:
                    if not wanted():
                        raise Refused(grpc.StatusCode.CANCELLED, "the caller has gone")
                    counts += oracle.candidate_supports(payloads, indices)
            except ReportsForgotten:
                raise Refused(
                    grpc.StatusCode.FAILED_PRECONDITION,
                    f"the reports of round {number} of metric {metric.metric.name!r} were "
                    f"forgotten; `hubbub recount` decodes those that are archived",
                ) from None
        return figures_of(
            metric.metric.mechanism.support,
            candidates,
            counts,
            n,
            closed=closed,
            whole=False,
            target=target,
            level=level,
        )


def _oracle(metric: CataloguedMetric) -> OpenHashingOracle:
    # A listed domain may be hashed by the oracle of texts too.
    if not (metric.metric.domain.open and isinstance(metric.oracle, OpenHashingOracle)):
        raise Refused(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"metric {metric.metric.name!r} lists its values, which are all estimated already; "
            f"candidates are for open domains",
        )
    return metric.oracle


def _require_askable(candidates: Sequence[str]) -> None:
    try:
        require_candidates(candidates)
    except CandidatesError as error:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None


def _require_few(n: int, candidates: Sequence[str]) -> None:
    most = MAX_STEPS // n - _READING
    if len(candidates) > most:
        raise Refused(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"{n:,} reports can be asked about {max(most, 0):,} candidates at once, not about "
            f"{len(candidates):,}",
        )
