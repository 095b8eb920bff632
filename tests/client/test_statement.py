"""The owner's view: complete, in words, and equal to what was sent."""

from math import exp
from pathlib import Path

import pytest

from hubbub.contract import Bundle
from hubbub.ledger import Ledger
from hubbub.statement import statement
from hubbub.transport import Refused
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Opener, Receiver, entries

NAME = "health.self_rated"


def shown(state: Path) -> str:
    ledger = Ledger.open_to_read(str(state))
    try:
        return statement(ledger)
    finally:
        ledger.close()


def section(text: str, metric: str) -> list[str]:
    """A metric's lines."""
    (found,) = (part for part in text.split("\n\n") if part.splitlines()[0] == metric)
    return found.splitlines()[1:]


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(
        operator,
        make_metric(periodic=(86_400, 8, 86_400), epsilon="0.5", mechanism="symmetric-unary"),
        make_metric("visits", epsilon="ln 3", values=[f"{n} visits" for n in range(20)]),
        make_metric("battery.worn", source="battery", question="Is the battery worn?"),
    )


def test_a_device_that_was_never_asked(bundle: Bundle, operator: Operator, tmp_path: Path) -> None:
    Device(bundle, tmp_path, budgets={"health": "4", "battery": "1"}).close()
    text = shown(tmp_path)
    assert f"Asked by operator {operator.key} (bundle revision 1)" in text
    assert "Source 'battery': ε 0 spent, 1 left of 1." in text
    assert "Source 'health': ε 0 spent, 4 left of 4." in text
    assert "  Reports    none" in section(text, "battery.worn")
    assert "  Question   Is the battery worn?" in section(text, "battery.worn")


def test_every_report_that_left_is_shown_as_it_left(
    bundle: Bundle, operator: Operator, tmp_path: Path
) -> None:
    clock, unavailable = Clock(), Refused("UNAVAILABLE")
    receiver = Receiver([1], Refused("ROUND_CLOSED"), [3], unavailable, destination="a:1")
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as client:
        for number in range(4):
            clock.now = 86_400 * number + 45
            client.metric(NAME).record("good")
            client.flush(0.9)
        clock.now = 86_400 * 4
        client.metric(NAME).record("good")
    lines = section(shown(tmp_path), NAME)
    assert "  Spent      ε 2.5; its source has 5.5 left" in lines
    reports = lines[lines.index("  Reports    5") + 1 :]
    fates = [
        "left for a:1 at 1970-01-01 00:00:45 UTC; counted",
        "left for a:1 at 1970-01-02 00:00:45 UTC; "
        "its round closed before the aggregator said that it is counted",
        "left for a:1 at 1970-01-03 00:00:45 UTC; refused by the aggregator",
        "left for a:1 at 1970-01-04 00:00:45 UTC; sent, not answered yet",
        "waits to be sent",
    ]
    metric, opener = bundle.metrics[NAME], Opener(operator)
    sent = [opener(submission) for submission in receiver.submissions]
    for number, (line, fate) in enumerate(zip(reports, fates, strict=True)):
        assert line.startswith(f"    round {number}: 17 bytes, says ")
        assert line.endswith(f"; {fate}")
        if number < 4:
            supported = metric.supported(sent[number][16:])
            assert f"says {', '.join(supported) or 'nothing'};" in line


def test_what_was_withdrawn(bundle: Bundle, tmp_path: Path) -> None:
    with Device(bundle, tmp_path, transport=Receiver(Refused("UNAVAILABLE"))) as client:
        client.metric("visits").record("3 visits")
        client.enabled = False
    lines = section(shown(tmp_path), "visits")
    assert "    round 0: deleted before it left; withdrawn" in lines
    assert "  Spent      ε 1.098612288669; its source has 6.901387711331 left" in lines


@pytest.mark.parametrize(
    ("epsilon", "sure"),
    [
        ("0.000000000001", "50.1"),
        ("0.1", "52.5"),
        ("0.5", "62.3"),
        ("1", "73.2"),
        ("ln 3", "75.0"),
        ("2", "88.1"),
        ("4", "98.3"),
        ("8", "more than 99.9"),
    ],
)
def test_epsilon_in_words(operator: Operator, tmp_path: Path, epsilon: str, sure: str) -> None:
    """Rounded up: a promise may be too modest, never too bold."""
    Device(make_bundle(operator, make_metric(epsilon=epsilon)), tmp_path).close()
    (line,) = (x for x in section(shown(tmp_path), NAME) if x.startswith("  Privacy"))
    assert line == (
        f"  Privacy    ε {epsilon} a report. Anyone who thought something about you 50:50 can be "
        f"at most {sure} % sure after one report."
    )
    if not epsilon.startswith("ln") and sure[0] != "m":
        odds = exp(float(epsilon))
        assert 0 <= float(sure) - 100 * odds / (1 + odds) <= 0.1


