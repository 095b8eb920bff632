"""The page about privacy in a real browser, over a real aggregator, and over one that lies."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from playwright.sync_api import Browser, Page, expect

from hubbub.bundle import Bundle
from hubbub.contract import parse_metric
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_dashboard import text
from hubbub_dashboard.privacy import attack
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round, read_estimates
from tests.dashboard.pages import DashboardProcess, watched_page
from tests.processes import ServeProcess
from tests.typed import typed

HOUR = 3_600
NOW = int(time.time())
SERIES: dict[str, Any] = {"starts": NOW - HOUR, "periodic": (24 * HOUR, 365, 24 * HOUR)}
HOSTILE = ("<script>throw 1</script>", "**bold** :red[x]", "مرحبا", "x" * 256)

METRICS = (
    make_metric("closed"),
    make_metric("sibling", periodic=(HOUR, 7, HOUR), starts=NOW + HOUR, epsilon="0.5"),
    make_metric("waiting", source="other", mechanism="symmetric-unary"),
    make_metric("any-text", source="other", open=True),
    make_metric("memo", source="mood", mechanism="memoised-local-hashing", permanent="2", **SERIES),
    make_metric("sampled", source="sleep", epsilon="ln 3", join=8, **SERIES),
    make_metric("few", source="fourth"),
    make_metric("hostile", source="third", values=HOSTILE, question="<b>Which</b> **one**?"),
)

# What a device is charged, and how many figures of odds there are.
CHARGES = {
    "closed": ("ε = 1, once.", 8),
    "sibling": ("ε = 0.5 for every report, at most ε = 3.5 in all for 7 rounds.", 16),
    "waiting": ("ε = 1, once.", 8),
    "any-text": ("ε = 1, once.", 8),
    "memo": (
        "ε = 4, charged before its first report, for a memo of 2 rows at ε = 2 each. No report "
        "adds to it.",
        16,
    ),
    "sampled": (
        "ε ≈ 8.788898, charged before its first report, for 8 of 365 rounds at ε = ln 3 each.",
        # Of one prior, nothing is certain any more.
        14,
    ),
}


class World:
    """An aggregator that counted some reports, and its page."""

    def __init__(self, folder: Path, serve: ServeProcess, dashboard: DashboardProcess) -> None:
        self.bundle_file = folder / "metrics.hubbub"
        self.store = folder / "reports.sqlite3"
        self.serve = serve
        self.dashboard = dashboard
        self.bundle = Bundle.load(self.bundle_file, operator_key=serve.operator.key)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    operator = Operator.create(folder / "keys")
    (folder / "metrics.hubbub").write_bytes(operator.sign(METRICS))
    with (
        ServeProcess(operator, folder / "metrics.hubbub", folder / "reports.sqlite3") as serve,
        DashboardProcess(serve.private) as dashboard,
    ):
        world = World(folder, serve, dashboard)
        answer(serve, world.bundle, "closed", [0] * 900 + [1] * 100)
        answer(serve, world.bundle, "any-text", [7] * 500)
        answer(serve, world.bundle, "memo", [1] * 300)
        answer(serve, world.bundle, "hostile", [0] * 500)
        answer(serve, world.bundle, "few", [0] * 12)
        close_round(serve, "closed")
        close_round(serve, "few")
        yield world


@pytest.fixture
def page(browser: Browser, world: World) -> Iterator[Page]:
    with watched_page(browser, world.dashboard.url) as page:
        yield page


def expect_charge(page: Page, sentence: str) -> None:
    said = sentence.replace("ε = ", "ε\u00a0=\u00a0")
    expect(page.locator(".answer").first).to_contain_text(
        f"In ε, the measure of privacy lost: {said}"
    )


@pytest.mark.parametrize("name", CHARGES)
def test_what_it_cost_the_device_and_the_proof_are_certifys(
    page: Page, world: World, name: str
) -> None:
    sentence, figures = CHARGES[name]
    page.goto(f"/privacy?metric={name}")
    expect_charge(page, sentence)
    expect(
        page.get_by_role("region", name="How sure somebody can be").locator("data")
    ).to_have_count(figures)
    printed = typed("certify", world.bundle_file, "--format", "json").stdout
    proof = next(each for each in json.loads(printed)["metrics"] if each["name"] == name)
    expect(page.locator(".part", has_text="The proof")).to_contain_text(proof["epsilon_realised"])
    page.get_by_text("Digest and fractions in full").click()
    for index, known in enumerate(
        [proof["digest"], proof["ratio"], *filter(None, [proof.get("ratio_permanent")])]
    ):
        expect(page.locator(".stCode code").nth(index)).to_have_text(known)


def test_the_slider_moves_the_figures_and_the_link_shows_them_again(
    page: Page, world: World
) -> None:
    page.goto("/privacy?metric=closed")
    verdict = page.locator(".answer").last
    expect(verdict).to_contain_text("If 10 of these 1,000 reports (1.0")
    slider = page.get_by_role("slider", name="Hostile reports")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    expect(verdict).to_contain_text("If 50 of these 1,000 reports (5.0")
    estimates = read_estimates(world.serve, "closed")
    influence = estimates.values[0].influence
    expect(verdict).to_contain_text(f"±{text.points_at_most(50 * influence)}")
    expect(verdict).to_contain_text("Even then “\u2068excellent\u2069” would still be above zero")
    # The table is drawn after the sentence.
    region = page.get_by_role("region", name="With hostile reports")
    expect(region).to_contain_text("with 50 hostile")
    table = region.locator("data")
    expect(table).to_have_count(5 * len(estimates.values))
    shown = [float(cell.get_attribute("value") or "") for cell in table.all()]
    support = world.bundle.metrics["closed"].mechanism.support
    for row, value in enumerate(estimates.values):
        share, low, high, least, most = shown[5 * row : 5 * row + 5]
        assert (share, low, high) == (value.estimate, value.low, value.high)
        assert least < low < high < most
        reach = 50 * attack.influence(support, estimates.n)
        assert low - least == pytest.approx(reach, rel=0.1)
    chart = page.locator("[role=graphics-document]")
    expect(chart).to_have_attribute("aria-label", re.compile("if 50 of 1,000 reports were hostile"))
    link = page.url
    assert "hostile=50" in link
    page.goto("about:blank")
    page.goto(link)
    expect(verdict).to_contain_text("If 50 of these 1,000 reports")


def test_what_shares_a_budget_is_listed(page: Page) -> None:
    page.goto("/privacy?metric=closed")
    rows = page.get_by_role("region", name="Metrics of the same source").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("sibling")
    expect(rows.locator("td")).to_have_text(["0.5", "3.5"])
    page.goto("/privacy?metric=memo")
    expect(page.get_by_text("No other metric of this aggregator asks")).to_be_visible()
    expect(page.locator(".hubbub.owner").first).to_contain_text("Not protected")


def test_before_any_report_and_without_any_values(page: Page, world: World) -> None:
    page.goto("/privacy?metric=waiting")
    expect(page.locator(".badge")).to_contain_text("Waiting for the first snapshot")
    support = world.bundle.metrics["waiting"].mechanism.support
    thousandth = text.points_at_most(attack.influence(support, 1_000))
    expect(page.get_by_text(f"moves a share by at most ±{thousandth}")).to_be_visible()
    expect(page.get_by_role("slider")).to_have_count(0)
    page.goto("/privacy?metric=any-text")
    expect(page.locator(".answer").last).to_contain_text("If 10 of these 500 reports")
    expect(page.get_by_role("region", name="With hostile reports")).to_have_count(0)


def test_of_a_few_reports_one_may_be_hostile(page: Page) -> None:
    page.goto("/privacy?metric=few&hostile=50")
    expect(page.locator(".answer").last).to_contain_text("If 1 of these 12 reports (8.3")
    expect(page.get_by_role("slider")).to_have_count(0)


def test_labels_are_text_and_a_narrow_page_does_not_scroll(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/privacy?metric=hostile")
    expect(page.locator("h1")).to_have_text("<b>Which</b> **one**?")
    labels = page.get_by_role("region", name="With hostile reports").locator("tbody th")
    expect(labels).to_have_text(list(HOSTILE))
    page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")
    # A table that never says that it scrolls has to fit.
    page.goto("/privacy?metric=memo")
    odds = page.get_by_role("region", name="How sure somebody can be")
    expect(odds.locator("th[scope=col]")).to_have_count(3)
    assert odds.evaluate("table => table.scrollWidth <= table.clientWidth")


def test_what_is_known_stays_while_the_aggregator_is_away(browser: Browser, tmp_path: Path) -> None:
    operator = Operator.create(tmp_path / "keys")
    bundle_file, store = tmp_path / "metrics.hubbub", tmp_path / "reports.sqlite3"
    bundle_file.write_bytes(operator.sign([make_metric("often")]))
    bundle = Bundle.load(bundle_file, operator_key=operator.key)
    with (
        ServeProcess(operator, bundle_file, store) as serve,
        DashboardProcess(serve.private) as dashboard,
        watched_page(browser, dashboard.url) as page,
    ):
        page.goto("/privacy?every=2+s")
        expect(page.locator(".badge")).to_contain_text("Waiting for the first snapshot")
        answer(serve, bundle, "often", [0] * 300)
        expect(page.locator(".answer").last).to_contain_text("of these 300 reports")
        serve.kill()
        expect(page.locator(".badge")).to_contain_text("Aggregator away")
        expect(page.locator(".answer").last).to_contain_text("of these 300 reports")
        # Somebody who comes now sees the proof as well.
        page.reload()
        expect_charge(page, CHARGES["closed"][0])
        expect(page.locator(".answer").last).to_contain_text("of these 300 reports")
        with ServeProcess(operator, bundle_file, store, private_listen=serve.private):
            expect(page.locator(".badge")).to_contain_text("Open")


def test_a_page_left_open_promises_nothing_of_a_contract_that_is_gone(
    browser: Browser, tmp_path: Path
) -> None:
    operator = Operator.create(tmp_path / "keys")
    bundle_file, address = tmp_path / "metrics.hubbub", "127.0.0.1:0"
    with ExitStack() as stack:
        page: Page | None = None
        for place, (name, epsilon) in enumerate((("same", "1"), ("same", "4"), ("other", "2"))):
            bundle_file.write_bytes(operator.sign([make_metric(name, epsilon=epsilon)]))
            bundle = Bundle.load(bundle_file, operator_key=operator.key)
            store = tmp_path / f"{place}.sqlite3"
            with ServeProcess(operator, bundle_file, store, private_listen=address) as serve:
                address = serve.private
                answer(serve, bundle, name, [0] * 200)
                if page is None:
                    dashboard = stack.enter_context(DashboardProcess(address))
                    page = stack.enter_context(watched_page(browser, dashboard.url))
                    page.goto("/privacy?every=2+s")
                expect_charge(page, f"ε = {epsilon}, once.")
                expect(page.locator("h1 + p")).to_have_text(name)
                expect(page.locator(".badge")).to_contain_text("Open")
        assert page is not None
        expect(page.locator(".note, .notes").first).to_contain_text("is not among the metrics here")


class Liar(estimate_pb2_grpc.EstimateServiceServicer):
    """An aggregator that announces one contract, and gives another."""

    def __init__(self, announced: bytes, given: bytes | None) -> None:
        self._announced, self._given = parse_metric(announced), given

    def ListMetrics(self, request: Any, context: grpc.ServicerContext) -> Any:
        metric = self._announced
        return estimate_pb2.ListMetricsResponse(
            metrics=[
                estimate_pb2.MetricSummary(
                    name=metric.name, digest=metric.digest, question=metric.question
                )
            ]
        )

    def GetContract(self, request: Any, context: grpc.ServicerContext) -> Any:
        if self._given is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "too old")
        return estimate_pb2.GetContractResponse(contract=self._given or b"")


LEAKY = make_metric(
    epsilon="1", mechanism=parse_metric(make_metric(epsilon="2")).mechanism, source="health"
)


@pytest.mark.parametrize(
    ("given", "word", "said"),
    [
        (LEAKY, "A device would refuse this", "reveal more than the declared ε = 1"),
        (make_metric(epsilon="0.5"), "A device would refuse this", "reports and estimates name"),
        (
            make_metric() + b"\x98\x3f\x01",
            "A device would refuse this",
            "not in its canonical form",
        ),
        (None, "No contract", "of a version that cannot"),
    ],
    ids=["leaky", "another", "not canonical", "too old"],
)
def test_an_unproved_contract_has_no_figures(
    browser: Browser, given: bytes | None, word: str, said: str
) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    estimate_pb2_grpc.add_EstimateServiceServicer_to_server(Liar(make_metric(), given), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with (
            DashboardProcess(f"127.0.0.1:{port}") as dashboard,
            watched_page(browser, dashboard.url) as page,
        ):
            page.goto("/privacy")
            expect(page.locator(".badge")).to_contain_text(word)
            expect(page.locator(".hubbub.status")).to_contain_text(said)
            expect(page.locator(".answer")).to_have_count(0)
            expect(page.locator(".hubbub table")).to_have_count(0)
    finally:
        server.stop(None).wait()


def test_nobody_answers(browser: Browser) -> None:
    with DashboardProcess("127.0.0.1:9") as dashboard, watched_page(browser, dashboard.url) as page:
        page.goto("/privacy")
        expect(page.locator(".badge")).to_contain_text("Not connected")
