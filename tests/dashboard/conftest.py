"""A browser for the page tests of each file, and what most of them look at with it.

A file's own `serve` is the aggregator that the page reads, and its METRICS are what that asks.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hubbub.bundle import Bundle
from tests.bundles import Operator
from tests.dashboard.pages import DashboardProcess, chromium, watched_page
from tests.processes import PATIENCE, ServeProcess

expect.set_options(timeout=1000 * PATIENCE)


# While there is one, an event loop runs, beside which other files' tests could run none.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator.create(tmp_path_factory.mktemp("operator") / "keys")


@pytest.fixture(scope="module")
def bundle_file(operator: Operator, request: pytest.FixtureRequest) -> Path:
    path = operator.folder.parent / "metrics.hubbub"
    path.write_bytes(operator.sign(request.module.METRICS))
    return path


@pytest.fixture(scope="module")
def bundle(operator: Operator, bundle_file: Path) -> Bundle:
    return Bundle.load(bundle_file, operator_key=operator.key)


@pytest.fixture(scope="module")
def dashboard(serve: ServeProcess) -> Iterator[DashboardProcess]:
    with DashboardProcess(serve.private) as dashboard:
        yield dashboard


@pytest.fixture
def page(browser: Browser, dashboard: DashboardProcess) -> Iterator[Page]:
    with watched_page(browser, dashboard.url) as page:
        yield page
