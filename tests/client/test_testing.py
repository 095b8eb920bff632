"""hubbub.testing: what was recorded, and an aggregator in process, for a host app's own tests."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hubbub
from hubbub import Client, Outcome, Switch
from hubbub.rows import Status
from hubbub.testing import Aggregator, Recorded, RecordingClient, metric
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import entries

DOCUMENT = Path(__file__).parents[2] / "docs" / "sdk.md"
LUNCH = metric("lunch", ["soup", "salad"])
DAY = 86_400
DAILY = metric("daily", ["good", "bad"], absent="no answer", every=DAY, rounds=7)
MEMO = metric("memo", ["good", "bad"], every=DAY, rounds=7, permanent="2", absent="no answer")
SAMPLED = metric("sampled", ["good", "bad"], every=DAY, rounds=7, join=3, absent="no answer")


# The recording client.


def test_what_is_recorded_is_kept_in_order() -> None:
    client = RecordingClient()
    assert isinstance(client, Client)
    assert client.metric("lunch").record("salad") is Outcome.STORED
    client.will_answer(Outcome.BUDGET_SPENT, Outcome.ALREADY_ANSWERED)
    values: list[Any] = [None, 7, "soup"]
    for value in values:
        client.metric("dinner").record(value)
    assert client.recorded == [
        Recorded("lunch", "salad", Outcome.STORED),
        Recorded("dinner", None, Outcome.BUDGET_SPENT),
        Recorded("dinner", 7, Outcome.ALREADY_ANSWERED),
        Recorded("dinner", "soup", Outcome.STORED),
    ]
    assert client.counts[Outcome.STORED] == 2
    assert client.counts[Outcome.BUDGET_SPENT] == 1


def test_with_a_bundle_it_knows_metrics_sources_and_values(operator: Operator) -> None:
    bundle = make_bundle(operator, make_metric("m", values=["yes", "no"], absent="silence"))
    client = RecordingClient(bundle)
    with pytest.raises(hubbub.UnknownMetric):
        client.metric("n")
    values: list[Any] = ["yes", None, "maybe", 1, ["yes"]]
    outcomes = [client.metric("m").record(value) for value in values]
    assert outcomes == [Outcome.STORED] * 2 + [Outcome.STORED_OUTSIDE_DOMAIN] * 3
    assert client.counts[Outcome.STORED] == 5
    with pytest.raises(hubbub.UndeclaredSource):
        RecordingClient(bundle, budgets={"battery": "1"}).metric("m")
    with pytest.raises(hubbub.InvalidBudget):
        RecordingClient(bundle, budgets={"health": "many"})


def test_it_obeys_the_app_and_the_owner() -> None:
    with RecordingClient(enabled=False) as client:
        lunch = client.metric("lunch")
        outcomes = [lunch.record("salad")]
        assert not client.flush()
        client.enabled = True
        for switch in (client.pause, client.resume, client.opt_out, client.opt_in):
            assert switch()
            outcomes.append(lunch.record("salad"))
        assert client.switch is Switch.ON
        assert client.flush()
    outcomes.append(lunch.record("salad"))
    assert not client.flush()
    off, on = Outcome.COLLECTION_OFF, Outcome.STORED
    assert outcomes == [off, Outcome.PAUSED, on, Outcome.OPTED_OUT, on, Outcome.CLIENT_CLOSED]
    assert [entry.outcome for entry in client.recorded] == outcomes


def test_nothing_is_stored_of_what_it_records() -> None:
    aggregator = Aggregator(LUNCH, MEMO)
    with RecordingClient(aggregator.bundle) as client:
        for name in ("lunch", "memo"):
            client.metric(name).record("good")
        assert client.flush()
        assert client.preview() == []
        ledger = vars(client)["_ledger"]
        assert ledger.entries() == ledger.enrolments() == []
    assert aggregator.reports("lunch") == aggregator.reports("memo") == []


# Metrics in a line.


def test_a_metric_is_one_that_devices_take(operator: Operator) -> None:
    for asked in (LUNCH, DAILY, MEMO, SAMPLED, metric("m", ["a"], other="rest", source="s")):
        assert make_bundle(operator, asked.contract).metrics[asked.name] == asked
    assert LUNCH.source == "lunch"
    assert MEMO.series_charge == 3 * 2 * 10**12
    assert SAMPLED.series_charge == 3 * 10**12


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Lunch"},
        {"values": ["soup"]},
        {"values": []},
        {"epsilon": "9"},
        {"epsilon": "many"},
        {"ends": 5, "starts": 6},
        {"every": DAY, "rounds": 7, "join": 8},
        {"every": DAY, "rounds": 7, "permanent": "0.5"},
        {"permanent": "2"},
    ],
    ids=str,
)
def test_a_metric_that_no_device_takes_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((hubbub.BundleError, ValueError)):
        metric(**{"name": "lunch", "values": ["soup", "salad"], **wrong})


# The aggregator.


@pytest.mark.parametrize("durable", [False, True], ids=["in memory", "with a state directory"])
def test_what_clients_send_is_opened_and_counted(tmp_path: Path, durable: bool) -> None:
    aggregator = Aggregator(LUNCH)
    for number in range(3):
        state = tmp_path / str(number) if durable else None
        with aggregator.client(state) as client:
            assert client.metric("lunch").record("salad")
            (waiting,) = client.preview()
            assert client.flush()
        report = aggregator.reports("lunch")[-1]
        assert report.round == 0
        assert len(report.id) == 16
        assert report.supports == waiting.supports
        assert LUNCH.supported(report.payload) == report.supports
    assert len({report.id for report in aggregator.reports("lunch")}) == 3
    with pytest.raises(hubbub.UnknownMetric):
        aggregator.reports("dinner")


def test_an_app_that_makes_its_own_client(tmp_path: Path) -> None:
    aggregator, file = Aggregator(LUNCH), tmp_path / "metrics.hubbub"
    file.write_bytes(aggregator.bundle.signed)
    with Client(
        file,
        operator_key=aggregator.operator_key,
        state_dir=tmp_path / "state",
        budgets={"lunch": "4"},
        transport=aggregator,
    ) as client:
        client.metric("lunch").record("soup")
        assert client.flush()
    assert len(aggregator.reports("lunch")) == 1


def test_a_real_bundle_s_metrics(operator: Operator) -> None:
    bundle = make_bundle(operator, make_metric("m", starts=1_000), make_metric("n", starts=2_000))
    aggregator = Aggregator(*bundle.metrics.values())
    assert aggregator.now == 2_000
    assert aggregator.operator_key != bundle.operator
    with aggregator.client() as client:
        assert all(client.metric(name).record("good") for name in "mn")
        assert client.flush()
    assert len(aggregator.reports("m")) == len(aggregator.reports("n")) == 1


def test_refusals_come_as_often_as_asked(tmp_path: Path) -> None:
    aggregator = Aggregator(LUNCH)
    aggregator.refuse("UNAVAILABLE", times=2)
    aggregator.refuse("ROUND_CLOSED")
    with aggregator.client() as client:
        client.metric("lunch").record("soup")
        # As long as it takes: two pauses, of three seconds together at most.
        assert client.flush(float("inf"))
    assert aggregator.reports("lunch") == []
    with aggregator.client(tmp_path) as client:
        client.metric("lunch").record("soup")
        assert client.flush()
    assert len(aggregator.reports("lunch")) == 1
    with pytest.raises(ValueError, match="ROUND_CLOSSED"):
        aggregator.refuse("ROUND_CLOSSED")


def test_a_lost_answer_is_sent_again_and_counted_once(tmp_path: Path) -> None:
    aggregator = Aggregator(LUNCH)
    aggregator.drop_answers(2)
    with aggregator.client(tmp_path) as client:
        client.metric("lunch").record("soup")
        assert client.flush(float("inf"))
    assert len(aggregator.reports("lunch")) == 1
    assert [entry.status for entry in entries(tmp_path)] == [Status.COUNTED]


def test_moving_through_rounds_of_every_schedule() -> None:
    aggregator = Aggregator(DAILY, MEMO, SAMPLED)
    with aggregator.client() as client:
        handles = [client.metric(name) for name in ("daily", "memo", "sampled")]
        for number in range(7):
            aggregator.begin_round("daily", number)
            for handle in handles:
                handle.record("good")
            aggregator.end_round("daily", number)
            assert client.flush()
            assert client.preview() == []
    assert [report.round for report in aggregator.reports("daily")] == list(range(7))
    assert [report.round for report in aggregator.reports("memo")] == list(range(7))
    assert len(aggregator.reports("sampled")) == 3


def test_a_series_answers_for_an_app_that_says_nothing() -> None:
    aggregator = Aggregator(MEMO)
    with aggregator.client() as client:
        client.metric("memo")
        for number in range(3):
            aggregator.end_round("memo", number)
            assert client.flush()
    assert [report.round for report in aggregator.reports("memo")] == [0, 1, 2]


def test_it_refuses_what_a_real_one_would(tmp_path: Path) -> None:
    aggregator, other = Aggregator(LUNCH, DAILY), Aggregator(DAILY)
    (key,) = aggregator.bundle.sealing_keys
    for digest, number, key_id, reason in (
        (MEMO.digest, 0, key.key_id, "UNKNOWN_DIGEST"),
        (DAILY.digest, 0, other.bundle.sealing_keys[0].key_id, "UNKNOWN_KEY"),
        (LUNCH.digest, 1, key.key_id, "NO_SUCH_ROUND"),
        (DAILY.digest, 1, key.key_id, "ROUND_NOT_OPEN"),
    ):
        with pytest.raises(Exception, match=reason):
            aggregator.submit(digest, number, key_id, b"", 1.0)
    with aggregator.client(tmp_path) as client:
        client.metric("daily").record("good")
        aggregator.begin_round("daily", 2)
        assert client.flush()
    assert [entry.status for entry in entries(tmp_path)] == [Status.EXPIRED]
    with pytest.raises(ValueError, match="asked once"):
        aggregator.end_round("lunch", 0)


# What the documents say.


def test_the_document_s_tests_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    (test,) = (block for block in blocks if block.startswith("# test_"))
    (tmp_path / "test_lunch.py").write_text(test)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "test_lunch.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_import_hubbub_never_loads_it() -> None:
    names = f"[getattr(hubbub, name) for name in {hubbub.__all__}]"
    script = f"import hubbub, sys; {names}; print('hubbub.testing' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
