"""Over time in a real browser, over a real aggregator: rounds with and without a change."""

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from hubbub.bundle import Bundle
from hubbub_dashboard import text
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.processes import ServeProcess
from tests.typed import typed

DAY = 86_400
# The fifth round is half over.
STARTS = int(time.time()) - 4 * DAY - DAY // 2
DAILY = (DAY, 9, 90 * DAY)
# Of 800: nothing changes from round 0 to 1; round 2 has no reports; round 4 is open.
CROWDS = {0: (400, 300, 100), 1: (400, 300, 100), 3: (150, 300, 350), 4: (700, 50, 50)}

METRICS = (
    make_metric(
        "daily", values=("good", "fair", "poor"), epsilon="2", starts=STARTS, periodic=DAILY
    ),
    make_metric("growing", values=("yes", "no"), starts=STARTS, periodic=DAILY),
    make_metric(
        "large",
        values=[f"<i>{number}</i>" for number in range(60)],
        epsilon="6",
        starts=STARTS,
        periodic=DAILY,
    ),
    make_metric("once"),
    make_metric("any-text", open=True, starts=STARTS, periodic=DAILY),
)


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    store = bundle_file.with_name("reports.sqlite3")
    with ServeProcess(operator, bundle_file, store) as first:
        for number, crowd in CROWDS.items():
            answer(first, bundle, "daily", of(*crowd), number=number)
        for number in range(4):
            close_round(first, "daily", number)
        for number, yes in ((0, 700), (1, 700), (3, 100)):
            answer(first, bundle, "growing", of(yes, 800 - yes), number=number)
        for number in (0, 1):
            close_round(first, "growing", number)
            crowd = (0, *[10] * 57, 2_000 - 1_900 * number, 100 + 1_900 * number)
            answer(first, bundle, "large", of(*crowd), number=number)
            close_round(first, "large", number)
        first.terminate()
    # What is asked stays the same, and the operator signs again.
    bundle_file.write_bytes(operator.sign(METRICS, revision=2))
    with ServeProcess(operator, bundle_file, store) as serve:
        yield serve


def of(*counts: int) -> list[int]:
    """So many of each value."""
    return [value for value, count in enumerate(counts) for _ in range(count)]


def asked(serve: ServeProcess, *arguments: object) -> dict[str, Any]:
    """What a command says as JSON."""
    run = typed(*arguments, "--aggregator", serve.private, "--format", "json")
    assert run.returncode == 0, run.stderr
    record: dict[str, Any] = json.loads(run.stdout)
    return record


def shown(page: Page, region: str) -> list[float]:
    """A table's machine-readable figures, all of their digits."""
    cells = page.get_by_role("region", name=region).locator("data")
    expect(cells.first).to_be_attached()
    return [float(figure) for figure in cells.evaluate_all("cells => cells.map(c => c.value)")]


def expect_answer(page: Page, said: str) -> None:
    expect(page.locator(".answer strong")).to_contain_text(said)


@pytest.mark.parametrize("target", ["respondents", "population"])
def test_figures_are_those_of_the_commands(page: Page, serve: ServeProcess, target: str) -> None:
    page.goto(f"/over-time?metric=daily&among={target}")
    expect_answer(page, "Since round 1, ")
    expected = []
    for number in reversed(CROWDS):
        found = asked(serve, "estimate", "daily", "--round", number, "--target", target)
        for value in found["values"]:
            expected += [value["estimate"], value["simultaneous_low"], value["simultaneous_high"]]
    page.wait_for_function(
        "n => document.querySelectorAll('[aria-label=Rounds] data').length === n",
        arg=len(expected),
    )
    assert shown(page, "Rounds") == expected

    # Two steps are looked at, and all three values.
    found = asked(
        serve,
        *("compare", "daily", "--rounds", 3, 1, "--target", target, "--level", 1 - 0.05 / 2),
    )
    changed = [row for row in found["differences"] if row["distinguishable"]]
    assert {row["left"] for row in changed} == {"good", "poor"}
    changed.sort(key=lambda row: -abs(row["estimate"]))
    assert shown(page, "Changes") == [row["estimate"] for row in changed]
    places = text.decimals([min(row["std_error"] for row in found["differences"])])
    for row in changed:
        low, high = sorted(abs(row[f"simultaneous_{end}"]) for end in ("low", "high"))
        size = text.points(abs(row["estimate"]), places)
        verb = "rose" if row["estimate"] > 0 else "fell"
        said = f"{text.quoted(row['left'])} {verb} by {size} ({text.interval(low, high, places)})"
        expect_answer(page, said)


