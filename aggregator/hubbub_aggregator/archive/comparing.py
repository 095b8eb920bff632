"""Whether a recounted round is what was counted live: by the store, or by who publishes it."""

from typing import Protocol

import numpy as np

from hubbub_aggregator.archive.recount import Recounted, decode
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.reader import Reader
from hubbub_aggregator.store import Store


class Live(Protocol):
    """Where the live counts are."""

    def difference(self, recounted: Recounted) -> str | None:
        """What differs, for a sentence; None: nothing does. Raises StoreError or CallFailed."""
        ...


class InStore:
    """The tallies themselves: they must agree in every byte."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def difference(self, recounted: Recounted) -> str | None:
        metric, number = recounted.round.metric, recounted.round.place.round
        published = self._store.published(metric.digest, number)
        if published is None or published.snapshot is None:
            return "the store has no counts of it"
        if not published.closed:
            return "the store has it open still"
        live = published.snapshot.tally
        if live.n != recounted.tally.n:
            return f"the store counted {live.n:,} reports, not {recounted.tally.n:,}"
        if live.to_bytes() != recounted.tally.to_bytes():
            return "the store counted other cells"
        if metric.domain.open and recounted.values:
            return self._decoded_differently(recounted)
        return None

    def _decoded_differently(self, recounted: Recounted) -> str | None:
        metric, number = recounted.round.metric, recounted.round.place.round
        oracle = oracle_for(metric.mechanism)
        counts = np.zeros(len(recounted.values), np.int64)
        for payloads in self._store.retained(
            metric.digest, number, recounted.tally.n, oracle.payload_size
        ):
            counts += decode(oracle, payloads, recounted.values)
        if counts.tolist() != recounted.counts.tolist():
            return "the reports in the store support the candidates otherwise"
        return None


class Published:
    """What an aggregator tells readers: n and the counts of the values."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def difference(self, recounted: Recounted) -> str | None:
        metric, number = recounted.round.metric, recounted.round.place.round
        candidates = recounted.values if metric.domain.open and recounted.values else None
        live = self._reader.estimates(metric.name, round=number, candidates=candidates)
        if live.digest != metric.digest.hex():
            return "the aggregator has another metric of this name"
        if live.state != "closed":
            return "the aggregator has it open still"
        if live.n != recounted.tally.n:
            return f"the aggregator counted {live.n:,} reports, not {recounted.tally.n:,}"
        if [row["count"] for row in live.to_dicts()] != recounted.counts.tolist():
            return "the aggregator counted the values otherwise"
        return None
