"""What a refresh of the page costs, and what it is like to be one of many viewers.

Viewers are websocket clients that do what the browser does: run the page once, then its live part
again at every tick. A refresh's cost is the page's server's processor time, beside that of a
Streamlit page that shows one number and a caption, in turns, in one run: as `streamlit run` serves
it, and with the page's own settings, which spare it the greater part. Either with the same
snapshot, and with a new one before each refresh, which is worked out once for all viewers. What
limits it: every element of a page takes Streamlit some 0.3 ms, and a refresh 4 ms.

    python benchmarks/viewers.py                              the cost of a refresh
    python benchmarks/viewers.py --viewers 15 --minutes 2     how long refreshes take, one core
    python benchmarks/viewers.py --viewers 10 --minutes 20    and the server's memory
"""

import argparse
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Final
from urllib.parse import urlencode, urlsplit

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Origin

sys.path.insert(0, str(Path(__file__).parents[1]))

from hubbub.bundle import Bundle
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer
from tests.dashboard.pages import DashboardProcess
from tests.processes import ServeProcess

DOMAINS: Final = {64: 2.2, 1_024: 4.0}
"""How many values, and how many times the yardstick a refresh may cost."""
REPORTS: Final = 2_000
BLOCKS: Final = 6
REFRESHES: Final = 10
TICK: Final = 5.0
STEP: Final = 100
SAMPLE_SECONDS: Final = 30.0

ONE_NUMBER: Final = """
import time, streamlit as st
@st.fragment(run_every=5)
def live():
    st.metric("Reports", f"{time.time():.0f}")
    st.caption("as of now")
live()
"""
_OURS: Final = """
import sys, streamlit
from hubbub_dashboard.settings import read_settings
from hubbub_dashboard.streamlit_options import options
streamlit.App(sys.argv[1]).run(config=options(read_settings(["--port", sys.argv[2]])))
"""
_STREAMLITS: Final = """
import sys, streamlit
config = {"server.port": int(sys.argv[2]), "server.headless": True,
          "browser.gatherUsageStats": False, "server.address": "127.0.0.1"}
streamlit.App(sys.argv[1]).run(config=config)
"""


class Viewer:
    """One browser tab."""

    def __init__(self, url: str, page: str = "", **query: str) -> None:
        self._page = page
        self._query = urlencode(query)
        host = urlsplit(url).netloc
        # For as long as the tab is open.
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(
            connect(
                f"ws://{host}/_stcore/stream", origin=Origin(url), max_size=None, compression=None
            )
        )
        self._known: set[str] = set()
        self._fragment = ""
        self._run("")
        if not self._fragment:
            raise SystemExit(f"{url} has no live part")

    def refresh(self) -> float:
        """Run the live part; seconds until all of it has come."""
        started = time.perf_counter()
        self._run(self._fragment)
        return time.perf_counter() - started

    def close(self) -> None:
        self._stack.close()

    def _run(self, fragment: str) -> None:
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_name = self._page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.is_auto_rerun = bool(fragment)
        message.rerun_script.cached_message_hashes.extend(self._known)
        self._socket.send(message.SerializeToString())
        while True:
            # All that a browser reads of it: what the server would have to send again.
            received = self._socket.recv(timeout=60)
            told = ForwardMsg.FromString(bytes(received))
            if told.metadata.cacheable and told.hash:
                self._known.add(told.hash)
            if told.HasField("auto_rerun"):
                self._fragment = told.auto_rerun.fragment_id
            if told.HasField("script_finished"):
                return


@contextmanager
def one_number_page(folder: Path, serve: str) -> Generator[tuple[str, int]]:
    """A yardstick: its address and process."""
    script = folder / "one_number.py"
    script.write_text(ONE_NUMBER)
    port = _free_port()
    process = Popen([sys.executable, "-c", serve, str(script), str(port)], stdout=DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url)
        yield url, process.pid
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(url: str) -> None:
    host, port = urlsplit(url).netloc.split(":")
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nobody answers at {url}")


def processor_seconds(pid: int) -> float:
    """What a process has used."""
    times = psutil.Process(pid).cpu_times()
    used: float = times.user + times.system
    return used


