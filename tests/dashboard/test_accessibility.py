"""axe-core looks at every page in its states, light and dark, and finds nothing serious."""

import time
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from hubbub.bundle import Bundle
from hubbub_dashboard.navigation import ENTRIES
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.dashboard.pages import DashboardProcess, violations
from tests.processes import ServeProcess

HOUR = 3_600
CHART = ".stVegaLiteChart svg .role-mark"

# Every page, and what is on it once it is there. All of the navigation is visited: see below.
STATES = {
    "/?metric=open": CHART,
    "/?metric=open&whole=true": CHART,
    "/?metric=closed&order=Largest+first": CHART,
    "/?metric=large": CHART,
    "/?metric=waiting": ".badge.waiting",
    "/?metric=any-text": ".open-domain",
    "/over-time?metric=repeated": CHART,
    "/over-time?metric=open": ".hubbub.notes",
    "/compare?metric=closed": CHART,
    "/compare?compare=two+rounds&metric=repeated": CHART,
    "/compare?metric=waiting": ".badge.waiting",
    "/plan": CHART,
    "/privacy?metric=open": CHART,
    "/privacy?metric=any-text": ".hubbub.answer",
    "/health": ".tiles",
}
METRICS = (
    make_metric("open"),
    make_metric("closed"),
    make_metric("waiting"),
    make_metric("any-text", open=True),
    make_metric("large", values=[f"value {i}" for i in range(128)], epsilon="4"),
    make_metric("repeated", starts=int(time.time()) - 3 * HOUR, periodic=(HOUR, 9, HOUR)),
)


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    folder = tmp_path_factory.mktemp("accessibility")
    operator, path = Operator.create(folder / "keys"), folder / "metrics.hubbub"
    path.write_bytes(operator.sign(METRICS))
    bundle = Bundle.load(path, operator_key=operator.key)
    with (
        ServeProcess(operator, path, folder / "reports.sqlite3") as serve,
        DashboardProcess(serve.private) as dashboard,
    ):
        for name in ("open", "closed", "large"):
            answer(serve, bundle, name, [0] * 900 + [1] * 600)
        answer(serve, bundle, "any-text", [7] * 100)
        for number in (2, 3):
            answer(serve, bundle, "repeated", [0] * 900 + [number - 1] * 900, number=number)
        close_round(serve, "closed")
        yield dashboard


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_nothing_serious(
    browser: Browser, dashboard: DashboardProcess, state: str, theme: Literal["light", "dark"]
) -> None:
    with browser.new_context(base_url=dashboard.url, color_scheme=theme) as context:
        page = context.new_page()
        page.goto(state)
        expect(page.locator(STATES[state]).first).to_be_attached()
        assert violations(page) == []


def test_every_page_of_the_navigation_is_looked_at(
    browser: Browser, dashboard: DashboardProcess
) -> None:
    with browser.new_context(base_url=dashboard.url) as context:
        page = context.new_page()
        page.goto("/")
        links = page.get_by_role("navigation", name="Pages").get_by_role("link")
        expect(links).to_have_count(len(ENTRIES))
        paths = {path.partition("?")[0] for path in STATES}
        assert set(links.evaluate_all("all => all.map(each => each.pathname)")) == paths


def test_what_is_wrong_would_be_found(browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content('<html lang="en"><p style="color: #ccc">pale</p><img src="x"></html>')
        assert {said.partition(":")[0] for said in violations(page)} >= {
            "color-contrast",
            "image-alt",
        }
