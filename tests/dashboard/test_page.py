"""The page in a real browser, over a real aggregator."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pyarrow import parquet

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2
from hubbub_dashboard import text
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round, read_estimates
from tests.processes import ServeProcess
from tests.typed import typed

HOUR = 3_600
HOSTILE = ("<script>throw 1</script>", "**bold** :red[x]", "مرحبا", "x" * 256)

METRICS = (
    make_metric("open"),
    make_metric("waiting"),
    make_metric("any-text", open=True),
    make_metric("closed"),
    make_metric("empty"),
    make_metric("hostile", values=HOSTILE, question="<b>Which</b> **one**?"),
    make_metric("repeated", starts=int(time.time()) - 2 * HOUR, periodic=(HOUR, 9, 24 * HOUR)),
    make_metric("large", values=[f"value {i}" for i in range(128)], epsilon="4"),
)


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        answer(serve, bundle, "open", [0] * 600 + [1] * 400)
        answer(serve, bundle, "any-text", [7] * 100)
        answer(serve, bundle, "closed", [3] * 142)
        answer(serve, bundle, "hostile", [0] * 500)
        answer(serve, bundle, "large", [7] * 900 + [11] * 100)
        answer(serve, bundle, "repeated", [2] * 300, number=1)
        close_round(serve, "closed")
        close_round(serve, "empty")
        yield serve


def expect_shares(page: Page, estimates: estimate_pb2.Estimates) -> None:
    """Wait until the table's machine-readable shares are these, all and exactly."""
    page.wait_for_function(
        """expected => {
            const cells = [...document.querySelectorAll(".hubbub table data")];
            const shown = cells.map(cell => Number(cell.value));
            return JSON.stringify(shown) === JSON.stringify(expected);
        }""",
        arg=[
            share
            for value in estimates.values
            for share in (
                value.estimate,
                value.low,
                value.high,
                value.simultaneous_low,
                value.simultaneous_high,
            )
        ],
    )


def expect_state(page: Page, word: str) -> None:
    expect(page.locator(".hubbub .badge")).to_contain_text(word)


def test_figures_are_those_of_the_private_listener(page: Page, serve: ServeProcess) -> None:
    estimates = read_estimates(serve, "open")
    page.goto("/?metric=open")
    expect_state(page, "Open")
    expect(page.locator("h1")).to_have_text("How do you rate your own health?")
    expect(page.locator(".hubbub .facts")).to_contain_text(f"{estimates.n:,} reports")
    expect(page.locator(".hubbub .facts")).to_contain_text(text.clock(estimates.as_of))
    provenance = page.locator(".hubbub.provenance")
    for fact in (
        estimates.mechanism,
        estimates.epsilon.declared,
        estimates.epsilon.realised,
        estimates.digest.hex()[:16],
    ):
        expect(provenance).to_contain_text(fact)
    expect_shares(page, estimates)
    doubts = page.locator("tbody tr", has_text=text.doubt(final=False))
    expect(doubts).to_have_count(sum(not value.found for value in estimates.values))
    expect(page.locator(".hubbub.notes").first).to_contain_text("Watching is testing")
    # What a screen reader hears in place of the chart.
    chart = page.locator("[role=graphics-document]")
    expect(chart).to_have_attribute(
        "aria-label", re.compile("^Estimated shares with 95.*excellent")
    )
    # One point for each value, and the zero line in each row.
    for value in estimates.values:
        expect(chart).to_contain_text(value.value)


def test_sorting_changes_the_order_and_draws_simultaneous_intervals(
    page: Page, serve: ServeProcess
) -> None:
    page.goto("/?metric=open")
    page.get_by_role("radio", name="Largest first").click()
    expect(page.locator(".hubbub.notes").first).to_contain_text("hold all at once")
    largest = max(read_estimates(serve, "open").values, key=lambda value: value.estimate)
    expect(page.locator("tbody th").first).to_have_text(largest.value)
    assert "order=Largest" in page.url


def test_shares_among_everybody_are_less_sure(page: Page, serve: ServeProcess) -> None:
    page.goto("/?metric=open")
    page.get_by_role("radio", name="population").click()
    expect_shares(page, read_estimates(serve, "open", estimate_pb2.TARGET_POPULATION))
    expect(page.locator(".hubbub.notes").first).to_contain_text("among all devices")
    assert "among=population" in page.url


def test_parts_of_a_whole_have_no_intervals(page: Page, serve: ServeProcess) -> None:
    estimates = read_estimates(serve, "open")
    page.goto("/?metric=open")
    page.get_by_text("As parts of a whole").click()
    expect(page.locator(".hubbub.notes").first).to_contain_text(
        "parts of a whole, and nothing else"
    )
    chart = page.locator("[role=graphics-document]")
    expect(chart).to_have_attribute("aria-label", re.compile("^Shares as parts of a whole, 4 of 4"))
    parts = page.locator("tbody tr td:nth-child(2) data")
    expect(parts).to_have_count(len(estimates.values))
    shown = [float(part.get_attribute("value") or "") for part in parts.all()]
    assert shown == [value.consistent for value in estimates.values]
    assert sum(shown) == pytest.approx(1)
    assert "whole=true" in page.url


