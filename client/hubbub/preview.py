"""What waits to be sent, told before it is."""

from typing import NamedTuple

from hubbub.bundle import Bundle
from hubbub.contract import read_metric
from hubbub.exact import charge_text
from hubbub.ledger import Ledger
from hubbub.limits import REPORT_ID_BYTES
from hubbub.rows import Entry


class WaitingReport(NamedTuple):
    """A report that is stored and has not been counted yet."""

    metric: str
    question: str
    round: int
    epsilon: str
    """What it was charged, as decimal text; "0" in a series, which is paid for as a whole."""
    supports: tuple[str, ...]
    """The values it speaks for. It was made with noise: none of them need be true. Empty in an
    open domain, where it speaks for countless texts."""
    size: int
    """Bytes, before sealing."""
    due_at: int
    """When it leaves by itself; seconds UTC."""


def preview(ledger: Ledger, bundle: Bundle) -> list[WaitingReport]:
    """The outbox, oldest first. Draws nothing. Raises StateError."""
    return [_waiting(entry, ledger, bundle) for entry in ledger.outbox()]


def _waiting(entry: Entry, ledger: Ledger, bundle: Bundle) -> WaitingReport:
    metric = bundle.metrics.get(entry.metric)
    if metric is None:
        # The bundle no longer asks it, but what was answered is still sent.
        metric = read_metric(ledger.contracts()[entry.metric])
    report = entry.report or b""
    return WaitingReport(
        metric=entry.metric,
        question=metric.question,
        round=entry.round,
        epsilon=charge_text(entry.charge),
        supports=metric.supported(report[REPORT_ID_BYTES:]),
        size=len(report),
        due_at=entry.due_at,
    )