def test_what_is_left_counts_every_source(operator: Operator, tmp_path: Path) -> None:
    """A source's budget is worth no more than what the device as a whole has left."""
    sources = ("a", "b", "c")
    bundle = make_bundle(
        operator,
        *(make_metric(f"m.{s}", epsilon="8", source=s, periodic=(1_000, 4, 0)) for s in sources),
    )
    clock = Clock(0)
    with Device(bundle, tmp_path, clock=clock, budgets=dict.fromkeys(sources, "32")) as client:
        for number in range(4):
            clock.now = 1_000 * number
            client.metric("m.a").record("good")
            if number < 3:
                client.metric("m.b").record("good")
    text = shown(tmp_path)
    assert "Source 'a': ε 32 spent, 0 left of 32." in text
    assert "Source 'b': ε 24 spent, 8 left of 32." in text
    assert "Source 'c': ε 0 spent, 8 left of 32." in text


def test_metrics_and_sources_that_are_no_longer_asked_stay(
    operator: Operator, tmp_path: Path
) -> None:
    with Device(make_bundle(operator), tmp_path) as client:
        client.metric(NAME).record("good")
    newer = make_bundle(operator, make_metric("other", source="battery"), revision=2)
    Device(newer, tmp_path, budgets={"battery": "1"}).close()
    text = shown(tmp_path)
    assert "bundle revision 2" in text
    assert "Source 'health': ε 1 spent, 0 left of 0." in text
    assert "  Reports    1" in section(text, NAME)
    assert "  Reports    none" in section(text, "other")


def test_long_lists_are_cut(bundle: Bundle, tmp_path: Path) -> None:
    Device(bundle, tmp_path).close()
    (line,) = (x for x in section(shown(tmp_path), "visits") if x.startswith("  Answers"))
    listed = ", ".join(f"{n} visits" for n in range(8))
    assert line == f"  Answers    {listed} and 12 more"


NEW = ("subset-selection", "projective-geometry", "local-hashing")


@pytest.mark.parametrize("name", NEW)
def test_a_report_says_the_labels_that_it_speaks_for(
    operator: Operator, tmp_path: Path, name: str
) -> None:
    values = [f"{n} visits" for n in range(20)]
    bundle = make_bundle(operator, make_metric(values=values, mechanism=name))
    with Device(bundle, tmp_path) as client:
        client.metric(NAME).record("3 visits")
        (waiting,) = client.preview()
    metric = bundle.metrics[NAME]
    (entry,) = entries(tmp_path)
    assert entry.report is not None
    supported = metric.mechanism.supported(entry.report[16:])
    assert waiting.supports == tuple(values[value] for value in supported)
    assert waiting.size == 16 + metric.mechanism.payload_size
    (line,) = (x for x in section(shown(tmp_path), NAME) if x.startswith("    round 0"))
    few = ", ".join(waiting.supports[:8]) or "nothing"
    assert f"{waiting.size} bytes, says {few}" in line
    assert ("more" in line) == (len(supported) > 8)


def test_an_open_domain_and_what_is_kept(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, make_metric(open=True, absent="no answer"), make_metric("b"))
    with Device(bundle, tmp_path) as client:
        client.metric(NAME).record("anything at all")
        (waiting,) = client.preview()
    assert waiting.supports == ()
    text = shown(tmp_path)
    lines = section(text, NAME)
    assert "  Answers    any text" in lines
    kept = "the aggregator keeps each report, with its noise, to ask it more questions later"
    assert f"  Kept       {kept}" in lines
    assert "    round 0: 40 bytes, says one of every 4 texts; waits to be sent" in lines
    assert "anything at all" not in text
    assert "  Kept       the aggregator counts each report and keeps none" in section(text, "b")


def test_it_says_who_can_see_what(bundle: Bundle, tmp_path: Path) -> None:
    Device(bundle, tmp_path).close()
    text = " ".join(shown(tmp_path).split())
    assert "The aggregator opens your reports and sees the network address they came from." in text
    assert "One device could send many reports; the aggregator cannot tell." in text


def test_looking_changes_nothing(bundle: Bundle, tmp_path: Path) -> None:
    with Device(bundle, tmp_path) as client:
        client.metric(NAME).record("good")
        # Also while the app runs.
        before = (tmp_path / "ledger.sqlite3").read_bytes()
        shown(tmp_path)
    assert (tmp_path / "ledger.sqlite3").read_bytes() == before
