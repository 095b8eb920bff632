"""What must be true of a collection, once more and in plain Python: a dict for every round.

Nothing of the aggregator is used here, nor the device's schedules and mechanisms: what a payload
says, when a round is open, and what a request deserves is written from the documents.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from hubbub.bundle import SealingSuite
from hubbub.contract import Metric
from hubbub.v1 import report_pb2
from tests import payloads

ID_BYTES: Final = 16
MOST_REPORTS: Final = 1_000
SKEW: Final = 300
_OVERHEAD: Final = {
    SealingSuite.X25519: 32 + 16,
    SealingSuite.MLKEM768_X25519: 1_088 + 32 + 16,
}

COUNTED, DUPLICATE, NOT_OPENED, NOT_CANONICAL = 1, 2, 3, 4

Report = tuple[bytes, bytes]
"""Its id and its payload."""
RoundKey = tuple[bytes, int]
"""Digest and number."""


class Read(Protocol):
    """From a payload to the cells that it counts in; None: the mechanism makes no such payload."""

    def __call__(self, payload: bytes) -> tuple[int, ...] | None: ...


def bits(k: int, payload: bytes) -> tuple[int, ...] | None:
    """Unary encoding, with a memo or without."""
    set_ = [i for i in range(8 * len(payload)) if payload[i // 8] >> i % 8 & 1]
    return None if set_ and set_[-1] >= k else tuple(set_)


def index(k: int, payload: bytes) -> tuple[int, ...] | None:
    """Randomised response."""
    number = int.from_bytes(payload, "big")
    return (number,) if number < k else None


def rank(k: int, size: int, payload: bytes) -> tuple[int, ...] | None:
    """Subset selection."""
    sets = payloads.subsets(k, size)
    number = int.from_bytes(payload, "big")
    return sets[number] if number < len(sets) else None


def hashed(reports: int, payload: bytes) -> tuple[int, ...] | None:
    """An open domain's: nothing is counted until somebody asks."""
    return () if int.from_bytes(payload, "big") < reports else None


@dataclass(frozen=True)
class Asked:
    """A metric, and all that the model knows of it."""

    metric: Metric
    size: int
    """Bytes of a payload."""
    cells: int
    read: Read
    starts: int
    rounds: int = 1
    ends: int | None = None
    """Of a metric that is asked once."""
    every: int = 0
    grace: int = 0
    retain: bool = False

    @property
    def digest(self) -> bytes:
        return self.metric.digest

    def begins(self, number: int) -> int:
        return self.starts + number * self.every

    def closes(self, number: int) -> int | None:
        """When a round takes no more reports; None: when it is closed."""
        return self.begins(number + 1) + self.grace if self.every else self.ends

    def over(self, number: int, now: float) -> bool:
        closes = self.closes(number)
        return closes is not None and now >= closes


def hopeless(asked: Asked, report: Report | None) -> bool:
    """Whether no device can have made it. None: not opened."""
    return report is None or asked.read(report[1]) is None


@dataclass(frozen=True)
class Shown:
    """A snapshot."""

    n: int
    cells: tuple[int, ...]
    plain: int
    as_of: float


@dataclass
class Round:
    """One that was sent a report which got as far as the store, or that was closed."""

    asked: Asked
    counted: dict[bytes, bytes] = field(default_factory=dict)
    """Payloads by id."""
    plain: int = 0
    commits: list[list[bytes]] = field(default_factory=list)
    """The payloads that each commit added."""
    closed: bool = False
    shown: Shown | None = None

    @property
    def n(self) -> int:
        return len(self.counted)

    @property
    def shown_n(self) -> int:
        return 0 if self.shown is None else self.shown.n

    def cells(self) -> tuple[int, ...]:
        counts = [0] * self.asked.cells
        for payload in self.counted.values():
            for cell in self.asked.read(payload) or ():
                counts[cell] += 1
        return tuple(counts)

    def commit(
        self, reports: Sequence[Report | None], *, plain: bool, step: int, now: float
    ) -> bytes | None:
        """Count what one request holds; None: the round is closed. None of a report: not opened."""
        if self.closed:
            return None
        statuses, added = bytearray(), list[bytes]()
        for report in reports:
            if report is None:
                statuses.append(NOT_OPENED)
            elif self.asked.read(report[1]) is None:
                statuses.append(NOT_CANONICAL)
            elif report[0] in self.counted:
                statuses.append(DUPLICATE)
            else:
                statuses.append(COUNTED)
                self.counted[report[0]] = report[1]
                added.append(report[1])
        if added:
            self.commits.append(added)
            self.plain += len(added) if plain else 0
            if self.n >= self.shown_n + step:
                self.show(now)
        return bytes(statuses)

    def close(self, now: float) -> None:
        if not self.closed and self.n:
            self.show(now)
        self.closed = True

    def show(self, now: float) -> None:
        self.shown = Shown(self.n, self.cells(), self.plain, now)