class World:
    """An aggregator whose snapshots move on when they are told to, and its page."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        operator, path = Operator.create(folder / "keys"), folder / "metrics.hubbub"
        names = {k: f"k{k}" for k in DOMAINS}
        path.write_bytes(
            operator.sign(
                make_metric(name, values=[f"value {i}" for i in range(k)], epsilon="4")
                for k, name in names.items()
            )
        )
        self._bundle = Bundle.load(path, operator_key=operator.key)
        self._serve = stack.enter_context(ServeProcess(operator, path, folder / "reports.sqlite3"))
        for k in DOMAINS:
            self.report(k, REPORTS)
        self.page = stack.enter_context(DashboardProcess(self._serve.private))

    def report(self, k: int, count: int = STEP) -> None:
        """So many devices answer the question of k values."""
        answer(self._serve, self._bundle, f"k{k}", [i % min(k, 8) for i in range(count)])


def costs(
    world: World, yardsticks: list[tuple[str, int]], k: int, *, page: str = "", new: bool = False
) -> list[float]:
    """Processor milliseconds of a refresh: of the page, and of the yardsticks."""
    viewers = [(Viewer(world.page.url, page, metric=f"k{k}"), world.page.pid)]
    viewers += [(Viewer(url), pid) for url, pid in yardsticks]
    spent = [0.0 for _ in viewers]
    for viewer, _ in viewers:
        viewer.refresh()
    for _ in range(BLOCKS):
        for place, (viewer, process) in enumerate(viewers):
            for _ in range(REFRESHES):
                if new and not place:
                    world.report(k)
                    # The page's server asks the aggregator at most once a second.
                    time.sleep(1.05)
                before = processor_seconds(process)
                viewer.refresh()
                # What it does after its last word is part of it.
                time.sleep(0.05)
                spent[place] += processor_seconds(process) - before
    for viewer, _ in viewers:
        viewer.close()
    return [1e3 * seconds / (BLOCKS * REFRESHES) for seconds in spent]


def refresh_costs() -> None:
    """Print what a refresh costs."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        world = World(stack, folder)
        yardsticks = [
            stack.enter_context(one_number_page(folder, serve)) for serve in (_STREAMLITS, _OURS)
        ]
        print("a refresh, in ms of the server's processor, and as times the one-number page's")
        for k, limit in DOMAINS.items():
            for new in (False, True):
                name = f"Shares, k = {k}, {'new' if new else 'same'} snapshot (at most {limit})"
                _print_costs(name, costs(world, yardsticks, k, new=new))
        for page in ("compare", "privacy", "health"):
            _print_costs(f"{page.capitalize()}, k = 64", costs(world, yardsticks, 64, page=page))


def _print_costs(name: str, found: list[float]) -> None:
    page, plain, ours = found
    print(
        f"{name:<45} {page:5.1f} ms; {page / plain:.2f} times {plain:.1f} ms as Streamlit comes, "
        f"{page / ours:.2f} times {ours:.1f} ms with the page's settings",
        flush=True,
    )


def many_viewers(count: int, minutes: float) -> None:
    """Print how long refreshes take with many viewers, and what the server's memory does."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        world = World(stack, Path(scratch))
        server = psutil.Process(world.page.pid)
        server.cpu_affinity([0])
        others = os.cpu_count() or 1
        ends = time.monotonic() + 60 * minutes
        took: list[float] = []
        threads = [
            threading.Thread(target=_watch, args=(world, place, count, ends, took))
            for place in range(count)
        ]
        for thread in threads:
            thread.start()
        print(
            f"{count} viewers, a tick each {TICK:g} s, the page's server on one of {others} cores"
        )
        began, used = time.monotonic(), processor_seconds(server.pid)
        while any(thread.is_alive() for thread in threads):
            world.report(64)
            time.sleep(SAMPLE_SECONDS)
            elapsed = time.monotonic() - began
            busy = (processor_seconds(server.pid) - used) / elapsed
            print(
                f"{elapsed:6.0f} s: {server.memory_info().rss / 2**20:6.1f} MiB, "
                f"{100 * busy:.0f} % of a core, {len(took)} refreshes",
                flush=True,
            )
        for thread in threads:
            thread.join()
        took.sort()
        quantiles = statistics.quantiles(took, n=100)
        print(
            f"{len(took)} refreshes: half within {quantiles[49]:.2f} s, 95 % within "
            f"{quantiles[94]:.2f} s, the longest {took[-1]:.2f} s"
        )


def _watch(world: World, place: int, count: int, ends: float, took: list[float]) -> None:
    # As people do, they come one after the other.
    time.sleep(place * TICK / count)
    viewer = Viewer(world.page.url, metric=f"k{64 if place % 5 else 1_024}")
    while time.monotonic() < ends:
        seconds = viewer.refresh()
        took.append(seconds)
        # As the browser does: the next tick is counted from this one.
        time.sleep(max(0.0, TICK - seconds))
    viewer.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--viewers", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=2.0)
    arguments = parser.parse_args()
    if arguments.viewers:
        many_viewers(arguments.viewers, arguments.minutes)
    else:
        refresh_costs()


if __name__ == "__main__":
    main()