def test_gaps_open_rounds_and_revisions_are_told(page: Page) -> None:
    page.goto("/over-time?metric=daily")
    notes = page.locator(".hubbub.notes").first
    expect(notes).to_contain_text("Nothing is drawn of round 2 (closed with no reports")
    expect(notes).to_contain_text("Round 4 is still open and drawn hollow: preliminary.")
    expect(notes).to_contain_text("Watching is testing")
    expect(notes).to_contain_text("Revision 2 of the bundle came into force during round 4")
    expect(notes).to_contain_text("3 values and 2 steps at once")
    rows = page.get_by_role("region", name="Rounds").locator("tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.first).to_contain_text("still open; revision 2 came")
    # However much it looks like a change.
    expect(rows.first).not_to_contain_text("▲")
    expect(rows.nth(2)).to_contain_text("no figures")
    charts = page.locator("[role=graphics-document]")
    expect(charts).to_have_count(3)
    expect(charts.first).to_have_attribute(
        "aria-label",
        re.compile("^Share of “.good.” by round.*It fell by .* between rounds 1 and 3"),
    )


def test_a_round_that_closes_becomes_a_step(page: Page, serve: ServeProcess) -> None:
    page.goto("/over-time?metric=growing&every=2+s")
    expect_answer(page, "Between rounds 0 and 1 nothing changed that can be told from the noise.")
    close_round(serve, "growing", 3)
    expect_answer(page, "Since round 1, ")
    expect_answer(page, "“\u2068yes\u2069” fell by")
    expect_answer(page, "“\u2068no\u2069” rose by")


def test_a_link_shows_the_same_again(page: Page) -> None:
    page.goto("/over-time?metric=large")
    expect_answer(page, "Since round 0")
    notes = page.locator(".hubbub.notes").first
    expect(notes).to_contain_text("5 of 60 values are drawn")
    page.get_by_role("combobox", name="Values drawn").fill("<i>7</i>")
    page.get_by_role("option", name="<i>7</i>").click()
    expect(notes).to_contain_text("1 of 60 values is drawn")
    # What changed is named although it is drawn no more.
    expect_answer(page, "Not drawn below:")
    expect_answer(page, "<i>58</i>")
    link = page.url
    assert "drawn=" in link
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("h2.panel bdi")).to_have_text(["<i>7</i>"])
    page.get_by_text("All 60 values", exact=True).click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(page.get_by_role("button", name="Download CSV")).to_be_visible()


def test_files_have_every_round_and_value(page: Page, tmp_path: Path) -> None:
    page.goto("/over-time?metric=daily")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "daily-0-to-4.csv"
    download.value.save_as(tmp_path / "page.csv")
    lines = (tmp_path / "page.csv").read_text("utf-8-sig").splitlines()
    assert len(lines) == 1 + 3 * len(CROWDS)


@pytest.mark.parametrize(
    ("name", "said"),
    [("once", "is asked once"), ("any-text", "hubbub estimate any-text --candidates FILE")],
)
def test_metrics_that_have_no_rounds_to_show(page: Page, name: str, said: str) -> None:
    page.goto(f"/over-time?metric={name}")
    expect(page.locator(".stMain")).to_contain_text(said)
    expect(page.locator(".hubbub table")).to_have_count(0)


LOOK = """name => {
    const region = document.querySelector(`[role=region][aria-label="${name}"]`);
    const {boxShadow} = getComputedStyle(region);
    return {
        wider: region.scrollWidth > region.clientWidth,
        left: region.scrollLeft,
        hint: getComputedStyle(region, "::before").display !== "none",
        shades: boxShadow === "none" ? 0 : boxShadow.split("inset").length - 1,
    };
}"""


def expect_look(page: Page, region: str, **expected: object) -> None:
    """Wait until a table's region looks so."""
    expect(page.get_by_role("region", name=region)).to_be_visible()
    page.wait_for_function(
        f"([name, expected]) => {{ const look = ({LOOK})(name);"
        " return Object.entries(expected).every(([key, value]) => look[key] === value); }",
        arg=[region, expected],
    )


def test_a_table_that_goes_on_sideways_says_so_and_scrolls_by_keyboard(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    drawn = "&drawn=".join(f"%3Ci%3E{number}%3C%2Fi%3E" for number in range(6))
    page.goto(f"/over-time?metric=large&drawn={drawn}")
    expect_look(page, "Rounds", wider=True, hint=True, shades=1)
    region = page.get_by_role("region", name="Rounds")
    region.focus()
    region.press("ArrowRight")
    page.wait_for_function(f"({LOOK})('Rounds').left > 0")
    expect_look(page, "Rounds", hint=True, shades=2)
    region.evaluate("region => { region.scrollLeft = region.scrollWidth; }")
    expect_look(page, "Rounds", hint=True, shades=1)
    # One that has all the room it needs does not.
    page.goto("/over-time?metric=growing")
    expect_look(page, "Rounds", wider=False, hint=False, shades=0)


@pytest.mark.parametrize(("width", "names"), [(1280, 5), (390, 2), (360, 2)])
def test_rounds_are_named_side_by_side(page: Page, width: int, names: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/over-time?metric=daily")
    labels = page.locator("[role=graphics-document]").last.locator("text", has_text="round ")
    expect(labels).to_have_count(names)
    boxes = [label.bounding_box() for label in labels.all()]
    edges = sorted((box["x"], box["x"] + box["width"]) for box in boxes if box is not None)
    assert len(edges) == names
    assert edges[0][0] >= 0
    assert edges[-1][1] <= width
    assert all(end < begin for (_, end), (begin, _) in pairwise(edges))


def test_narrow_pages_do_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/over-time?metric=daily")
    expect(page.locator("[role=graphics-document]")).to_have_count(3)
    page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")


# The last one: the aggregator does not come back.
def test_the_last_figures_stay_when_the_aggregator_goes_away(
    page: Page, serve: ServeProcess
) -> None:
    page.goto("/over-time?metric=daily&every=2+s")
    expect_answer(page, "Since round 1, ")
    serve.kill()
    expect(page.locator(".badge")).to_contain_text("Aggregator away")
    expect_answer(page, "Since round 1, ")
    expect(page.locator("[role=graphics-document]")).to_have_count(3)
