"""The page about planning in a real browser, with no aggregator anywhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hubbub.bundle import Bundle
from hubbub_dashboard.planning import sentences
from hubbub_dashboard.planning.question import Question, answered
from tests.aggregator.test_plan import run
from tests.bundles import Operator
from tests.dashboard.pages import DashboardProcess, watched_page

NOWHERE = "127.0.0.1:9"


@pytest.fixture(scope="module")
def dashboard() -> Iterator[DashboardProcess]:
    with DashboardProcess(NOWHERE) as dashboard:
        yield dashboard


@pytest.fixture
def page(browser: Browser, dashboard: DashboardProcess) -> Iterator[Page]:
    with watched_page(browser, dashboard.url) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield page


def expect_answer(page: Page, question: Question) -> None:
    said = sentences.answer(answered(question)).replace(" %", "\u202f%")
    expect(page.locator(".answer strong")).to_have_text(said)


def test_the_copied_metric_is_the_one_that_was_planned(page: Page, tmp_path: Path) -> None:
    link = "/plan?asked=a+sample+of+rounds&rounds=365&names=tea%0A%3Cb%3Ecoffee%0A%22milk%22"
    page.goto(f"{link}&epsilon=ln+3&reports=1000000")
    names = ("tea", "<b>coffee", '"milk"')
    question = Question(3, "ln 3", 1_000_000, names, rounds=365, join=8)
    expect_answer(page, question)
    expect(page.get_by_label("Values", exact=True)).to_be_disabled()
    expect(page.locator("tr.picked").last).to_contain_text(
        answered(question).prospects[0].mechanism.name
    )
    page.locator(".stCode").hover()
    page.get_by_role("button", name="Copy to clipboard").click()
    operator = Operator.create(tmp_path / "keys")
    definitions = tmp_path / "metrics.toml"
    definitions.write_text(page.evaluate("navigator.clipboard.readText()"), encoding="utf-8")
    bundle = tmp_path / "metrics.hubbub"
    run("sign", str(definitions), "--keys", str(operator.folder), "-o", str(bundle))
    signed = Bundle.load(bundle, operator_key=operator.key)
    (metric,) = signed.metrics.values()
    assert metric.domain.labels == names
    assert metric.epsilon.text == "ln 3"
    assert metric.mechanism == answered(question).prospects[0].mechanism


def test_another_crowd_is_in_the_link(page: Page) -> None:
    page.goto("/plan?crowd=5&see=5")
    expect(page.get_by_text("This is crowd 5;")).to_be_visible()
    expect(page.locator(".sentence")).to_contain_text("about 13,300 reports")
    chart = page.locator("[role=graphics-document]")
    expect(chart).to_have_attribute("aria-label", re.compile("^A made-up crowd"))
    page.get_by_role("button", name="Another crowd").click()
    expect(page.get_by_text("This is crowd 6;")).to_be_visible()
    expect(page).to_have_url(re.compile("crowd=6"))
    expect(page).to_have_url(re.compile("see=5"))


def test_what_is_typed_is_answered_or_refused_in_the_commands_words(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"/plan?names=tea%0A{'x' * 256}")
    expect_answer(page, Question(2, "1", 10_000))
    expect(page.locator(".stCode")).to_be_visible()
    page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")
    epsilon = page.get_by_role("textbox", name="ε of a report")
    epsilon.fill("x")
    epsilon.press("Enter")
    expect(page.locator(".hubbub.status")).to_contain_text(
        'hubbub plan says: --epsilon: ε must be decimal text such as "1", "0.5" or "ln 3"'
    )
    expect(page.locator(".hubbub table")).to_have_count(0)
    epsilon.fill("2")
    epsilon.press("Enter")
    expect_answer(page, Question(2, "2", 10_000))
    expect(page).to_have_url(re.compile("epsilon=2"))


def test_many_values_are_a_file(page: Page) -> None:
    page.goto("/plan?values=300")
    expect_answer(page, Question(300, "1", 10_000))
    with page.expect_download() as download:
        page.get_by_role("button", name="metrics.toml, 300 values").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert '"value-300"' in text
