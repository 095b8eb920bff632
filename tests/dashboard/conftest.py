"""A browser for the page tests of each file."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.pages import chromium
from tests.processes import PATIENCE

expect.set_options(timeout=1000 * PATIENCE)


# While there is one, an event loop runs, beside which other files' tests could run none.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
