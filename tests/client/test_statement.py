"""The owner's view: complete, in words, and equal to what was sent."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hubbub import Bundle, Outcome
from hubbub.ledger import Ledger
from hubbub.limits import MAX_OUTBOX_REPORTS
from hubbub.rows import Status
from hubbub.statement.facts import Report
from hubbub.statement.figures import iso
from hubbub.transport import Refused
from tests import owners
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Opener, Receiver, Submission, unreachable
from tests.owners import FRESH, MEMO, ONCE, OPEN, SAMPLED
from tests.statements import about, row, section, told

NAME = "health.self_rated"
DAY = 86_400

Own = Callable[[Bundle], owners.Owned]


@pytest.fixture(scope="module")
def month(operator: Operator) -> Iterator[owners.Owned]:
    """A device that was asked in every way, and lost nothing."""
    with owners.month(operator) as owned:
        yield owned


@pytest.fixture
def own() -> Iterator[Own]:
    """A device of one's own: its bundle."""
    with ExitStack() as devices:
        yield lambda bundle: devices.enter_context(owners.Owned(bundle))


# What there was.


def test_a_device_that_was_never_asked(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, make_metric("battery.worn", source="battery"), make_metric())
    Device(bundle, tmp_path, budgets={"health": "4", "battery": "1"}).close()
    facts = told(tmp_path)
    text = str(facts)
    assert f"Questions   2, asked by {operator.key}" in text.splitlines()
    assert "Reports     None." in text.splitlines()
    assert section(text, "Budgets")[-3:] == [
        "battery        ε 0 spent, 1 left of 1. When all is spent: at most 73.2 % sure.",
        "health         ε 0 spent, 4 left of 4. When all is spent: at most 98.3 % sure.",
        "(all of them)  ε 0 spent, 64 left of 64, whatever the app allows.",
    ]
    assert row(text, NAME, "Reports") == "None."
    assert facts.total.spent_percent == "50.0"


def test_a_ledger_without_a_bundle(tmp_path: Path) -> None:
    Ledger.open(str(tmp_path)).close()
    text = str(told(tmp_path))
    assert "Questions   None so far." in text.splitlines()


FATES = {
    Status.COUNTED: "counted",
    Status.EXPIRED: "expired: its round closed before an answer came",
    Status.REFUSED: "refused by the aggregator",
    Status.SENT: "sent, not answered yet",
    Status.WAITING: "waits, and leaves from {due} on",
}


def test_what_became_of_every_report(operator: Operator, tmp_path: Path) -> None:
    receiver, clock = unreachable(), Clock()
    receiver.answers = [[1], Refused("ROUND_CLOSED"), [3], *receiver.answers]
    daily = make_metric(periodic=(DAY, 8, DAY), epsilon="0.5")
    with Device(make_bundle(operator, daily), tmp_path, clock=clock, transport=receiver) as client:
        for day in range(4):
            clock.now = DAY * day + 45
            client.metric(NAME).record("good")
            client.flush(0.1)
        # What is left is sent again, and nothing new is noted.
        client.flush(0.1)
        clock.now = DAY * 4
        client.metric(NAME).record("good")
        text = str(client.statement())
    reports = about(told(tmp_path), NAME).reports
    assert [report.status for report in reports] == [status.name.lower() for status in FATES]
    lines = section(text, f"Metric {NAME}")
    for report, fate in zip(reports, FATES.values(), strict=True):
        headline = f"Round {report.round}, recorded 1970-01-0{report.round + 1}T00:00:"
        (line,) = (line for line in lines if line.startswith(headline))
        assert line.endswith(f": {fate.format(due=iso(report.due_at))}")
    left = [line.split()[1] for line in lines if line.startswith("left ")]
    assert left == [f"1970-01-0{day}T00:00:45Z" for day in (4, 3, 2, 1)]
    assert row(text, NAME, "Reports") == (
        "5: 1 counted, 1 expired, 1 refused, 1 sent, and not answered yet, 1 waiting."
    )
    assert row(text, NAME, "Spent") == "ε 2.5; its source has 5.5 left"


