"""What a device's owner is told, as data: the fields below are the keys of the statement's JSON.

ε is decimal text, or "ln 3" where it was declared so; percentages are decimal text, rounded up.
A status is a `Status` of the ledger, in small letters.
"""

from datetime import datetime
from typing import NamedTuple


class Loss(NamedTuple):
    """What something can reveal, declared and proved; ε is about any two answers of a device."""

    epsilon: str
    """As the contract declares it."""
    realised: str
    """ln(ratio), rounded up at the 18th decimal."""
    ratio: str
    """The largest P(report | answer) / P(report | other answer), exactly: "A/B"."""
    times: str
    """The same, rounded up to two decimals."""
    sure_percent: str
    """How sure at most somebody can be afterwards who thought it 50:50."""


class Timetable(NamedTuple):
    """When a metric is asked."""

    form: str
    """once, fresh, sampled or memoised."""
    starts: datetime
    ends: datetime | None
    """None: when the operator closes it."""
    every: int | None
    """Seconds from one round to the next; None if there is only one."""
    rounds: int
    join: int | None
    """How many of them each device joins, if not all."""


class Round(NamedTuple):
    """The next round that this device may answer."""

    round: int
    starts: datetime
    ends: datetime | None


class Payment(NamedTuple):
    """A series, charged as a whole."""

    charge: str
    charged_at: datetime
    from_round: int
    in_force: bool
    """False: opting out has deleted its memo."""


class Series(NamedTuple):
    """A metric that is paid for before its first answer."""

    charge: str
    parts: int
    """How many rounds, or cells of the memo, that pays for…"""
    each: str
    """…and the price of each."""
    payments: tuple[Payment, ...]
    joined: tuple[int, ...]
    """The rounds that this device drew; empty for a memoised metric."""


class Memo(NamedTuple):
    """What memoised reports reveal beside ε; see exposure.py."""

    row: Loss
    """What one permanent response can reveal."""
    rows: int
    hashes: int | None
    """How long the list is that the device drew its hash from; None: answers are not hashed."""
    identifying_bits: str
    """log2 of that, or 0: what every report tells about which device it is."""
    rounds: int
    """How many reports are compared in the next two."""
    change_noticed_percent: str
    """How often somebody is right about whether the answer changed; guessing is 50."""
    run: int
    linked_percent: str
    """How often two runs of so many reports look more alike if they are of one device; if
    nothing shows, 50."""
    change_noticed_ever_percent: str
    """As `change_noticed_percent`, with any number of reports, and of one change: at most."""


class Departed(NamedTuple):
    """A sealed report that was handed to the network, the first time for a key and destination."""

    left_at: datetime
    destination: str
    key_id: bytes
    size: int | None
    sha256: bytes | None
    sealed: bytes | None
    """None, as the two before it: deleted."""


class Report(NamedTuple):
    """A report that was made, whatever became of it."""

    round: int
    status: str
    charge: str
    """0 in a series, which is paid for as a whole."""
    digest: bytes
    recorded_at: datetime
    due_at: datetime
    """When it leaves by itself."""
    report_id: bytes | None
    payload: bytes | None
    """None, as the one before it: deleted."""
    says: tuple[str, ...]
    """The first of the answers that it speaks for: made with noise, none need be true."""
    says_count: int | None
    """How many they are; None if it is deleted, or speaks for texts that nobody lists…"""
    says_one_in: int | None
    """…namely for one in so many."""
    departures: tuple[Departed, ...]


class Asked(NamedTuple):
    """A metric: what is asked, what that can reveal, and what was answered."""

    metric: str
    question: str
    operator: str | None
    """Who asks; None if that is no longer kept."""
    asked: bool
    """Whether the operator's newest bundle still asks it."""
    source: str
    answers: tuple[str, ...]
    """All of them, but in an open domain."""
    open: bool
    other: str | None
    absent: str | None
    mechanism: str
    parameters: dict[str, int]
    digest: bytes
    retained: bool
    """Whether the aggregator keeps each report."""
    report_loss: Loss
    allowed: str
    """The most ε that it can come to on this device."""
    allowed_percent: str
    """How sure at most somebody can be then who thought it 50:50."""
    schedule: Timetable
    next: Round | None
    too_dear: bool
    """Whether it is a series that costs more than its source has left, and so is not answered."""
    series: Series | None
    memo: Memo | None
    spent: str
    left: str | None
    """What its source has left; None if the app has no budget for that."""
    reports: tuple[Report, ...]
    """By round."""


class Budget(NamedTuple):
    """What a source has spent."""

    source: str
    spent: str
    left: str
    allowed: str
    allowed_percent: str
    """How sure at most somebody can be, after all that is allowed, who thought it 50:50."""


class Total(NamedTuple):
    """What the device has spent over all sources."""

    spent: str
    left: str
    allowed: str
    """What the app's budgets come to, within `most`."""
    most: str
    """What no device may exceed."""
    spent_percent: str
    allowed_percent: str


class Adopted(NamedTuple):
    """A bundle that this device took."""

    operator: str
    revision: int
    fingerprint: bytes
    """SHA-256 of the SignedBundle."""
    adopted_at: datetime | None
    fetched: bool
    """Over the network; else from the app."""
