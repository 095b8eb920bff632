"""What comes from outside is text on the page, and every figure is there exactly."""

import re

from hubbub_dashboard import markup, text
from hubbub_dashboard.reading.answers import RoundState
from hubbub_dashboard.shares.selection import Order, select
from hubbub_dashboard.states import Status, Tone, of_round
from tests.dashboard.snapshots import make_estimates, make_value

HOSTILE = '<img src=x onerror="alert(1)">`&'
NOW = 1_000_000_003.0


def test_everything_from_outside_is_escaped() -> None:
    estimates = make_estimates(make_value(HOSTILE, 0.5), mechanism=HOSTILE)
    status = Status(Tone.LIVE, HOSTILE, HOSTILE)
    for html in (
        markup.heading(HOSTILE, HOSTILE),
        markup.status_line(status, estimates, NOW, paused=False),
        markup.notes(HOSTILE),
        markup.open_domain(HOSTILE),
        markup.provenance(estimates),
        markup.table(select(estimates, Order.LISTED), 0.95),
    ):
        assert "<img" not in html
        assert "&lt;img" in html


def test_the_table_carries_exact_shares_and_shows_the_digits_that_mean_something() -> None:
    estimates = make_estimates(make_value("a", 0.123456789, error=0.005))
    html = markup.table(select(estimates, Order.LISTED), 0.95)
    value = estimates.values[0]
    assert [float(share) for share in re.findall(r'<data value="([^"]+)">', html)] == [
        value.estimate,
        value.low,
        value.high,
        value.simultaneous_low,
        value.simultaneous_high,
    ]
    assert ">12.3\u202f%<" in html


def test_doubt_is_marked_by_glyph_and_words() -> None:
    estimates = make_estimates(make_value("a", 0.5), make_value("b", 0.0))
    html = markup.table(select(estimates, Order.LISTED), 0.95)
    assert html.count(f"◇ {text.NOT_DISTINGUISHABLE}") == 1
    assert html.count('<tr class="doubt">') == 1


def test_status_line_shows_count_and_age() -> None:
    estimates = make_estimates(make_value("a", 0.5))
    html = markup.status_line(of_round(estimates), estimates, NOW, paused=False)
    assert "<b>12,345</b> reports" in html
    assert "as of 01:46:40 UTC (3 s ago)" in html


def test_an_age_that_would_not_tick_is_not_shown() -> None:
    estimates = make_estimates(make_value("a", 0.5))
    html = markup.status_line(of_round(estimates), estimates, NOW, paused=True)
    assert "as of 01:46:40 UTC (paused)" in html


def test_before_the_first_snapshot_no_count_and_no_time() -> None:
    estimates = make_estimates(n=0, as_of=0.0)
    html = markup.status_line(of_round(estimates), estimates, NOW, paused=False)
    assert "as of" not in html
    assert "<b>" not in html
    assert "none yet" in markup.provenance(estimates)


def test_provenance_names_what_figures_rest_on() -> None:
    html = markup.provenance(make_estimates(make_value("a", 0.5), round=3, state=RoundState.CLOSED))
    for fact in (
        "randomised-response",
        "0.999999999999999999",
        "0001020304050607",
        ">3<",
        "±0.043",
    ):
        assert fact in html


def test_an_open_domain_has_a_snapshot_but_no_influence() -> None:
    html = markup.provenance(make_estimates(mechanism="local-hashing"))
    assert "01:46:40" in html
    assert "Influence" not in html


def test_commands_in_sentences_are_set_as_code() -> None:
    assert "<code>hubbub serve</code>" in markup.notes("Start `hubbub serve` first.")
