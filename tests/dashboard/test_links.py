"""What a link asks for is shown, or it is said what is not; and nothing runs in circles."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote_plus, urlsplit

import pytest
from playwright.sync_api import Page, WebSocket, expect

from hubbub.bundle import Bundle
from hubbub_dashboard import text
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer
from tests.processes import ServeProcess

HOUR = 3_600
STARTED = int(time.time()) - 3 * HOUR
METRICS = (
    make_metric("any-text", open=True),
    make_metric("first"),
    make_metric("large", values=[f"value {i}" for i in range(128)], epsilon="4"),
    make_metric("repeated", starts=STARTED, periodic=(HOUR, 9, HOUR)),
    make_metric("second"),
)


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        for name in ("first", "large"):
            answer(serve, bundle, name, [0] * 300)
        yield serve


class Messages:
    """Counts what a page and its server tell each other."""

    def __init__(self, page: Page) -> None:
        self.count = 0
        page.on("websocket", self._listen)

    def _listen(self, websocket: WebSocket) -> None:
        websocket.on("framereceived", self._add)
        websocket.on("framesent", self._add)

    def _add(self, _: str | bytes) -> None:
        self.count += 1


@pytest.mark.parametrize(
    ("link", "asked", "what", "instead"),
    [
        ("/?metric=nope", "nope", "metrics", "first"),
        ("/?metric=<b>x</b>", "<b>x</b>", "metrics", "first"),
        ("/privacy?metric=nope", "nope", "metrics", "first"),
        ("/over-time?metric=nope", "nope", "metrics", "repeated"),
        ("/compare?metric=any-text", "any-text", "metrics", "first"),
        ("/?metric=first&round=99", "99", "rounds", "newest"),
        ("/privacy?metric=first&round=99", "99", "rounds", "newest"),
        ("/compare?metric=first&left=best", "best", "values", "excellent"),
        ("/?metric=first&among=men", "men", "choices", "respondents"),
        ("/?metric=first&every=9+s", "9 s", "choices", "5 s"),
        ("/plan?asked=twice", "twice", "choices", "once"),
        (
            "/compare?metric=first&left=good&right=good",
            "good",
            "values to compare “\u2068good\u2069” with",
            "excellent",
        ),
        (
            "/compare?compare=two+rounds&metric=repeated&round=1&other-round=1",
            "1",
            "rounds to compare round 1 with",
            "0",
        ),
        (
            "/over-time?metric=repeated&drawn=nope",
            "nope",
            "values",
            "those that changed most surely, and the largest",
        ),
    ],
)
def test_what_there_is_not_is_said(
    page: Page, link: str, asked: str, what: str, instead: str
) -> None:
    page.goto(link)
    said = page.get_by_text(text.in_vain(asked, what, instead))
    expect(said).to_be_visible()
    expect(page.locator(".hubbub.answer, .hubbub.status").first).to_be_visible()


def test_it_is_said_until_the_viewer_chooses(page: Page) -> None:
    page.goto("/?metric=nope&every=2+s")
    said = page.get_by_text("is not among the metrics here")
    expect(said).to_be_visible()
    messages = Messages(page)
    page.reload()
    # The link was corrected: it shows what is shown.
    expect(page.locator(".hubbub .name")).to_have_text("first")
    assert "metric=first" in page.url
    assert messages.count
    page.goto("/?metric=nope&every=2+s")
    expect(said).to_be_visible()
    page.get_by_role("combobox", name="Metric").click()
    page.get_by_role("option", name="large").click()
    expect(page.locator(".hubbub .name")).to_have_text("large")
    expect(said).to_have_count(0)
    page.get_by_role("link", name="Privacy").click()
    expect(page.locator(".hubbub .name")).to_have_text("large")
    expect(said).to_have_count(0)


def test_what_there_is_is_not_remarked_on(page: Page) -> None:
    page.goto("/compare?metric=first&left=good&right=excellent&among=population&every=15+s")
    expect(page.locator(".hubbub.answer")).to_contain_text("good")
    expect(page.get_by_text("is not among")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/", "first"), ("/over-time", "repeated"), ("/compare", "first"), ("/privacy", "first")],
)
def test_the_link_names_the_metric_that_is_shown(page: Page, path: str, shown: str) -> None:
    page.goto(path)
    expect(page).to_have_url(f"{path}?metric={shown}")
    assert page.evaluate("history.length") <= 3


@pytest.mark.parametrize(
    "link",
    [
        "/?every=paused",
        "/?every=paused&metric=nope&round=99",
        "/compare?every=paused&left=x&right=y",
        "/compare?every=paused&compare=two+rounds&metric=nope&other-round=x",
        "/privacy?every=paused&metric=nope",
    ],
)
def test_while_it_is_paused_nothing_is_said_or_asked(page: Page, link: str) -> None:
    messages = Messages(page)
    page.goto(link)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    expect(page.locator(".hubbub.answer, .hubbub.status, .hubbub.notes").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(2_000)
    before, url = messages.count, page.url
    assert before
    page.wait_for_timeout(5_000)
    assert (messages.count, page.url) == (before, url)


def test_that_all_values_are_wanted_is_in_the_link(page: Page) -> None:
    page.goto("/?metric=large&every=paused")
    page.get_by_text("All 128 values").click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    link = page.url
    assert "every-value=true" in link
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()


KEYS = {
    "Metric": "metric",
    "Round": "round",
    "A value": "left",
    "and another": "right",
    "and round": "other-round",
    "and metric": "other-metric",
}


def choose(page: Page, box: str, name: str) -> None:
    """Choose what is not chosen, and wait until the link and the other boxes have followed."""
    page.get_by_role("combobox", name=box, exact=True).click()
    page.get_by_role("option", name=name, exact=True).click()
    expect_chosen(page, {box: name})
    expect(page).to_have_url(re.compile(f"[?&]{KEYS[box]}={quote_plus(name)}(&|$)"))
    # A box closes when there is something else to choose from.
    app = page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")


def expect_chosen(page: Page, chosen: dict[str, str]) -> None:
    for box, name in chosen.items():
        shown = page.get_by_test_id("stSelectbox").filter(has=page.get_by_text(box, exact=True))
        expect(shown.get_by_role("combobox")).to_have_value(name)


def expect_link(page: Page, asks: dict[str, str]) -> None:
    page.wait_for_url(lambda url: dict(parse_qsl(urlsplit(url).query)) == asks)


@pytest.mark.parametrize(
    ("kind", "chosen", "other"),
    [
        ("values", {"A value": "fair", "and another": "excellent"}, ("and another", "poor")),
        ("values", {"and another": "fair", "A value": "good"}, ("A value", "poor")),
        ("rounds", {"Round": "1", "and round": "0"}, ("Round", "2")),
        ("rounds", {"and round": "0", "Round": "2"}, ("and round", "3")),
        ("metrics", {"Metric": "repeated", "and metric": "second"}, ("and metric", "first")),
    ],
)
def test_what_is_compared_is_in_the_link(
    page: Page, kind: str, chosen: dict[str, str], other: tuple[str, str]
) -> None:
    metric = "repeated" if kind == "rounds" else "first"
    page.goto(f"/compare?compare=two+{kind}&metric={metric}&every=2+s")
    for box, name in chosen.items():
        choose(page, box, name)
    expect_chosen(page, chosen)
    link = page.url
    choose(page, *other)
    page.go_back()
    expect(page).to_have_url(link)
    expect_chosen(page, chosen)
    page.reload()
    expect_chosen(page, chosen)
    page.goto("about:blank")
    page.goto(link)
    expect_chosen(page, chosen)
    # And at ticks.
    page.wait_for_timeout(3_000)
    expect_chosen(page, chosen)
    expect(page).to_have_url(link)
    expect(page.get_by_text("is not among")).to_have_count(0)


def test_of_another_metric_nothing_is_left(page: Page) -> None:
    page.goto("/compare?metric=large&left=value+3&right=value+5&every=2+s")
    expect_chosen(page, {"A value": "value 3", "and another": "value 5"})
    choose(page, "Metric", "first")
    expect_chosen(page, {"A value": "excellent", "and another": "good"})
    expect_link(page, {"metric": "first", "every": "2 s"})
    choose(page, "A value", "fair")
    expect(page.get_by_text("is not among")).to_have_count(0)


def test_of_another_kind_of_comparison_nothing_is_left(page: Page) -> None:
    page.goto("/compare?metric=repeated")
    choose(page, "and another", "poor")
    page.get_by_role("radio", name="two rounds").click()
    expect_link(page, {"compare": "two rounds", "metric": "repeated"})
    choose(page, "Round", "1")
    expect_chosen(page, {"and round": "2"})
    # The other round is not compared with itself, and nobody asked for that in vain.
    choose(page, "Round", "2")
    expect_chosen(page, {"and round": "1"})
    page.get_by_role("radio", name="two values").click()
    expect_chosen(page, {"Round": "2", "A value": "excellent", "and another": "good"})
    expect_link(page, {"compare": "two values", "metric": "repeated", "round": "2"})
    # A metric with one round has nothing to choose, and so nothing to say.
    choose(page, "Metric", "first")
    expect_link(page, {"compare": "two values", "metric": "first"})
    expect(page.get_by_text("is not among")).to_have_count(0)
    # Each was one step.
    page.go_back()
    expect_chosen(page, {"Metric": "repeated", "Round": "2", "A value": "excellent"})
    page.go_back()
    expect_chosen(page, {"Round": "2", "and round": "1"})


def test_whatever_is_chosen_ends_what_was_asked_in_vain(page: Page) -> None:
    page.goto("/compare?metric=first&left=x&right=y&round=9&among=men")
    said = page.get_by_text("is not among")
    expect(said).to_have_count(4)
    choose(page, "A value", "fair")
    expect(said).to_have_count(0)
    expect_chosen(page, {"and another": "good"})
