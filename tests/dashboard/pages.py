"""A real dashboard process, and a real browser that reports whatever it should not have done."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.processes import PATIENCE, follow

CHROMIUM = Path("/usr/bin/chromium")
_CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class DashboardProcess:
    """`python -m hubbub_dashboard`, serving when constructed. Use it as a context manager."""

    def __init__(self, aggregator: str, *flags: str) -> None:
        command = [sys.executable, "-m", "hubbub_dashboard", "--aggregator", aggregator]
        self._process = subprocess.Popen(
            [*command, "--port", "0", *flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.line = self._output.readline().strip()
        self.url = self.line.rpartition(" ")[2]
        self.lines: list[str] = []
        """What it said since, such as the traceback of whatever failed."""
        follow(self._output, self.lines)

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "DashboardProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """The system's browser; skips where there is none, unless it is CI that has none."""
    if not CHROMIUM.exists() and "CI" not in os.environ:
        pytest.skip(f"no browser at {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[*_CHROMIUM_FLAGS, *flags]
        )
        yield browser
        browser.close()


class Witness:
    """Notes every request of a page to another host, and every error on its console.

    What Vega warns of counts as an error.
    """

    def __init__(self, page: Page, url: str) -> None:
        self._host = urlsplit(url).netloc
        self.requests = 0
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self._see(request.url))
        page.on("websocket", lambda websocket: self._see(websocket.url))
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    @staticmethod
    def _streamlits_own(message: ConsoleMessage) -> bool:
        """It looks for its server below a page's own address first, and then where it is."""
        path = urlsplit(message.location["url"]).path
        asked = path.endswith(("/_stcore/health", "/_stcore/host-config"))
        return asked and not path.startswith("/_stcore") and "404" in message.text

    def _see(self, url: str) -> None:
        parts = urlsplit(url)
        self.requests += 1
        if parts.scheme not in ("about", "blob", "data") and parts.netloc != self._host:
            self.elsewhere.append(url)

    def _hear(self, message: ConsoleMessage) -> None:
        if self._streamlits_own(message):
            return
        if message.type == "error" or message.text.startswith("WARN"):
            self.errors.append(f"{message.text} ({message.location})")


@contextmanager
def watched_page(browser: Browser, url: str) -> Iterator[Page]:
    """A page that must not call out, and must not fail, whatever the test does with it."""
    with browser.new_context(base_url=url) as context:
        page = context.new_page()
        witness = Witness(page, url)
        yield page
        assert witness.requests > 10
        assert witness.elsewhere == []
        assert witness.errors == []


def violations(page: Page) -> list[str]:
    """What axe-core finds serious or worse on a page as it stands."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['target']}: {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
