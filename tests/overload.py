"""More than an aggregator can do: what it takes, what it turns away, and what that costs it.

Requests are batches such as gateways send, sealed before. What is due is sent whether or not the
rest was answered, as devices do that know nothing of each other. One request in ten is new until
it is counted; the others were counted before, and cost as much to open.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from hubbub.v1 import report_pb2
from hubbub_aggregator.listeners import SUBMIT
from tests.crowds import COUNTED, Batch
from tests.flood import LOST, Answer, flood

OVERLOADED = 8
NEW = 10
"""One request in so many is new."""


@dataclass
class Offered:
    """What came of requests over some time."""

    seconds: float
    accepted: list[float] = field(default_factory=list[float])
    """Seconds that each took."""
    pushbacks: list[float] = field(default_factory=list[float])
    """Seconds after which each that was turned away may come again."""
    turned_away: list[float] = field(default_factory=list[float])
    """Seconds until it was told so."""
    others: list[int] = field(default_factory=list[int])
    """Status codes of all others."""
    counted: int = 0
    """Reports that were counted for the first time."""
    grown: int = 0
    """Bytes by which the aggregator's resident memory grew at most."""

    @property
    def offered(self) -> int:
        return len(self.accepted) + len(self.pushbacks) + len(self.others)

    @property
    def goodput(self) -> float:
        """Requests a second that were answered."""
        return len(self.accepted) / self.seconds

    @property
    def p99(self) -> float:
        return quantiles(self.accepted, n=100)[-1]

    def __str__(self) -> str:
        away = quantiles(self.turned_away, n=100)[-1] if len(self.turned_away) > 1 else 0.0
        back = max(self.pushbacks, default=0.0)
        return (
            f"{self.offered / self.seconds:,.0f} requests/s offered, {self.goodput:,.0f} accepted, "
            f"p50 {quantiles(self.accepted, n=100)[49]:.3f} s, p99 {self.p99:.3f} s, "
            f"{len(self.pushbacks):,} turned away (p99 {away:.3f} s, push-back to {back:.1f} s), "
            f"{len(self.others)} others, {self.grown / 1e6:.0f} MB more"
        )


class Load:
    """Batches, and whoever sends them to one aggregator."""

    def __init__(
        self, address: str, authority: bytes, pid: int, batches: Sequence[Batch], connections: int
    ) -> None:
        self._address = address
        self._authority = authority
        self._pid = pid
        self._connections = connections
        self._messages = [batch.request.SerializeToString() for batch in batches]
        self._batches = batches
        # Those that are not under way: new ones, and counted ones.
        self._new = [i for i, batch in enumerate(batches) if not batch.acknowledged]
        self._old = [i for i, batch in enumerate(batches) if batch.acknowledged]
        self._turn = 0
        self._ended = False

    def closed(self, seconds: float, at_once: int) -> Offered:
        """As many as are answered, so many at once."""
        return self._offer(seconds, at_once, None)

    def open(self, seconds: float, rate: float, watched: list[Offered] | None = None) -> Offered:
        """So many a second; until the server ends, if that is earlier.

        `watched` gets what is returned, at once.
        """
        return self._offer(seconds, 0, rate, watched)

    def _offer(
        self,
        seconds: float,
        at_once: int,
        rate: float | None,
        watched: list[Offered] | None = None,
    ) -> Offered:
        found = Offered(seconds)
        if watched is not None:
            watched.append(found)
        which: list[int] = []
        before, looked = 0 if watched is not None else resident(self._pid), 0.0
        began = time.perf_counter()
        for answer in flood(
            self._address,
            SUBMIT,
            self._requests(which, began + seconds),
            authority=self._authority,
            connections=self._connections,
            in_flight=at_once,
            rate=rate,
        ):
            self._note(found, which[answer.number], answer)
            now = time.perf_counter()
            if watched is None and now - looked > 0.1:
                looked = now
                found.grown = max(found.grown, resident(self._pid) - before)
        return found

    def _requests(self, which: list[int], until: float) -> Iterator[bytes]:
        while time.perf_counter() < until and not self._ended:
            number = self._next(len(which))
            which.append(number)
            yield self._messages[number]

    def _next(self, sent: int) -> int:
        if not self._new and not self._old:
            # All are under way.
            return sent % len(self._batches)
        if self._new and (sent % NEW == 0 or not self._old):
            return self._new.pop()
        self._turn += 1
        return self._old[self._turn % len(self._old)]

    def _note(self, found: Offered, number: int, answer: Answer) -> None:
        batch = self._batches[number]
        if answer.status == 0:
            statuses = report_pb2.SubmitReportsResponse.FromString(answer.message).statuses
            assert len(statuses) == len(batch.buckets)
            found.counted += list(statuses).count(COUNTED)
            found.accepted.append(answer.seconds)
            if not batch.acknowledged:
                batch.acknowledged = True
                self._old.append(number)
            return
        if answer.status == OVERLOADED and answer.pushback is not None:
            found.pushbacks.append(answer.pushback)
            found.turned_away.append(answer.seconds)
        else:
            found.others.append(answer.status)
            self._ended = self._ended or answer.status == LOST
        if not batch.acknowledged:
            self._new.append(number)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
