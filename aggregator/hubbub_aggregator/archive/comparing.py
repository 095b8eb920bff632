"""Whether a recounted round is what was counted live: by the store, or by who publishes it."""

from dataclasses import dataclass
from typing import Protocol

from hubbub_aggregator.archive.fingerprint import fingerprint, nothing
from hubbub_aggregator.archive.recount import Recounted
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.reader import Reader
from hubbub_aggregator.status_record import instant
from hubbub_aggregator.store import ReportsForgotten, Store


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of holding a recounted round against what was counted live."""

    difference: str | None = None
    """What differs, for a sentence; None: nothing does."""
    gap: str | None = None
    """Why of an open domain only n was compared, for a sentence; None: all was."""


class Live(Protocol):
    """Where the live counts are."""

    def compare(self, recounted: Recounted) -> Comparison:
        """Hold a round against them. Raises StoreError or CallFailed."""
        ...


class InStore:
    """The tallies themselves: they must agree in every byte.

    An open domain has no cells; the store keeps its reports instead, and they must be the same.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def compare(self, recounted: Recounted) -> Comparison:
        """See Live. Raises StoreError."""
        metric, number = recounted.round.metric, recounted.round.place.round
        published = self._store.published(metric.digest, number)
        if published is None:
            return Comparison(
                "the store knows no such round; is it the one that it was archived from?"
            )
        if not published.closed:
            return _open("store", recounted)
        if published.snapshot is None:
            return Comparison(_empty("store"))
        live = published.snapshot.tally
        difference = _numbers("store", (live.n, live.plain), recounted)
        if difference is not None:
            return Comparison(difference)
        if live.to_bytes() != recounted.tally.to_bytes():
            return Comparison("the store counted other cells")
        return self._reports(recounted) if metric.domain.open else Comparison()

    def _reports(self, recounted: Recounted) -> Comparison:
        metric, number = recounted.round.metric, recounted.round.place.round
        size = oracle_for(metric.mechanism).payload_size
        kept = nothing()
        try:
            for payloads in self._store.retained(metric.digest, number, recounted.tally.n, size):
                kept += fingerprint(payloads)
        except ReportsForgotten:
            return Comparison(gap="the store has forgotten its reports")
        if kept.tolist() != recounted.fingerprint.tolist():
            return Comparison("the store has other reports")
        return Comparison()


class Published:
    """What an aggregator tells readers: n and the counts of the values."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def compare(self, recounted: Recounted) -> Comparison:
        """See Live. Raises CallFailed."""
        metric, number = recounted.round.metric, recounted.round.place.round
        candidates = recounted.values if metric.domain.open and recounted.values else None
        live = self._reader.estimates(metric.name, round=number, candidates=candidates)
        if live.digest != metric.digest.hex():
            return Comparison("the aggregator has another metric of this name")
        if live.state != "closed":
            return _open("aggregator", recounted)
        difference = _numbers("aggregator", (live.n, live.report["plain"]), recounted)
        if difference is not None:
            return Comparison(difference)
        if metric.domain.open and candidates is None:
            return Comparison(gap="for more, name candidates with --candidates FILE, or --store")
        if [row["count"] for row in live.to_dicts()] != recounted.counts.tolist():
            return Comparison("the aggregator counted the values otherwise")
        return Comparison()


def _open(who: str, recounted: Recounted) -> Comparison:
    """What is counted of it yet need not be what is archived."""
    metric, number = recounted.round.metric, recounted.round.place.round
    closes = metric.schedule.window(number).closes
    by_itself = "" if closes is None else f" before the aggregator does, after {instant(closes)}"
    return Comparison(
        f"the {who} has it open still, and closed rounds alone can be compared; "
        f"`hubbub close {metric.name} --round {number}` closes it{by_itself}"
    )


def _empty(who: str) -> str:
    return f"the {who} has no counts of it: they were forgotten, or never there"


def _numbers(who: str, live: tuple[int, int], recounted: Recounted) -> str | None:
    """What differs in n, and in how many of them came unsealed."""
    n, plain = live
    if not n:
        return _empty(who)
    if n != recounted.tally.n:
        return f"the {who} counted {n:,} reports, not {recounted.tally.n:,}"
    if plain != recounted.tally.plain:
        return f"the {who} counted {plain:,} unsealed reports, not {recounted.tally.plain:,}"
    return None
