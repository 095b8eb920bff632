"""The health page in a real browser: its aggregator is well, then is not, then ends."""

import json
import os
from pathlib import Path
from typing import Any

import grpc
import pytest
from playwright.sync_api import Browser, Page, expect

from hubbub.bundle import Bundle
from hubbub.randomness import SYSTEM
from hubbub.v1 import report_pb2_grpc
from tests.bundles import Operator, make_metric, make_request
from tests.dashboard.crowd import answer, close_round
from tests.dashboard.pages import DashboardProcess, Witness
from tests.processes import PATIENCE, ServeProcess, until
from tests.typed import typed

# What the page names as the command does; the disk's free room is everybody's.
_FIGURES = ("version", "rounds_open", "rounds_closed", "requests_waiting", "bytes_in_hand")
_GROUPS = ("reports", "requests_refused", "opening", "commit")


def test_the_page_follows_an_aggregator(tmp_path: Path, browser: Browser) -> None:
    operator = Operator.create(tmp_path / "keys")
    bundle_file = tmp_path / "metrics.hubbub"
    metrics = [make_metric("often"), make_metric("seldom"), make_metric("kept", retain=True)]
    bundle_file.write_bytes(operator.sign(metrics, revision=7))
    bundle = Bundle.load(bundle_file, operator_key=operator.key)
    archive = tmp_path / "archive"
    with (
        ServeProcess(
            operator, bundle_file, tmp_path / "s", flags=["--archive", str(archive)]
        ) as serve,
        DashboardProcess(serve.private) as dashboard,
        browser.new_context(base_url=dashboard.url) as context,
    ):
        page = context.new_page()
        witness = Witness(page, dashboard.url)
        # The first who comes to this dashboard comes by the page's own address.
        page.goto("/health?table=true")
        expect_verdict(page, "All is well")

        answer(serve, bundle, "often", [0] * 300)
        answer(serve, bundle, "kept", [1] * 200)
        send_twice(serve, bundle)
        send_nonsense(serve, bundle)
        close_round(serve, "seldom")
        until(lambda: shown(page) == told(serve))
        figures = shown(page)
        assert figures["reports.counted"] == "501"
        assert figures["reports.duplicate"] == "1"
        assert figures["requests_refused.unknown_digest"] == "1"
        assert figures["snapshots.often"] == "300"
        assert figures["bundle.revision"] == "7"
        expect(page.locator(".hubbub.health")).to_contain_text("1 of 1 refused request (100")
        for metric in bundle.metrics.values():
            expect(page.locator(".hubbub.health")).to_contain_text(metric.digest.hex()[:16])
        page.set_viewport_size({"width": 360, "height": 800})
        page.wait_for_function("document.querySelector('.stMain').scrollWidth <= innerWidth")

        archive.rename(tmp_path / "away")
        with pytest.raises(grpc.RpcError, match="stays open"):
            close_round(serve, "kept")
        expect_verdict(page, "Problem")
        text = typed("status", "--aggregator", serve.private).stdout
        (line,) = [line for line in text.splitlines() if line.startswith("ROUNDS CANNOT")]
        said = page.locator(".hubbub.verdict li").inner_text()
        assert said.lower() == line.lower()
        (tmp_path / "away").rename(archive)
        close_round(serve, "kept")
        expect_verdict(page, "All is well")

        # Both charts, once there is something to draw, and their table.
        expect(page.locator("[role=graphics-document]")).to_have_count(2)
        expect(page.get_by_role("region", name="Lately").locator("tbody tr")).not_to_have_count(0)

        until(lambda: shown(page) == told(serve))
        last = told(serve)
        serve.kill()
        expect_verdict(page, "Aggregator away")
        expect(page.locator(".hubbub.verdict")).to_contain_text("does not answer now")
        assert shown(page) == last
        assert witness.elsewhere == []
        assert witness.errors == []


def expect_verdict(page: Page, word: str) -> None:
    expect(page.locator(".hubbub.verdict .badge")).to_contain_text(word)


def shown(page: Page) -> dict[str, str]:
    """The figures of the page, by their names."""
    found: dict[str, str] = page.evaluate(
        """() => Object.fromEntries(
            [...document.querySelectorAll("[data-figure]")].map(
                figure => [figure.dataset.figure, figure.value]
            )
        )"""
    )
    return {name: value for name, value in found.items() if name != "store.free_bytes"}


def told(serve: ServeProcess) -> dict[str, str]:
    """The same, as `hubbub status --format json` tells them."""
    ran = typed("status", "--aggregator", serve.private, "--format", "json")
    assert ran.returncode == 0, ran.stderr
    record: dict[str, Any] = json.loads(ran.stdout)
    figures = {name: record[name] for name in _FIGURES}
    for group in _GROUPS:
        figures |= {f"{group}.{name}": value for name, value in record[group].items()}
    figures |= {
        f"store.{name}": record["store"][name] for name in ("location", "size_bytes", "last_commit")
    }
    figures |= {
        "archive.folder": record["archive"]["folder"],
        "bundle.revision": record["bundle"]["revision"],
        "certificate_expires": record["certificate_expires"],
    }
    figures |= {f"snapshots.{row['metric']}": row["n"] for row in record["snapshots"]}
    return {name: str(value) for name, value in figures.items()}


def send_twice(serve: ServeProcess, bundle: Bundle) -> None:
    """One report, and the same again."""
    report = (os.urandom(16), bundle.metrics["often"].mechanism.randomise(0, SYSTEM))
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        for _ in range(2):
            stub.SubmitReports(make_request(bundle, "often", [report]), timeout=PATIENCE)


def send_nonsense(serve: ServeProcess, bundle: Bundle) -> None:
    """A report of a metric that nobody has."""
    request = make_request(bundle, "often", [(os.urandom(16), b"?")])
    request.digest = b"?" * 32
    with serve.public_channel() as channel, pytest.raises(grpc.RpcError):
        report_pb2_grpc.ReportServiceStub(channel).SubmitReports(request, timeout=PATIENCE)
