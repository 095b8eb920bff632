"""The health page's words, figures and charts, without a browser."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from hubbub.v1 import estimate_pb2, report_pb2
from hubbub_dashboard.health import health_charts, health_markup, health_states, health_text
from hubbub_dashboard.health.history import Sample, sample
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.reading.source import AggregatorStatus, Source
from hubbub_dashboard.states import Status, Tone
from tests.statuses import DAY, NOW, make_status, totals

ADDRESS = "localhost:7444"
FAILING = estimate_pb2.StoreStatus(location="s", failing_since=NOW - 60)


def status(**facts: Any) -> AggregatorStatus:
    record = make_status(**facts)
    now = sample(record)
    return AggregatorStatus(record, (Sample(NOW - 60, now.started, 0, 0), now))


def state(value: AggregatorStatus | None, failure: str | None = None) -> Status:
    answered = None if value is None else NOW
    return health_states.status(ADDRESS, Reading(value, answered, NOW, failure), NOW + 30)


def verdict(value: AggregatorStatus, failure: str | None = None) -> str:
    reading = Reading(value, NOW, NOW, failure)
    found = health_states.status(ADDRESS, reading, NOW + 30)
    return health_markup.verdict(found, health_states.known_troubles(reading))


def test_all_is_well() -> None:
    assert (state(status()).tone, state(status()).word) == (Tone.LIVE, "All is well")


def test_a_problem_is_louder_than_a_warning() -> None:
    assert state(status(stopping=True)).tone is Tone.WARNING
    assert state(status(stopping=True, store=FAILING)).tone is Tone.PROBLEM
    said = verdict(status(stopping=True, store=FAILING))
    assert said.index("Nothing is counted") < said.index("The aggregator is stopping")


def test_not_connected() -> None:
    assert state(None, "UNAVAILABLE").word == "Not connected"


def test_away_says_since_when_and_what_was_wrong_then() -> None:
    found = state(status(), "UNAVAILABLE")
    assert (found.tone, found.word) == (Tone.AWAY, "Aggregator away")
    assert "(30 s ago), and does not answer now" in found.sentence
    said = verdict(status(store=FAILING), "UNAVAILABLE")
    assert said.index("does not answer") < said.index("When it last answered:")
    assert said.index("When it last answered:") < said.index("Nothing is counted")
    # Whoever is told of changes would else be told of every tick.
    region = said[said.index('<div role="status">') : said.index("</div>")]
    assert "ago" not in region


def test_an_older_aggregator_is_told_from_one_that_is_away() -> None:
    """A real server that has no such call."""
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            reading = Source(channel, max_age=1.0, clock=lambda: NOW).status()
        server.stop(None).wait()
    found = health_states.status(ADDRESS, reading, NOW)
    assert (found.tone, found.word) == (Tone.AWAY, "Older aggregator")


def known(name: str) -> bool:
    return not name.endswith("_UNSPECIFIED")


def test_everything_that_happened_is_shown_with_words_for_it() -> None:
    outcomes = [name for name in report_pb2.ReportStatus.DESCRIPTOR.values_by_name if known(name)]
    reasons = [name for name in report_pb2.RefusalReason.DESCRIPTOR.values_by_name if known(name)]
    shown = health_markup.details(
        status(
            reports=totals(**{name: 1_000 + i for i, name in enumerate(outcomes)}, NEWER_WORD=7),
            refused=totals(**{name: 2_000 + i for i, name in enumerate(reasons)}, NEWER_REASON=8),
        )
    )
    for i in range(len(outcomes)):
        assert f">{1_000 + i:,}</data>" in shown
    for i, name in enumerate(reasons):
        assert f">{2_000 + i:,}</data>" in shown
        bare = name.removeprefix("REFUSAL_REASON_").lower().replace("_", " ")
        assert f">{bare}</th>" not in shown
    assert ">newer word</th>" in shown
    assert ">newer reason</th>" in shown


def test_nothing_from_outside_is_markup() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    value = status(
        version=hostile,
        store=estimate_pb2.StoreStatus(location=hostile, unreadable=hostile),
        archive=estimate_pb2.ArchiveStatus(folder=hostile, failing_since=NOW, reason=hostile),
        bundle=estimate_pb2.BundleStatus(
            metrics=[estimate_pb2.MetricDigest(name=hostile, digest=b"?" * 32)]
        ),
        listeners=[estimate_pb2.ListenerStatus(name=hostile, address=hostile)],
        snapshots=[estimate_pb2.SnapshotStatus(metric=name, n=1) for name in (hostile, "'\"<b>")],
        reports=totals(**{hostile: 1}),
        refused=totals(**{hostile: 1}),
    )
    shown = (
        verdict(value)
        + health_markup.facts(value.record, 1.0)
        + health_markup.tiles(value)
        + health_markup.details(value)
    )
    assert "<img" not in shown
    assert "<b>" not in shown
    assert shown.count("&lt;img") > 10


def test_what_is_not_known_is_not_told_as_none() -> None:
    metrics = [estimate_pb2.MetricDigest(name="m", digest=b"?" * 32)]
    bundle = estimate_pb2.BundleStatus(metrics=metrics)
    assert "none yet" in health_markup.details(status(bundle=bundle, opening=None))
    unreadable = status(
        bundle=bundle,
        store=estimate_pb2.StoreStatus(location="s", unreadable="gone"),
        rounds_open=None,
        rounds_closed=None,
    )
    assert health_markup.details(unreadable).count("not known") == 5


def test_a_snapshot_of_a_metric_that_left_the_bundle_is_shown() -> None:
    snapshots = [estimate_pb2.SnapshotStatus(metric="left", n=142, as_of=NOW - 90)]
    shown = health_markup.details(status(snapshots=snapshots))
    assert "not in the bundle" in shown
    assert ">142</data>" in shown
    assert "(90 s old)" in shown


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (0.0, "0"),
        (0.004, "less than 0.01"),
        (0.014, "0.01"),
        (3.333, "3.33"),
        (33.33, "33.3"),
        (12_345.6, "12,346"),
    ],
)
def test_rates(rate: float, said: str) -> None:
    assert health_text.per_second(rate) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 5, "0"),
        (5, 5, "100"),
        (1, 1_000_000, "0.1"),
        (999_999, 1_000_000, "99.9"),
        (1, 3, "33.3"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(part: int, whole: int, said: str) -> None:
    assert health_text.share(part, whole) == f"{said}\u202f%"


def test_digests_that_are_not_known() -> None:
    assert health_text.unknown_digests({"overloaded": 5}).startswith("No request")
    said = health_text.unknown_digests({"unknown_digest": 1, "overloaded": 3})
    assert said.startswith("1 of 4 refused requests (25.0\u202f%)")


def test_a_certificate_that_ended_has_no_days_left() -> None:
    facts = make_status(certificate_expires=NOW - 3 * DAY)
    said = health_text.until(facts["certificate_expires"], facts["as_of"])
    assert said == "until 2001-09-06 (0 days)"


@pytest.mark.parametrize(
    ("highest", "end"), [(0.0, 1), (1.0, 1), (1.1, 2), (5.0, 5), (5.1, 10), (430_000.0, 500_000)]
)
def test_the_axis_ends_at_a_round_figure(highest: float, end: float) -> None:
    assert health_charts.top(highest) == end


def test_of_one_metric_alone_nothing_is_denied() -> None:
    assert "told nowhere" in health_text.history(2)
    assert "told nowhere" not in health_text.history(1)


def test_an_age_that_no_longer_grows_is_not_told() -> None:
    assert "(7 s ago)" in health_markup.facts(make_status(), 7.0)
    assert "(paused)" in health_markup.facts(make_status(), None)


def test_a_chart_and_what_is_said_of_it() -> None:
    value = status(reports=totals(REPORT_STATUS_COUNTED=120))
    what = health_charts.COUNTED
    assert health_charts.rows(value, what).to_pydict() == {
        "from": [-1.0],
        "to": [0.0],
        "rate": [2.0],
    }
    assert health_charts.alternative(value, what) == (
        "Reports counted each second over the last minute: 2.00 lately, 2.00 at most, "
        "2.00 at least."
    )
    assert health_charts.rates(value, health_charts.REJECTED) == (0.0,)
    light = health_charts.specification(what, 2, "light")
    assert light is health_charts.specification(what, 2, "light")
    assert "2.00" in health_markup.history_table(health_charts.lately(value))
