"""One page, opened before its aggregator exists, left open through its life and its death."""

import socket
from pathlib import Path

from playwright.sync_api import Browser, expect

from hubbub.bundle import Bundle
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round, read_estimates
from tests.dashboard.pages import DashboardProcess, Witness
from tests.dashboard.test_page import expect_shares, expect_state
from tests.processes import ServeProcess


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_a_page_left_open_follows_its_aggregator(tmp_path: Path, browser: Browser) -> None:
    operator = Operator.create(tmp_path / "keys")
    bundle_file = tmp_path / "metrics.hubbub"
    bundle_file.write_bytes(operator.sign([make_metric("health")]))
    bundle = Bundle.load(bundle_file, operator_key=operator.key)
    address = free_address()

    def serve() -> ServeProcess:
        return ServeProcess(
            operator, bundle_file, tmp_path / "reports.sqlite3", private_listen=address
        )

    with DashboardProcess(address) as dashboard, browser.new_context() as context:
        page = context.new_page()
        witness = Witness(page, dashboard.url)
        page.goto(dashboard.url)
        expect_state(page, "Not connected")
        # Gone if the page were ever loaded again.
        page.evaluate("window.sameDocument = true")

        with serve() as aggregator:
            expect_state(page, "Waiting for the first snapshot")
            answer(aggregator, bundle, "health", [0] * 300)
            expect(page.locator(".hubbub .facts")).to_contain_text("300 reports")
            expect_shares(page, read_estimates(aggregator, "health"))
            answer(aggregator, bundle, "health", [1] * 700)
            expect(page.locator(".hubbub .facts")).to_contain_text("1,000 reports")
            last = read_estimates(aggregator, "health")
            expect_shares(page, last)
            aggregator.kill()

        expect_state(page, "Aggregator away")
        expect(page.locator(".hubbub.status")).to_contain_text("does not answer now")
        expect(page.locator(".hubbub .facts")).to_contain_text("1,000 reports")
        expect_shares(page, last)

        with serve() as aggregator:
            expect_state(page, "Open")
            answer(aggregator, bundle, "health", [2] * 42)
            close_round(aggregator, "health")
            expect_state(page, "Closed")
            expect(page.locator(".hubbub .facts")).to_contain_text("1,042 reports")
            expect_shares(page, read_estimates(aggregator, "health"))

        assert page.evaluate("window.sameDocument") is True
        assert witness.elsewhere == []
        assert witness.errors == []