def test_files_are_those_of_the_command(page: Page, serve: ServeProcess, tmp_path: Path) -> None:
    page.goto("/?metric=open")
    expect_shares(page, read_estimates(serve, "open"))
    for label, suffix in (("CSV", "csv"), ("Parquet", "parquet")):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download {label}").click()
        assert download.value.suggested_filename == f"open-0-1000.{suffix}"
        download.value.save_as(tmp_path / f"page.{suffix}")
    there = ("--aggregator", serve.private)
    printed = typed("estimate", "open", "--format", "csv", *there).stdout
    # Told to spreadsheets by its mark.
    assert (tmp_path / "page.csv").read_text("utf-8-sig").splitlines() == printed.splitlines()
    typed("estimate", "open", "--to-parquet", str(tmp_path / "typed.parquet"), *there)
    page_table, typed_table = (
        parquet.read_table(tmp_path / f"{source}.parquet") for source in ("page", "typed")
    )
    assert page_table.equals(typed_table, check_metadata=True)


def test_waiting_says_what_for_and_not_how_many_there_are(page: Page) -> None:
    page.goto("/?metric=waiting")
    expect_state(page, "Waiting for the first snapshot")
    expect(page.locator(".hubbub.status")).to_contain_text("at least 100 reports")
    expect(page.locator(".hubbub table")).to_have_count(0)


def test_an_open_domain_shows_no_values_and_how_to_look_for_some(page: Page) -> None:
    page.goto("/?metric=any-text")
    expect_state(page, "Open")
    expect(page.locator(".hubbub .facts")).to_contain_text("100 reports")
    expect(page.locator(".open-domain code")).to_have_text(
        "hubbub estimate any-text --candidates FILE"
    )
    expect(page.locator(".hubbub.provenance")).to_contain_text("local-hashing")
    expect(page.locator(".hubbub table")).to_have_count(0)


def test_closed(page: Page, serve: ServeProcess) -> None:
    page.goto("/?metric=closed")
    expect_state(page, "Closed")
    expect(page.locator(".hubbub .facts")).to_contain_text("142 reports")
    expect_shares(page, read_estimates(serve, "closed"))


def test_closed_without_reports(page: Page) -> None:
    page.goto("/?metric=empty")
    expect_state(page, "Closed")
    expect(page.locator(".hubbub.status")).to_contain_text(
        "with no reports, or its counts were forgotten"
    )


def test_a_round_can_be_chosen_and_its_link_shows_it_again(page: Page) -> None:
    page.goto("/?metric=repeated")
    # Round 2 is open too, but 1 is the newest with a snapshot.
    expect(page.locator(".hubbub .facts")).to_contain_text("300 reports")
    page.get_by_role("combobox", name="Round").click()
    page.get_by_role("option", name="2", exact=True).click()
    expect_state(page, "Waiting for the first snapshot")
    link = page.url
    assert "round=2" in link
    page.goto("about:blank")
    page.goto(link)
    expect_state(page, "Waiting for the first snapshot")


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("/?metric=closed&every=&among=&order=", "respondents"),
        ("/over-time?metric=repeated&every=&among=&newest=", "respondents"),
        ("/compare?metric=closed&every=&among=&compare=", "two values"),
        ("/plan?asked=", "once"),
        ("/plan?values=inf", "A number in this link is infinite."),
        ("/plan?asked=every+round&rounds=-1e999", "A number in this link is infinite."),
    ],
)
def test_a_link_that_says_nothing_is_not_an_error(page: Page, link: str, shown: str) -> None:
    page.goto(link)
    expect(page.locator(".hubbub.answer, .hubbub.status").first).to_be_visible()
    expect(page.get_by_text(shown, exact=True).first).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_what_is_planned_is_not_what_is_drawn_over_time(page: Page) -> None:
    page.goto("/plan?values=9&asked=every+round&rounds=17")
    expect(page.locator(".hubbub.answer")).to_be_visible()
    page.get_by_role("link", name="Over time", exact=True).click()
    expect(page).to_have_url(re.compile("/over-time"))
    expect(page.get_by_text("Values drawn").first).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_labels_are_text_and_nothing_else(page: Page) -> None:
    page.goto("/?metric=hostile")
    expect(page.locator("h1")).to_have_text("<b>Which</b> **one**?")
    expect(page.locator("tbody th")).to_have_text(list(HOSTILE))


def test_a_large_domain_shows_its_largest_and_says_so(page: Page, serve: ServeProcess) -> None:
    page.goto("/?metric=large")
    notes = page.locator(".hubbub.notes").first
    expect(notes).to_contain_text("The 50 largest estimates of 128 are shown.")
    expect(notes).to_contain_text("hold all at once")
    values = sorted(read_estimates(serve, "large").values, key=lambda value: -value.estimate)
    expect(page.locator("tbody th")).to_have_text([value.value for value in values[:50]])
    page.get_by_text("All 128 values").click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()


def test_narrow_pages_do_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/?metric=hostile")
    expect(page.locator("tbody th")).to_have_count(len(HOSTILE))
    page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")
