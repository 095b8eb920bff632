"""Pooling: the figures of several rounds together, from their snapshots."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import grpc

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.records import TARGETS
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.figures import epsilon_of, messages_of, no_figures
from hubbub_aggregator.services.lookup import require_listed
from hubbub_aggregator.services.questions import Questions, Span
from hubbub_aggregator.services.turns import Turns
from hubbub_aggregator.store import Snapshot, Store
from hubbub_aggregator.tally import Tally

if TYPE_CHECKING:
    from hubbub_aggregator.estimation.pooled import Pool

# Rounds times cells of one call: 512 MiB of counts, some seconds of one core.
MAX_POOLED: Final = 1 << 26


class Pooling:
    """Pools snapshots, for one caller at a time. Thread-safe."""

    def __init__(self, store: Store, questions: Questions) -> None:
        self._store = store
        self._questions = questions
        self._turns = Turns("pooling", patience=5.0)

    def answer(self, span: Span) -> estimate_pb2.PoolResponse:
        """Raises Refused or StoreError."""
        require_listed(span.metric)
        # Imported here, as everywhere in the services: scipy is a third of a restart.
        from hubbub_aggregator.estimation.pooled import pool

        metric = span.metric
        found = _Found(self._questions, metric)
        with (
            self._turns.taken(),
            closing(self._store.snapshots(metric.digest, span.rounds)) as snapshots,
        ):
            pooled = pool(found.tallies(snapshots))
            answer = _figures(span, pooled, closed=found.closed)
        answer.MergeFrom(
            estimate_pb2.PoolResponse(
                metric=metric.metric.name,
                digest=metric.digest,
                first=span.rounds.start,
                last=span.rounds.stop - 1,
                rounds=sorted(found.rounds, key=attrgetter("round")),
                mechanism=metric.metric.mechanism.name,
                epsilon=epsilon_of(metric),
                kind="unbiased",
                target=TARGETS[span.target],
                level=span.level,
                as_of=found.as_of,
            )
        )
        return answer


class _Found:
    """What is to be told of the rounds whose tallies are pooled."""

    def __init__(self, questions: Questions, metric: CataloguedMetric) -> None:
        self._questions = questions
        self._metric = metric
        self.rounds: list[estimate_pb2.RoundSummary] = []
        self.closed = True
        self.as_of = 0.0

    def tallies(self, snapshots: Iterable[tuple[int, bool, Snapshot]]) -> Iterator[Tally]:
        most = MAX_POOLED // self._metric.oracle.cells
        for number, closed, snapshot in snapshots:
            if len(self.rounds) == most:
                raise Refused(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"{most:,} rounds of {self._metric.metric.name!r} can be pooled at once; "
                    f"ask for fewer",
                )
            self.rounds.append(
                self._questions.summary(self._metric, number, (closed, snapshot.tally.n))
            )
            self.closed = self.closed and closed
            self.as_of = max(self.as_of, snapshot.as_of)
            yield snapshot.tally


def _figures(span: Span, pooled: "Pool | None", *, closed: bool) -> estimate_pb2.PoolResponse:
    """The fields that hang on counts. `closed`: whether all the rounds are."""
    labels, mechanism = span.metric.metric.domain.labels, span.metric.metric.mechanism
    if pooled is None:
        return estimate_pb2.PoolResponse(values=no_figures(labels))
    from hubbub_aggregator.estimation.anytime import found
    from hubbub_aggregator.estimation.pooled import pooled_estimate, vary_together

    n = pooled.tally.n
    shares = pooled_estimate(mechanism, pooled, target=span.target, level=span.level)
    counts = span.metric.oracle.supports(pooled.tally.cells)
    if closed:
        present = shares.distinguishable
    elif vary_together(mechanism, pooled, "respondents"):
        # No rule is known that holds however often one looks.
        present = shares.distinguishable & False
    else:
        present = found(mechanism.support, counts, n, level=span.level)
    return estimate_pb2.PoolResponse(
        n=n,
        plain=pooled.tally.plain,
        at_most=vary_together(mechanism, pooled, span.target),
        values=messages_of(shares, labels, counts, present, whole=True),
    )
