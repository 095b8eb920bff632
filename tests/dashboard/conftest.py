"""One browser for all page tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.pages import chromium
from tests.processes import PATIENCE

expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
