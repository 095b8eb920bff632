"""The live page under load: what it shows is one snapshot, exactly, and soon the newest one."""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from playwright.sync_api import Page, WebSocket
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_dashboard.reading.answers import Estimates, estimates_of
from hubbub_dashboard.shares import findings, share_chart
from hubbub_dashboard.shares.selection import Order, select
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, read_estimates
from tests.dashboard.pages import DashboardProcess
from tests.processes import PATIENCE, ServeProcess, until

# What one look at the document finds; all of it at once, or it would be of two snapshots.
_SHOWN = """() => {
    const cells = [...document.querySelectorAll(".hubbub table data")];
    const texts = [...document.querySelectorAll(".stVegaLiteChart svg .role-mark text")];
    return {
        reports: document.querySelector(".hubbub .facts b")?.textContent,
        cells: cells.map(cell => Number(cell.value)),
        texts: texts.map(text => text.textContent),
        spoken: document.querySelector("[role=graphics-document]")?.ariaLabel,
        answer: document.querySelector(".answer strong")?.textContent,
    };
}"""


METRICS = (make_metric("loaded"), make_metric("still"))


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    with ServeProcess(operator, bundle_file, bundle_file.with_name("reports.sqlite3")) as serve:
        answer(serve, bundle, "loaded", [0] * 100)
        answer(serve, bundle, "still", [0] * 100)
        yield serve


@pytest.fixture
def dashboard(serve: ServeProcess) -> Iterator[DashboardProcess]:
    """A new one for each test, which knows nothing yet."""
    with DashboardProcess(serve.private) as dashboard:
        yield dashboard


@contextmanager
def load(serve: ServeProcess, bundle: Bundle) -> Generator[None]:
    """Devices that answer without pause."""
    ended = threading.Event()

    def devices() -> None:
        turn = 0
        while not ended.wait(0.05):
            answer(serve, bundle, "loaded", [turn % 3] * 60 + [0] * 40)
            turn += 1

    thread = threading.Thread(target=devices)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def snapshots(serve: ServeProcess) -> Generator[dict[str, Estimates]]:
    """Every snapshot of the metric under load, by its number of reports as the page writes it."""
    kept: dict[str, Estimates] = {}
    with serve.private_channel() as channel:
        stub = estimate_pb2_grpc.EstimateServiceStub(channel)
        stream: Any = stub.WatchEstimates(estimate_pb2.WatchEstimatesRequest(metric="loaded"))

        def follow() -> None:
            try:
                for response in stream:
                    kept[f"{response.estimates.n:,}"] = estimates_of(response.estimates)
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.CANCELLED  # noqa: PT017

        thread = threading.Thread(target=follow)
        thread.start()
        yield kept
        stream.cancel()
        thread.join(PATIENCE)


def is_of(shown: dict[str, Any], snapshot: Estimates) -> bool:
    """Whether table, chart, what is spoken of it and the answer are all this snapshot's."""
    selection = select(snapshot, Order.LISTED)
    figures = [
        share
        for value in snapshot.values
        for share in (
            value.estimate,
            value.low,
            value.high,
            value.simultaneous_low,
            value.simultaneous_high,
        )
    ]
    rows = share_chart.rows(selection).to_pydict()
    return (
        shown["cells"] == figures
        and set(rows["label"]) | set(rows["wide"]) <= set(shown["texts"])
        and shown["spoken"] == share_chart.alternative(selection, snapshot.level)
        and shown["answer"] == (findings.few_reports(snapshot) or findings.answer(snapshot))
    )


def test_what_is_shown_under_load_is_always_one_snapshot(
    page: Page, serve: ServeProcess, bundle: Bundle
) -> None:
    with snapshots(serve) as kept, load(serve, bundle):
        page.goto("/?metric=loaded&every=2+s")
        seen: set[str] = set()

        def another() -> bool:
            shown = page.evaluate(_SHOWN)
            snapshot = kept.get(shown["reports"])
            if snapshot is not None and is_of(shown, snapshot):
                seen.add(shown["reports"])
            page.wait_for_timeout(50)
            return len(seen) >= 4

        until(another)


def test_a_new_snapshot_is_drawn_within_two_ticks(
    page: Page, serve: ServeProcess, bundle: Bundle
) -> None:
    ticks = [0]

    def count(frame: str | bytes) -> None:
        assert isinstance(frame, bytes)
        ticks[0] += ForwardMsg.FromString(frame).HasField("script_finished")

    def watch(socket: WebSocket) -> None:
        socket.on("framereceived", count)

    page.on("websocket", watch)
    page.goto("/?metric=still&every=2+s")
    page.wait_for_selector(".stVegaLiteChart svg .role-mark")
    for turn in range(1, 4):
        answer(serve, bundle, "still", [turn] * 100)
        snapshot = estimates_of(read_estimates(serve, "still"))
        assert snapshot.n == 100 * (turn + 1)
        before = ticks[0]

        def drawn(snapshot: Estimates = snapshot) -> bool:
            page.wait_for_timeout(20)
            return is_of(page.evaluate(_SHOWN), snapshot)

        until(drawn)
        # One may have begun before the snapshot was there.
        assert ticks[0] - before <= 2