@dataclass(frozen=True)
class View:
    """What one aggregator knows, from its start on."""

    digests: frozenset[bytes]
    keys: dict[bytes, SealingSuite]
    take_plain: bool
    closed: set[RoundKey] = field(default_factory=set)
    """Rounds of which the store has told it that they are closed."""


@dataclass(frozen=True)
class Taken:
    """A request that is committed: it holds a report that a device can have made."""

    key: RoundKey
    reports: list[Report | None]
    plain: bool


class Model:
    """Everything that a store must hold."""

    def __init__(self, asked: Iterable[Asked], step: int) -> None:
        self.asked: Final = {one.digest: one for one in asked}
        self.step: Final = step
        self.rounds: Final[dict[RoundKey, Round]] = {}
        self.names: Final[dict[str, bytes]] = {}
        """What each metric's name means for ever."""
        self.revision = 0
        self.sealed: Final[dict[tuple[bytes, int, bytes, bytes], Report]] = {}
        """Every report that anybody sealed, by metric, round, key and its bytes."""

    def judge(
        self, view: View, request: report_pb2.SubmitReportsRequest, now: float
    ) -> Taken | bytes | str:
        """What becomes of a request before the store is asked.

        Text: why it is refused; bytes: its statuses, where there is nothing to count.
        """
        why = self._not_taken(view, request, now)
        if why is not None:
            return why
        asked = self.asked[request.digest]
        plain = bool(request.ids or request.payloads)
        reports = (self._plain if plain else self._sealed)(view, asked, request)
        if isinstance(reports, str):
            return reports
        if all(hopeless(asked, report) for report in reports):
            return bytes(NOT_OPENED if one is None else NOT_CANONICAL for one in reports)
        return Taken((asked.digest, request.round), reports, plain)

    def _not_taken(
        self, view: View, request: report_pb2.SubmitReportsRequest, now: float
    ) -> str | None:
        """Why nothing for this metric and round is taken, whatever it is."""
        if request.digest not in view.digests:
            return "UNKNOWN_DIGEST"
        asked, number = self.asked[request.digest], request.round
        if number >= asked.rounds:
            return "NO_SUCH_ROUND"
        if now < asked.begins(number) - SKEW:
            return "ROUND_NOT_OPEN"
        if asked.over(number, now) or (request.digest, number) in view.closed:
            return "ROUND_CLOSED"
        return None

    def _plain(
        self, view: View, asked: Asked, request: report_pb2.SubmitReportsRequest
    ) -> list[Report | None] | str:
        if not view.take_plain:
            return "PLAIN_NOT_TAKEN"
        ids, said = _cut(request.ids, ID_BYTES), _cut(request.payloads, asked.size)
        if request.sealed or request.key_id or not ids or not said or len(ids) != len(said):
            return "WRONG_LENGTH"
        return list(zip(ids, said, strict=True))

    def _sealed(
        self, view: View, asked: Asked, request: report_pb2.SubmitReportsRequest
    ) -> list[Report | None] | str:
        suite = view.keys.get(request.key_id)
        if suite is None:
            return "UNKNOWN_KEY"
        pieces = _cut(request.sealed, ID_BYTES + asked.size + _OVERHEAD[suite])
        if not pieces:
            return "WRONG_LENGTH"
        if len(pieces) > MOST_REPORTS:
            return "TOO_MANY_REPORTS"
        context = (asked.digest, request.round, request.key_id)
        return [self.sealed.get((*context, piece)) for piece in pieces]

    def commit(self, taken: Taken, now: float) -> bytes | None:
        """Statuses; None: the round is closed."""
        one = self.round(taken.key)
        return one.commit(taken.reports, plain=taken.plain, step=self.step, now=now)

    def round(self, key: RoundKey) -> Round:
        if key not in self.rounds:
            self.rounds[key] = Round(self.asked[key[0]])
        return self.rounds[key]

    @property
    def open_rounds(self) -> set[RoundKey]:
        return {key for key, one in self.rounds.items() if not one.closed}


def _cut(whole: bytes, size: int) -> list[bytes]:
    """Pieces of that size; none if it is not a whole number of them."""
    if len(whole) % size:
        return []
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def reader(metric: Metric) -> tuple[int, Read]:
    """How many cells a metric has, and how its payloads are read."""
    k = metric.domain.k
    # Each kind has parameters of its own.
    mechanism: Any = metric.mechanism
    match mechanism.name:
        case "optimised-unary" | "memoised-optimised-unary":
            return k, partial(bits, k)
        case "randomised-response":
            return k, partial(index, k)
        case "subset-selection":
            return k, partial(rank, k, mechanism.size)
        case "local-hashing" if metric.domain.open:
            return 0, partial(hashed, mechanism.prime**3 * mechanism.buckets)
    raise AssertionError(mechanism.name)