def test_what_was_dropped(operator: Operator, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_OUTBOX_REPORTS > 2
    monkeypatch.setattr("hubbub.outbox.MAX_OUTBOX_REPORTS", 2)
    owned = own(owners.make(operator, FRESH))
    owned.receiver.answers = list(unreachable().answers)
    owned.days(0, 5, timeout=0.01)
    reports = about(owned.client.statement(), FRESH).reports
    dropped = [report for report in reports if report.status == "dropped"]
    assert len(dropped) == 3
    text = str(owned.client.statement())
    assert row(text, FRESH, "Reports").startswith("5: 3 dropped, 1 sent, and not answered yet, 1 ")
    assert row(text, FRESH, "Spent") == "ε 2.5; its source has 1.5 left"
    assert text.count("dropped, because too many waited") == 3


def test_every_byte_that_was_received_is_shown(operator: Operator, tmp_path: Path) -> None:
    """1,000 reports, and a new sealing key halfway."""
    other = Operator.create(tmp_path / "other")
    contract = make_metric(
        epsilon="0.03", mechanism="symmetric-unary", periodic=(DAY, 1_000, DAY), retain=True
    )
    receiver, clock, opened = Receiver(), Clock(), dict[int, set[bytes]]()
    openers = [Opener(operator), Opener(other)]
    rotated = make_bundle(operator, contract, revision=2, sealing_keys=other.sealing_keys)
    with Device(
        make_bundle(operator, contract),
        None,
        clock=clock,
        transport=receiver,
        budgets={"health": "32"},
    ) as client:
        handle = client.metric(NAME)
        for day in range(1_000):
            clock.now = DAY * day + 45
            handle.record("good")
            if day == 500:
                receiver.bundle = rotated.signed
            client.flush()
        facts = json.loads(client.statement().json())
    (metric,) = facts["metrics"]
    keys = [key.key_id for key in (*operator.sealing_keys, *other.sealing_keys)]
    for submission in receiver.submissions:
        opener = openers[keys.index(submission.key_id)]
        opened.setdefault(submission.round, set()).add(opener(submission))
    assert len(metric["reports"]) == len(opened) == 1_000
    assert {submission.key_id for submission in receiver.submissions} == set(keys)
    shown = set[Submission]()
    for report in metric["reports"]:
        said = bytes.fromhex(report["report_id"] + report["payload"])
        assert opened[report["round"]] == {said}
        shown |= {
            Submission(
                bytes.fromhex(report["digest"]),
                report["round"],
                bytes.fromhex(departure["key_id"]),
                bytes.fromhex(departure["sealed"]),
            )
            for departure in report["departures"]
        }
    assert shown == set(receiver.submissions)


def test_a_report_that_left_twice(operator: Operator, own: Own, tmp_path: Path) -> None:
    """Sealed anew when its key was withdrawn: the same report, and both are told."""
    other = Operator.create(tmp_path / "other")
    owned = own(owners.make(operator, FRESH))
    owned.receiver.answers[:] = [Refused("UNKNOWN_KEY")] * 1_000
    owned.receiver.bundle = owners.make(
        operator, FRESH, revision=2, sealing_keys=other.sealing_keys
    ).signed
    owned.days(0, 1, timeout=0.01)
    # On a busy machine that is too short for anything.
    while not owned.receiver.fetches:
        owned.client.flush(0.01)
    owned.receiver.answers = []
    owned.days(1, 2)
    facts = owned.client.statement()
    first, _ = about(facts, FRESH).reports
    assert [departure.key_id for departure in first.departures] == [
        key.key_id for key in (*operator.sealing_keys, *other.sealing_keys)
    ]
    lines = section(facts.text(), f"Metric {FRESH}")
    assert len([line for line in lines if line.startswith("and again")]) == 1
    assert [(bundle.revision, bundle.fetched) for bundle in facts.bundles] == [
        (1, False),
        (2, True),
    ]
    newest, oldest = section(facts.text(), "Bundles")[-2:]
    fingerprint = facts.bundles[1].fingerprint.hex()
    assert newest.startswith("Revision 2  over the network, 2027-01-01T12:00:00Z: SHA-256")
    assert fingerprint in newest
    assert oldest.startswith("Revision 1  from the app, 2027-01-01T00:00:00Z: SHA-256")


def test_a_series_that_costs_more_than_there_is(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    contract = make_metric("dear", periodic=(DAY, 30, DAY), join=9)
    with Device(make_bundle(operator, contract), None, budgets={"health": "8"}) as client:
        assert client.metric("dear").record("good") is Outcome.BUDGET_SPENT
        facts = client.statement()
    assert about(facts, "dear").too_dear
    assert row(facts.text(), "dear", "Next round") == (
        "none: its price is more than its source has left"
    )
    assert "dear will not be answered: it costs ε = 9 as a whole" in caplog.text


# The owner's switches.


def test_what_is_told_after_opting_out_and_in_again(operator: Operator, own: Own) -> None:
    owned = own(owners.make(operator))
    owned.days(0, 5)
    before = owned.client.statement()
    owned.client.pause()
    paused = owned.client.statement()
    assert (paused.collection, paused.chosen_at) == ("paused", paused.as_of)
    assert f"Collection  Paused since {iso(paused.as_of)}: nothing is recorded" in paused.text()
    owned.client.opt_out()
    assert "But the memo is" in " ".join(before.text().split())
    out = owned.client.statement()
    # No memo is left to be stolen.
    assert "But the memo is" not in " ".join(out.text().split())
    assert f"Collection  Off since {iso(out.as_of)}, when you opted out: nothing" in out.text()
    assert out.total == before.total
    for was, metric in zip(before.metrics, out.metrics, strict=True):
        assert {report.payload for report in metric.reports} <= {None}
        assert [_lasting(report) for report in metric.reports] == [
            _lasting(report) for report in was.reports
        ]
        if metric.memo is not None:
            assert row(out.text(), metric.metric, "Charged").endswith("; its memo is deleted")
    lines = section(out.text(), f"Metric {ONCE}")
    assert lines[-2:] == [
        "says  (deleted)",
        "left  2027-01-01T12:00:00Z for localhost:7443, sealed to key "
        f"{operator.sealing_keys[0].key_id.hex()}; its bytes are deleted",
    ]
    owned.client.opt_in()
    owned.days(5, 6)
    back = owned.client.statement()
    for was, metric in zip(before.metrics, back.metrics, strict=True):
        if metric.memo is not None:
            assert float(metric.spent) == 2 * float(was.spent)
            assert metric.series is not None
            assert [payment.in_force for payment in metric.series.payments] == [False, True]
        elif metric.metric == SAMPLED:
            assert metric.series == was.series


def _lasting(report: Report) -> tuple[Any, ...]:
    """What opting out does not delete."""
    departures = [(gone.left_at, gone.destination, gone.key_id) for gone in report.departures]
    return report.round, report.charge, report.recorded_at, departures


def test_what_was_withdrawn(operator: Operator, tmp_path: Path) -> None:
    with Device(make_bundle(operator), tmp_path) as client:
        client.metric(NAME).record("good")
        client.enabled = False
    text = str(told(tmp_path))
    lines = section(text, f"Metric {NAME}")
    assert ": withdrawn, because collection was turned off; if it had left, it" in lines[-2]
    assert lines[-1] == "says  (deleted)"
    assert row(text, NAME, "Spent") == "ε 1; its source has 7 left"


# Answers.


def test_metrics_and_sources_that_are_no_longer_asked_stay(
    operator: Operator, tmp_path: Path
) -> None:
    with Device(make_bundle(operator), tmp_path) as client:
        client.metric(NAME).record("good")
    newer = make_bundle(operator, make_metric("other", source="battery"), revision=2)
    Device(newer, tmp_path, budgets={"battery": "1"}).close()
    facts = told(tmp_path)
    assert [(metric.metric, metric.asked) for metric in facts.metrics] == [
        ("other", True),
        (NAME, False),
    ]
    text = str(facts)
    assert "Questions   1, asked by " in text
    assert "health         ε 1 spent, 0 left of 0. When all is spent: at most 73.2 % sure." in text
    lines = section(text, f"Metric {NAME}, which is no longer asked")
    assert "Reports      1: 1 waiting." in lines
    assert "Spent        ε 1; this app has no budget for its source" in lines


def test_several_operators(operator: Operator, tmp_path: Path) -> None:
    second = Operator.create(tmp_path / "second")
    keys = [operator.key, second.key]
    for bundle in (
        make_bundle(operator),
        make_bundle(second, make_metric("other"), revision=5),
        make_bundle(second, make_metric("third"), revision=6),
    ):
        Device(bundle, tmp_path / "state", operator_key=keys).close()
    facts = told(tmp_path / "state")
    assert {metric.metric: metric.operator for metric in facts.metrics} == {
        NAME: operator.key,
        "third": second.key,
        "other": None,
    }
    assert "Asked by     an operator whose bundle is no longer kept" in section(
        str(facts), "Metric other, which is no longer asked"
    )


def test_long_lists_are_cut(operator: Operator, tmp_path: Path) -> None:
    values = [f"{n} visits" for n in range(20)]
    Device(make_bundle(operator, make_metric(values=values)), tmp_path).close()
    listed = ", ".join(f'"{n} visits"' for n in range(8))
    assert row(str(told(tmp_path)), NAME, "Answers") == f"{listed} and 12 more"
    assert about(told(tmp_path), NAME).answers == tuple(values)


@pytest.mark.parametrize("name", ["subset-selection", "projective-geometry", "local-hashing"])
def test_a_report_says_the_labels_that_it_speaks_for(operator: Operator, name: str) -> None:
    values = [f"{n} visits" for n in range(300)]
    bundle = make_bundle(operator, make_metric(values=values, mechanism=name))
    with Device(bundle, None) as client:
        client.metric(NAME).record("3 visits")
        (waiting,) = client.preview()
        facts = client.statement()
    (report,) = about(facts, NAME).reports
    assert report.says == waiting.supports[:100]
    assert report.says_count == len(waiting.supports)
    few = ", ".join(f'"{label}"' for label in waiting.supports[:8]) or "nothing"
    (line,) = (x for x in section(str(facts), f"Metric {NAME}") if x.startswith("says"))
    assert line.startswith(f"says    {few}")
    assert ("more" in line) == (len(waiting.supports) > 8)


def test_an_open_domain_and_what_is_kept(month: owners.Owned) -> None:
    text = str(month.client.statement())
    assert row(text, OPEN, "Answers") == "any text"
    kept = "the aggregator keeps each report, with its noise, to ask it more questions later"
    assert row(text, OPEN, "Kept") == kept
    assert "says    one of every 3 texts" in section(text, f"Metric {OPEN}")
    assert "fresh yeast" not in text + month.client.statement().json()
    assert row(text, ONCE, "Kept") == "the aggregator counts each report and keeps none"


def test_years_of_reports_stay_readable(month: owners.Owned) -> None:
    name = MEMO["memoised-symmetric-unary"]
    facts = month.client.statement()
    assert len(about(facts, name).reports) == 24
    few, everything = facts.text(), facts.text(newest=None)
    assert row(few, name, "Reports").endswith(" The newest 10 of them:")
    lines = section(few, f"Metric {name}")
    shown = [line for line in lines if line.startswith("Round ")]
    assert [int(line.split()[1][:-1]) for line in shown] == list(range(23, 13, -1))
    assert lines[-1] == "14 earlier; `python -m hubbub show --all DIR` shows them all"
    every = [x for x in section(everything, f"Metric {name}") if x.startswith("Round ")]
    assert len(every) == 24
    assert "earlier;" not in everything


def test_who_can_see_what(operator: Operator, month: owners.Owned) -> None:
    lines = section(str(month.client.statement()), "Who can see what")
    assert lines[0].startswith("The aggregator  opens your reports.")
    assert lines[3].endswith(
        "tells what the answers were. Opting out deletes the memo, and what the reports said."
    )
    with Device(make_bundle(operator), None) as client:
        assert section(str(client.statement()), "Who can see what")[3].endswith(
            "No true answer is kept."
        )


def test_looking_changes_nothing(operator: Operator, tmp_path: Path) -> None:
    with Device(make_bundle(operator), tmp_path) as client:
        client.metric(NAME).record("good")
        # Also while the app runs.
        before = _files(tmp_path)
        assert str(client.statement()) == str(told(tmp_path))
        assert _files(tmp_path) == before
    before = _files(tmp_path)
    told(tmp_path)
    assert _files(tmp_path) == before


def _files(folder: Path) -> dict[str, bytes]:
    # The index of a log in use is no file of ours.
    return {
        file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")
    }
