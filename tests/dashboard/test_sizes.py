"""Domains of 2 to 1,024 values, and rounds of no report to ten million, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from hubbub.bundle import Bundle
from hubbub.contract import parse_metric
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.services.figures import figures_of
from hubbub_dashboard.reading.answers import estimates_of
from hubbub_dashboard.shares import findings, share_chart
from hubbub_dashboard.shares.selection import MAX_ROWS, Order, select
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.dashboard.pages import DashboardProcess, watched_page
from tests.processes import ServeProcess

SIZES = (2, 16, 128, 1_024)
# None at all, and as few as a closed round may hold; while it is open the first hundred.
CLOSED = (0, 1, 99)
OPEN = 100


def labels(k: int) -> list[str]:
    return [f"value {number}" for number in range(k)]


METRICS = [make_metric(f"k{k}-n{n}", values=labels(k)) for k in SIZES for n in (*CLOSED, OPEN)]


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        for k in SIZES:
            for n in (*CLOSED, OPEN):
                answer(serve, bundle, f"k{k}-n{n}", [0] * n)
                if n in CLOSED:
                    close_round(serve, f"k{k}-n{n}")
        yield serve


@pytest.fixture(scope="module")
def page(browser: Browser, dashboard: DashboardProcess) -> Iterator[Page]:
    with watched_page(browser, dashboard.url) as page:
        yield page


@pytest.mark.parametrize("n", [1, 99, OPEN])
@pytest.mark.parametrize("k", SIZES)
def test_every_size_is_drawn_and_nothing_is_hidden_silently(page: Page, k: int, n: int) -> None:
    page.goto(f"/?metric=k{k}-n{n}")
    expect(page.locator(".hubbub .facts b")).to_have_text(f"{n}")
    expect(page.locator("tbody tr")).to_have_count(min(k, MAX_ROWS))
    expect(page.locator(".stVegaLiteChart svg .role-mark").first).to_be_visible()
    expect(page.locator(".answer")).to_contain_text("told from zero")
    notes = page.locator(".hubbub.notes").first
    if k > MAX_ROWS:
        expect(notes).to_contain_text(f"The 50 largest estimates of {k:,} are shown.")


@pytest.mark.parametrize("k", SIZES)
def test_a_round_without_reports(page: Page, k: int) -> None:
    page.goto(f"/?metric=k{k}-n0")
    expect(page.locator(".hubbub .badge")).to_contain_text("Closed")
    expect(page.locator(".hubbub table")).to_have_count(0)


def test_whatever_is_not_shown_can_be_found(page: Page) -> None:
    page.goto("/?metric=k1024-n100")
    search = page.get_by_role("textbox", name="Find values")
    for wanted in ("value 1000", "VALUE 517"):
        search.fill(wanted)
        search.press("Enter")
        expect(page.locator("tbody th")).to_have_text([wanted.lower()])
    expect(page.locator(".hubbub.notes").first).to_contain_text("1 value has")
    link = page.url
    assert "find=VALUE+517" in link
    search.fill("nobody's")
    search.press("Enter")
    expect(page.locator(".hubbub.notes").first).to_contain_text("None of the 1,024 values")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("tbody th")).to_have_text(["value 517"])


@pytest.mark.parametrize("k", SIZES)
def test_ten_million_reports_keep_their_digits(k: int) -> None:
    n, share = 10_000_000, 0.25
    support = parse_metric(make_metric("large", values=labels(k))).mechanism.support
    p, q = map(float, support)
    shares = np.array([share, *[(1 - share) / (k - 1)] * (k - 1)])
    counts = np.round(n * (q + shares * (p - q))).astype(np.int64)
    values = figures_of(
        support,
        labels(k),
        counts,
        n,
        closed=True,
        whole=True,
        target="respondents",
        level=0.95,
    )
    estimates = estimates_of(
        estimate_pb2.Estimates(
            metric="large",
            state=estimate_pb2.ROUND_STATE_CLOSED,
            n=n,
            target=estimate_pb2.TARGET_RESPONDENTS,
            level=0.95,
            values=values,
        )
    )
    selection = select(estimates, Order.LISTED)
    shown = {value.label: share_chart.figures(value, selection) for value in selection.values}
    # Some 0.03 points of error, so two decimals; and none that pretend to more.
    assert selection.places == 2
    assert shown["value 0"].startswith("25.00\u202f%")
    assert selection.values[0].found
    assert "40,000,000 in a round" in findings.sureness(estimates, selection.places)
