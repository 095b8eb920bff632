"""An aggregator that hangs: a page opened meanwhile says so, and has its figures afterwards."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from hubbub.bundle import Bundle
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.dashboard.pages import DashboardProcess
from tests.processes import ServeProcess

DAY = 86_400
NAME = "daily"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[ServeProcess]:
    operator, path = Operator.create(tmp_path / "keys"), tmp_path / "metrics.hubbub"
    starts = int(time.time()) - 3 * DAY
    path.write_bytes(
        operator.sign([make_metric(NAME, epsilon="4", starts=starts, periodic=(DAY, 9, 90 * DAY))])
    )
    bundle = Bundle.load(path, operator_key=operator.key)
    with ServeProcess(operator, path, tmp_path / "reports.sqlite3") as serve:
        for number in (0, 1):
            answer(serve, bundle, NAME, [number] * 500, number=number)
            close_round(serve, NAME, number)
        yield serve


@pytest.fixture
def dashboard(serve: ServeProcess) -> Iterator[DashboardProcess]:
    """A new one for each test, which knows nothing yet."""
    with DashboardProcess(serve.private) as dashboard:
        yield dashboard


@pytest.mark.parametrize(
    ("before", "shown"),
    [("/", "Shares"), ("/privacy", "Privacy")],
    ids=["nothing known of it", "its contract known"],
)
def test_over_time_opened_while_it_hangs(
    page: Page, serve: ServeProcess, before: str, shown: str
) -> None:
    page.goto(f"{before}?every=2+s")
    expect(page.locator(".stMain table").first).to_be_visible()
    serve.send(signal.SIGSTOP)
    try:
        page.get_by_role("link", name="Over time").click()
        expect(page.locator("[role=graphics-document]")).to_have_count(0)
        expect(page.locator(".hubbub .badge").last).to_contain_text("Aggregator away")
    finally:
        serve.send(signal.SIGCONT)
    expect(page.locator("[role=graphics-document]")).to_have_count(4)
