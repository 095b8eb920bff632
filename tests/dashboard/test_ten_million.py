"""Rounds of ten million reports, counted by a real aggregator and read off the page.

The soak part `ten-million`. The crowd is simulated by the SDK's law, with a fixed seed, and
comes unsealed: opening so many sealed reports would take half an hour.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from hubbub.bundle import Bundle
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import close_round, read_estimates
from tests.dashboard.multitude import answer_plainly
from tests.dashboard.test_page import expect_shares, expect_state
from tests.processes import ServeProcess
from tests.typed import typed

pytestmark = pytest.mark.soak

DAY = 86_400
NAME = "visits"
MILLION = 1_000_000
N = 10 * MILLION
VALUES = [f"{number} visits" for number in range(16)]
# Devices by value: each has half as many as the one before, and the last two nobody at all.
BEFORE = [N >> number + 1 for number in range(14)]
BEFORE[0] += N - sum(BEFORE)
BEFORE += [0, 0]
# Of everybody, 1 % went from no visit to one.
AFTER = [BEFORE[0] - N // 100, BEFORE[1] + N // 100, *BEFORE[2:]]


def ten_million(folder: Path) -> Iterator[ServeProcess]:
    """An aggregator with two closed rounds of them."""
    operator, path = Operator.create(folder / "keys"), folder / "metrics.hubbub"
    starts = int(time.time()) - 2 * DAY
    path.write_bytes(
        operator.sign(
            [
                make_metric(
                    NAME,
                    question="How often did you see a doctor this year?",
                    values=VALUES,
                    starts=starts,
                    periodic=(DAY, 2, 90 * DAY),
                )
            ]
        )
    )
    metric = Bundle.load(path, operator_key=operator.key).metrics[NAME]
    store = folder / "reports.sqlite3"
    with ServeProcess(operator, path, store, flags=["--take-plain"]) as serve:
        for number, devices in enumerate((BEFORE, AFTER)):
            answer_plainly(serve, metric, devices, number=number, seed=number)
            close_round(serve, NAME, number)
        yield serve


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    yield from ten_million(tmp_path_factory.mktemp("millions"))


def asked(serve: ServeProcess, *arguments: object) -> dict[str, Any]:
    """What a command says as JSON."""
    run = typed(*arguments, "--aggregator", serve.private, "--format", "json")
    assert run.returncode == 0, run.stderr
    record: dict[str, Any] = json.loads(run.stdout)
    return record


def expect_figures(page: Page, region: str, expected: list[float]) -> None:
    """Wait until a table's machine-readable figures are these, all and exactly."""
    page.wait_for_function(
        """([region, expected]) => {
            const cells = [...document.querySelectorAll(`[aria-label="${region}"] data`)];
            return JSON.stringify(cells.map(cell => Number(cell.value))) ===
                JSON.stringify(expected);
        }""",
        arg=[region, expected],
    )


def test_every_report_is_counted_once(serve: ServeProcess) -> None:
    for number, devices in enumerate((BEFORE, AFTER)):
        found = asked(serve, "estimate", NAME, "--round", number)
        assert found["n"] == N
        for value, count in zip(found["values"], devices, strict=True):
            assert abs(value["estimate"] - count / N) < 5 * value["std_error"]


def test_shares(page: Page, serve: ServeProcess) -> None:
    page.goto(f"/?metric={NAME}")
    expect_state(page, "Closed")
    expect_shares(page, read_estimates(serve, NAME))
    found = asked(serve, "estimate", NAME)["values"]
    assert [value["estimate"] for value in found] == [
        value.estimate for value in read_estimates(serve, NAME).values
    ]
    expect(page.locator(".hubbub .facts b")).to_have_text("10,000,000")
    present = sum(value["found"] for value in found)
    expect(page.locator(".answer strong")).to_contain_text(f"{present} of 16 values")
    # Some 0.06 points of error: two decimals, and none that pretend to more.
    for row, value in zip(page.locator("tbody tr").all(), found, strict=True):
        expect(row).to_contain_text(f"{100 * value['estimate']:z.2f}".replace("-", "−"))


def test_over_time(page: Page, serve: ServeProcess) -> None:
    page.goto(f"/over-time?metric={NAME}")
    found = asked(serve, "compare", NAME, "--rounds", 1, 0)["differences"]
    assert [row["left"] for row in found if row["distinguishable"]] == VALUES[:2]
    answer = page.locator(".answer strong")
    for row, verb in zip(found, ("fell", "rose"), strict=False):
        size = f"{100 * abs(row['estimate']):.2f} points"
        expect(answer).to_contain_text(f"“\u2068{row['left']}\u2069” {verb} by {size}")
    expect_figures(page, "Changes", [row["estimate"] for row in by_size(found[:2])])
    shown = asked(serve, "estimate", NAME)["values"]
    rows = page.get_by_role("region", name="Rounds").locator("tbody tr")
    expect(rows).to_have_count(2)
    for row in rows.all():
        expect(row).to_contain_text("10,000,000")
    for value in shown[:5]:
        low, high = (100 * value[f"simultaneous_{end}"] for end in ("low", "high"))
        said = f"{100 * value['estimate']:z.2f}\u202f% ({low:.2f} to {high:.2f})"
        expect(rows.first).to_contain_text(said)


def by_size(differences: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(differences, key=lambda row: -abs(row["estimate"]))


def test_compare(page: Page, serve: ServeProcess) -> None:
    found = asked(serve, "compare", NAME, "--rounds", 1, 0)["differences"]
    page.goto(f"/compare?metric={NAME}&compare=two+rounds")
    size = f"{100 * abs(by_size(found)[0]['estimate']):.2f} points"
    expect(page.locator(".answer strong")).to_contain_text(size)
    expect(page.locator(".hubbub .facts b").first).to_have_text("10,000,000")
    names = ("estimate", "low", "high", "simultaneous_low", "simultaneous_high", "std_error")
    expect_figures(page, "Differences", [row[name] for row in found for name in names])


def test_privacy(page: Page, serve: ServeProcess) -> None:
    page.goto(f"/privacy?metric={NAME}")
    expect(page.locator(".hubbub .facts b")).to_have_text("10,000,000")
    # So many that it can be seen, and not so many that nothing would be left.
    influence = asked(serve, "estimate", NAME)["values"][0]["influence"]
    expect(page.locator(".answer").last).to_contain_text(
        f"If 10,000 of these 10,000,000 reports (0.10\u202f%) were hostile, each share could be "
        f"off by up to ±{100 * 10_000 * influence:.2f} points."
    )
    slider = page.get_by_role("slider", name="Hostile reports")
    slider.focus()
    slider.press("ArrowRight")
    expect(page.locator(".answer").last).to_contain_text("If 20,000 of these 10,000,000 reports")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".answer").last).to_contain_text("If 20,000 of these 10,000,000 reports")
    expect(slider).to_have_attribute("aria-valuetext", "20,000")
