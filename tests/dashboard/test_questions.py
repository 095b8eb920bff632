"""An analyst's questions, each answered by a sentence that is read off the page."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hubbub.bundle import Bundle
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.dashboard.pages import DashboardProcess
from tests.processes import ServeProcess

DAY = 86_400
NAME = "mood.daily"


METRICS = [
    make_metric(
        NAME,
        question="How are you today?",
        values=("well", "so so", "ill"),
        epsilon="4",
        periodic=(DAY, 30, 5 * DAY),
        starts=int(time.time()) - 2 * DAY,
    )
]


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    """Two days: most were well, then many were not, and hardly anybody was ill."""
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        for number, crowd in ((0, [0] * 2_000 + [1] * 1_000), (1, [0] * 1_000 + [1] * 2_000)):
            answer(serve, bundle, NAME, [*crowd, *[2] * 10], number=number)
            close_round(serve, NAME, number)
        yield serve


@pytest.fixture
def page(browser: Browser, dashboard: DashboardProcess) -> Iterator[Page]:
    """The address alone is known."""
    with browser.new_context(base_url=dashboard.url) as context:
        page = context.new_page()
        page.goto("/")
        yield page


def test_which_values_are_really_there(page: Page) -> None:
    # Whether the few who are ill can be told from nobody is up to the noise.
    expect(page.locator(".answer strong")).to_contain_text(
        "values are really there: “\u2068so so\u2069”"
    )


def test_how_sure_are_we(page: Page) -> None:
    expect(page.locator(".answer")).to_contain_text(
        "How sure: the share of a value chosen beforehand is known to ±"
    )


def test_how_many_more_reports_do_we_need(page: Page) -> None:
    expect(page.locator(".answer")).to_contain_text(
        "Half of that takes four times as many reports, 12,040 in a round."
    )


def test_what_changed_since_the_last_round(page: Page) -> None:
    page.get_by_role("link", name="Over time").click()
    said = page.locator(".answer strong")
    expect(said).to_contain_text("Since round 0")
    expect(said).to_contain_text("“\u2068well\u2069” fell by")
    expect(said).to_contain_text("“\u2068so so\u2069” rose by")


def test_what_did_it_cost_the_device(page: Page) -> None:
    page.get_by_role("link", name="Privacy").click()
    said = page.locator(".answer").first
    expect(said.locator("strong")).to_contain_text("What it costs the device: after one report")
    expect(said).to_contain_text("% sure. Where its answer stays the same, every further report")
    expect(said).to_contain_text("In ε, the measure of privacy lost: ε\u00a0=\u00a0")
