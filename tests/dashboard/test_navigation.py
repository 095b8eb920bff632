"""The way from page to page in a real browser: by hand, by keyboard, back, and by screen reader."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from hubbub.bundle import Bundle
from hubbub_dashboard.navigation import ENTRIES
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer
from tests.processes import ServeProcess, until

METRICS = (make_metric("first"), make_metric("second"))


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        for name in ("first", "second"):
            answer(serve, bundle, name, [0] * 300)
        yield serve


def pages(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Pages").get_by_role("link")


def expect_here(page: Page, title: str) -> None:
    """Wait until that page's link, and no other, is said to lead to where one is."""
    here = page.locator("[aria-current]")
    expect(here).to_have_text([title])
    expect(here).to_have_attribute("aria-current", "page")


def expect_metric(page: Page, name: str) -> None:
    expect(page.locator(".hubbub .name, .hubbub .facts code").first).to_have_text(name)


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_every_page_is_one_step_away_at_any_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/")
    for entry in (*ENTRIES[1:], ENTRIES[0]):
        expect(pages(page)).to_have_text([each.title for each in ENTRIES])
        link = pages(page).filter(has_text=entry.title)
        link.click()
        expect(page).to_have_url(re.compile(rf"/{entry.path}(\?metric=first)?$"))
        expect_here(page, entry.title)
        # Nothing lies over what was chosen.
        heading = page.locator("h1").first
        heading.click(trial=True)
        page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")


def test_links_come_first_by_keyboard_and_are_seen_to(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/")
    expect(pages(page).last).to_be_visible()
    reached = []
    while len(reached) < len(ENTRIES):
        page.keyboard.press("Tab")
        link = page.locator("a:focus-visible")
        # Streamlit's own way past them is before, and what scrolls.
        if link.count() and link.inner_text() in {entry.title for entry in ENTRIES}:
            expect(link).to_be_in_viewport()
            assert link.evaluate("link => getComputedStyle(link).outlineStyle") == "solid"
            reached.append(link.inner_text())
    assert reached == [entry.title for entry in ENTRIES]
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/health"))
    # Where one was is not lost.
    expect(page.locator("a:focus")).to_have_text("Health")


def test_no_tab_stop_is_out_of_sight(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/?every=paused")
    expect_here(page, "Shares")
    expect(page.get_by_role("button", name="Download CSV")).to_be_visible()
    last = None
    for _ in range(40):
        page.keyboard.press("Tab")
        box = page.evaluate(
            "(({left, right}) => [left, right])(document.activeElement.getBoundingClientRect())"
        )
        assert 0 <= box[0] < box[1] <= 361
        # Streamlit's tools of a chart show only under a pointer.
        assert page.locator("[data-testid=stElementToolbar] :focus").count() == 0
        last = page.evaluate("document.activeElement.outerHTML.slice(0, 5)")
        if last == "<body":
            break
    assert last == "<body"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_scrolls_and_what_opens_is_seen_to_have_the_focus(
    page: Page, theme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto("/compare?every=paused")
    expect(page.get_by_role("button", name="Download CSV")).to_be_visible()
    ringed = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        for name in (".stMain:focus", "[data-testid=stSelectbox] [role=group]:focus-within"):
            focused = page.locator(name)
            if focused.count():
                style = focused.evaluate("it => getComputedStyle(it).outline")
                assert style.endswith("solid 2px")
                ringed.add(name)
    assert len(ringed) == 2


def test_the_metric_goes_along_and_back_is_one_step(page: Page) -> None:
    page.goto("/?metric=second")
    expect_metric(page, "second")
    for title in ("Compare", "Health", "Privacy"):
        pages(page).filter(has_text=title).click()
        expect_here(page, title)
    expect_metric(page, "second")
    assert "/privacy?metric=second" in page.url
    page.go_back()
    expect_here(page, "Health")
    page.go_back()
    expect_here(page, "Compare")
    expect_metric(page, "second")
    page.go_back()
    expect_here(page, "Shares")
    expect_metric(page, "second")
    assert "/?metric=second" in page.url
    page.go_forward()
    expect_here(page, "Compare")


def test_links_of_other_pages_are_of_the_metric_that_was_chosen(page: Page) -> None:
    page.goto("/")
    expect_metric(page, "first")
    page.get_by_role("combobox", name="Metric").click()
    page.get_by_role("option", name="second").click()
    expect_metric(page, "second")
    expect(page).to_have_url(re.compile(r"\?metric=second$"))
    compare = pages(page).filter(has_text="Compare")
    expect(compare).to_have_attribute("href", "compare?metric=second")
    pages(page).filter(has_text="Privacy").click()
    expect_here(page, "Privacy")
    page.get_by_role("combobox", name="Metric").click()
    page.get_by_role("option", name="first").click()
    expect_metric(page, "first")
    expect(page).to_have_url(re.compile(r"/privacy\?metric=first$"))
    expect(compare).to_have_attribute("href", "compare?metric=first")
    # As a link that is opened in another window.
    page.goto("/compare?metric=second")
    expect_here(page, "Compare")
    expect(pages(page).first).to_have_attribute("href", "shares?metric=second")
    page.goto("/shares?metric=second")
    expect_here(page, "Shares")
    expect_metric(page, "second")


def test_a_tick_does_not_draw_the_links_again(page: Page) -> None:
    page.goto("/?every=2+s")
    expect_here(page, "Shares")
    page.evaluate("document.querySelector('.st-key-pages a').dataset.seen = 'yes'")
    said = page.locator(".hubbub .facts")
    before = said.inner_text()
    until(lambda: said.inner_text() != before)
    expect(pages(page).first).to_have_attribute("data-seen", "yes")
