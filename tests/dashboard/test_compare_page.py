"""The page that compares, in a real browser, over a real aggregator."""

import json
import re
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from hubbub.bundle import Bundle
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.processes import ServeProcess
from tests.typed import typed

HOUR = 3_600
HOSTILE = ("<script>throw 1</script>", "**bold** `code`", "مرحبا", "x" * 256)

METRICS = (
    make_metric("after"),
    make_metric("before"),
    make_metric("many", values=[f"value {i}" for i in range(128)], epsilon="4"),
    make_metric("hostile", values=HOSTILE),
    make_metric("repeated", starts=int(time.time()) - 2 * HOUR, periodic=(HOUR, 9, 24 * HOUR)),
    make_metric("alike", values="abcdefgh"),
    make_metric("empty", values=("yes", "no")),
)


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        answer(serve, bundle, "after", [0] * 900 + [1] * 100)
        answer(serve, bundle, "before", [0] * 300 + [1] * 700)
        close_round(serve, "after")
        close_round(serve, "before")
        answer(serve, bundle, "alike", [*range(8)] * 100)
        close_round(serve, "alike")
        answer(serve, bundle, "many", [7] * 900)
        answer(serve, bundle, "hostile", [0] * 500)
        answer(serve, bundle, "repeated", [2] * 300, number=0)
        answer(serve, bundle, "repeated", [3] * 300, number=1)
        yield serve


def expect_differences(page: Page, serve: ServeProcess, *compared: str) -> None:
    """Wait until the table's figures are those that `hubbub compare` prints."""
    there = ("--aggregator", serve.private, "--format", "json")
    report = json.loads(typed("compare", *compared, *there).stdout)
    names = ["estimate", "low", "high", "simultaneous_low", "simultaneous_high"]
    names += ["std_error"]
    if report["comparisons"] == 1:
        names = ["estimate", "low", "high", "std_error", "p_value"]
    page.wait_for_function(
        """expected => {
            const cells = [...document.querySelectorAll(".hubbub table data")];
            const shown = cells.map(cell => Number(cell.value));
            return JSON.stringify(shown) === JSON.stringify(expected);
        }""",
        arg=[row[name] for row in report["differences"] for name in names],
    )


def test_two_values_of_a_closed_round(page: Page, serve: ServeProcess) -> None:
    page.goto("/compare?metric=after")
    expect(page.locator(".answer strong")).to_contain_text(
        re.compile("^“\u2068excellent\u2069” is [0-9]+ points ahead of “\u2068good\u2069”")
    )
    expect(page.locator(".hubbub .badge")).to_contain_text("Final")
    expect_differences(page, serve, "after", "--left", "excellent", "--right", "good")
    expect(page.locator("tbody")).to_contain_text("yes")
    page.get_by_role("combobox", name="and another").click()
    page.get_by_role("option", name="poor").click()
    expect_differences(page, serve, "after", "--left", "excellent", "--right", "poor")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect_differences(page, serve, "after", "--left", "excellent", "--right", "poor")


def test_how_many_reports_would_tell_two_values_apart(page: Page, serve: ServeProcess) -> None:
    there = ("--aggregator", serve.private, "--format", "json")
    for left, right in combinations("abcdefgh", 2):
        found = json.loads(
            typed("compare", "alike", "--left", left, "--right", right, *there).stdout
        )
        (difference,) = found["differences"]
        # Not shown, and not as good as nothing.
        if 0.2 < abs(difference["estimate"]) / difference["std_error"] < 1.8:
            break
    page.goto(f"/compare?metric=alike&left={left}&right={right}")
    answer = page.locator(".answer")
    expect(answer).to_contain_text("cannot be told apart")
    expect(answer).to_contain_text(
        re.compile("some [0-9,]+ reports would be enough to show it in 4 of 5 collections")
    )


def test_two_rounds_are_preliminary_while_one_is_open(page: Page, serve: ServeProcess) -> None:
    page.goto("/compare?metric=repeated")
    page.get_by_role("radio", name="two rounds").click()
    expect_differences(page, serve, "repeated", "--rounds", "1", "0")
    expect(page.locator(".hubbub .badge")).to_contain_text("Preliminary")
    expect(page.locator(".answer strong")).to_contain_text("Preliminary: Round 1 has")
    expect(page.locator("tbody")).not_to_contain_text("yes")
    expect(page.locator(".hubbub.notes").first).to_contain_text("looks again and again")
    chart = page.locator("[role=graphics-document]")
    expect(chart).to_have_attribute("aria-label", re.compile("^Differences with 95.*preliminary"))


def test_two_metrics(page: Page, serve: ServeProcess) -> None:
    page.goto("/compare?compare=two+metrics&metric=after")
    expect_differences(page, serve, "after", "before")
    expect(page.locator(".answer strong")).to_contain_text("after has")
    expect(page.locator(".answer strong")).to_contain_text("of “\u2068excellent\u2069” than before")
    page.get_by_role("radio", name="Largest first").click()
    expect(page.locator("tbody th").first).to_have_text(re.compile("excellent|good"))


def test_nothing_to_compare_yet(page: Page) -> None:
    page.goto("/compare?metric=empty")
    expect(page.locator(".hubbub .badge")).to_contain_text("Nothing to compare yet")
    expect(page.locator(".hubbub table")).to_have_count(0)


def test_a_value_is_not_compared_with_itself(page: Page) -> None:
    page.goto("/compare?metric=after&right=excellent")
    expect(page.locator(".answer strong")).to_contain_text("ahead of “\u2068good\u2069”")


def test_files_are_those_of_the_command(page: Page, serve: ServeProcess, tmp_path: Path) -> None:
    page.goto("/compare?compare=two+metrics&metric=after")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "after-0-1000-vs-before-0-1000-differences.csv"
    download.value.save_as(tmp_path / "page.csv")
    there = ("--aggregator", serve.private, "--format", "csv")
    printed = typed("compare", "after", "before", *there).stdout
    assert (tmp_path / "page.csv").read_text("utf-8-sig").splitlines() == printed.splitlines()


def test_names_are_text_and_nothing_else_on_a_narrow_page(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"/compare?metric=hostile&right={HOSTILE[3]}")
    expect(page.locator(".answer strong")).to_contain_text(HOSTILE[0])
    page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")


def test_the_metric_follows_from_page_to_page(page: Page) -> None:
    page.goto("/?metric=repeated")
    expect(page.locator(".hubbub .name")).to_have_text("repeated")
    page.get_by_role("link", name="Compare").click()
    expect(page.locator(".hubbub .facts")).to_contain_text("of repeated")
    assert "metric=repeated" in page.url
