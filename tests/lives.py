"""Lives of a ledger: everything a device can go through, without a network and without waiting."""

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from hubbub import Bundle
from hubbub.charging import Answer, Charge, Enrolling
from hubbub.contract import Metric
from hubbub.exact import CHARGE_UNIT
from hubbub.ledger import Ledger
from hubbub.randomness import SYSTEM
from hubbub.rows import Status, Switch
from tests.bundles import Operator, make_bundle, make_metric

FRESH, SAMPLED, MEMOISED = "fresh", "sampled", "memoised"
BUDGETS = {"health": 30 * CHARGE_UNIT}
# What becomes of the six reports of a life; None: it still waits.
ENDS: Sequence[Status | None] = (
    *(Status.COUNTED, Status.REFUSED, Status.EXPIRED, Status.SENT),
    *(None, None),
)


def bundle_of_all(operator: Operator, revision: int = 1) -> Bundle:
    """A metric of every form of schedule."""
    return make_bundle(
        operator,
        make_metric(FRESH, epsilon="1", periodic=(1_000, 100, 1_000)),
        make_metric(SAMPLED, epsilon="1", periodic=(1_000, 100, 1_000), join=3),
        make_metric(
            MEMOISED,
            epsilon="0.5",
            permanent="1",
            mechanism="memoised-randomised-response",
            periodic=(1_000, 100, 1_000),
        ),
        revision=revision,
    )


def adopt(ledger: Ledger, bundle: Bundle, *, fetched: bool = False) -> bytes:
    """Put a bundle in force."""
    return ledger.adopt(bundle, [bundle.operator], BUDGETS, now=500, fetched=fetched)


def record(ledger: Ledger, metric: Metric, number: int, report: bytes = b"") -> Charge:
    """Charge for a round, and store a report if that is CHARGED."""

    def answer_it(connection: sqlite3.Connection) -> Charge:
        answer = Answer(connection, metric, number, BUDGETS[metric.source])
        if answer.charge is Charge.CHARGED:
            payload = metric.mechanism.randomise(0, SYSTEM) if metric.memoised is None else b"\1"
            now = 1_000 * number
            answer.store(report or SYSTEM.digits(16) + payload, now, now + 10)
        return answer.charge

    return ledger.transact(answer_it)


def enrol(ledger: Ledger, metric: Metric) -> Charge:
    """Pay for a series."""

    def pay(connection: sqlite3.Connection) -> Charge:
        enrolling = Enrolling(connection, metric, BUDGETS[metric.source])
        if enrolling.charge is Charge.CHARGED:
            enrolling.store(metric.draw_secret(0, SYSTEM), 0, 600)
        return enrolling.charge

    return ledger.transact(pay)


def depart(ledger: Ledger, *, sealed: bytes = b"sealed", key: bytes = b"a key id") -> None:
    """Let the newest report that waits leave."""
    entry = ledger.outbox()[-1]
    assert ledger.depart(entry, key, sealed * 8, "localhost:7443", entry.due_at)


def live(ledger: Ledger, bundle: Bundle) -> None:
    """Go through everything but opting out."""
    adopt(ledger, bundle)
    for name in (SAMPLED, MEMOISED):
        assert enrol(ledger, bundle.metrics[name]) is Charge.CHARGED
    assert record(ledger, bundle.metrics[MEMOISED], 7) is Charge.CHARGED
    for number, end in enumerate(ENDS):
        assert record(ledger, bundle.metrics[FRESH], number) is Charge.CHARGED
        if end is not None:
            depart(ledger)
        if end not in (None, Status.SENT):
            entry = max(ledger.outbox(), key=lambda entry: entry.round if entry.charge else -1)
            ledger.settle(entry, end)
    ledger.set_switch(Switch.PAUSED, 700)
    ledger.set_switch(Switch.ON, 800)
    ledger.note_refresh(900)


def everything(ledger: Ledger) -> Mapping[str, object]:
    """All that a ledger says."""
    return {
        "entries": ledger.entries(),
        "departures": ledger.departures(),
        "enrolments": ledger.enrolments(),
        "bundles": ledger.bundles(),
        "contracts": ledger.contracts(),
        "budgets": ledger.budgets(),
        "accounts": ledger.accounts(),
        "switch": ledger.switch(),
        "refreshed_at": ledger.refreshed_at(),
    }


def copy_of(state: Path, folder: Path) -> Path:
    """A copy of a state directory: the cut is as if by a kill if it is in use."""
    shutil.copytree(state, folder)
    # Who comes after a restart has no shared memory.
    for shared in folder.glob("*-shm"):
        shared.unlink()
    return folder
