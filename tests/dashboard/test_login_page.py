"""Signing in, in a real browser, with a real provider: who reads, who does not, how long."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, expect

from hubbub.bundle import Bundle
from hubbub_dashboard.access.visitors import HOURS
from hubbub_dashboard.navigation import ENTRIES
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer
from tests.dashboard.logins import write_login
from tests.dashboard.pages import DashboardProcess
from tests.dashboard.provider import Provider, provider
from tests.dashboard.test_page import expect_state
from tests.processes import ServeProcess

METRIC = "known.to.readers"
QUESTION = "Which question do only readers know?"
PEOPLE = {
    "ana": {"email": "Ana@example.org", "email_verified": True},
    "kim": {"email": "kim@lab.example", "email_verified": True},
    "eve": {"email": "<b>eve</b>@elsewhere.example", "email_verified": True},
    "uma": {"email": "ana@example.org", "email_verified": False},
    "tom": {"name": "Tom"},
}
READERS = ["ana@example.org", "@lab.example"]


@pytest.fixture(scope="module")
def accounts() -> Iterator[Provider]:
    with provider(PEOPLE) as accounts:
        yield accounts


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("operator")
    operator = Operator.create(folder / "keys")
    path = folder / "metrics.hubbub"
    path.write_bytes(operator.sign([make_metric(METRIC, question=QUESTION)]))
    bundle = Bundle.load(path, operator_key=operator.key)
    with ServeProcess(operator, path, folder / "reports.sqlite3") as serve:
        answer(serve, bundle, METRIC, [0] * 300)
        yield serve


@pytest.fixture(scope="module")
def url(
    serve: ServeProcess, accounts: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The page's, as the provider sends people back to it."""
    login = write_login(
        tmp_path_factory.mktemp("login") / "login.toml",
        "http://localhost:{port}/oauth2callback",
        issuer=accounts.issuer,
        readers=READERS,
    )
    with DashboardProcess(serve.private, "--login", str(login)) as dashboard:
        yield dashboard.url.replace("127.0.0.1", "localhost")


@pytest.fixture
def visit(browser: Browser, url: str) -> Iterator[BrowserContext]:
    with browser.new_context(base_url=url) as context:
        yield context


def sign_in(page: Page, person: str) -> None:
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name=person, exact=True).click()


class Overheard:
    """Everything that the server told a page, whatever is drawn of it."""

    def __init__(self, page: Page) -> None:
        self.text = b""
        page.on("websocket", self._listen)

    def _listen(self, websocket: WebSocket) -> None:
        websocket.on("framereceived", self._hear)

    def _hear(self, frame: str | bytes) -> None:
        self.text += frame if isinstance(frame, bytes) else frame.encode()


def expect_nothing_of_the_page(page: Page, overheard: Overheard) -> None:
    expect(page.get_by_role("link", name="Plan")).to_have_count(0)
    body = page.locator("body").inner_text()
    for secret in (METRIC, QUESTION, *(entry.title for entry in ENTRIES)):
        assert secret not in body
        assert secret.encode() not in overheard.text
    # Else nothing was overheard at all.
    assert b"What the crowd says" in overheard.text


@pytest.mark.parametrize(
    "path", ["/", f"/?metric={METRIC}", *(f"/{entry.path}" for entry in ENTRIES)]
)
def test_who_is_not_signed_in_sees_nothing(visit: BrowserContext, path: str) -> None:
    page = visit.new_page()
    overheard = Overheard(page)
    page.goto(path)
    expect_state(page, "Sign in to read")
    expect(page.get_by_role("button")).to_have_count(1)
    # In its own link a visitor knows the metric's name already.
    if "metric" not in path:
        expect_nothing_of_the_page(page, overheard)


@pytest.mark.parametrize("person", ["ana", "kim"])
def test_a_reader_reads(visit: BrowserContext, person: str) -> None:
    page = visit.new_page()
    page.goto("/")
    sign_in(page, person)
    expect_state(page, "Open")
    expect(page.locator("h1")).to_have_text(QUESTION)
    expect(page.locator(".signed-in")).to_contain_text(str(PEOPLE[person]["email"]))
    page.get_by_role("link", name="Health").click()
    expect(page.locator(".signed-in")).to_be_visible()
    page.goto("/plan")
    expect(page.get_by_role("button", name="Another crowd")).to_be_visible()


def test_a_link_shows_its_view_after_signing_in(visit: BrowserContext, url: str) -> None:
    page = visit.new_page()
    link = f"/?metric={METRIC}&among=population&order=Largest+first&every=paused"
    page.goto(link)
    sign_in(page, "ana")
    expect_state(page, "Open")
    expect(page).to_have_url(f"{url}{link}")
    expect(page.get_by_role("radio", name="population")).to_be_checked()
    page.get_by_role("button", name="Sign out").click()
    expect_state(page, "Sign in to read")
    page.goto("/health")
    sign_in(page, "kim")
    expect(page.locator(".signed-in")).to_contain_text("kim@lab.example")
    expect(page).to_have_url(f"{url}/health")


@pytest.mark.parametrize(
    ("person", "said"),
    [
        ("eve", "<b>eve</b>@elsewhere.example, who is not among the readers"),
        ("uma", "does not say that it has checked this address"),
        ("tom", "signed in without an e-mail address"),
    ],
)
def test_a_stranger_is_refused_and_sees_nothing(
    visit: BrowserContext, person: str, said: str
) -> None:
    page = visit.new_page()
    overheard = Overheard(page)
    page.goto("/")
    sign_in(page, person)
    expect_state(page, "No access")
    expect(page.locator(".hubbub.status")).to_contain_text(said)
    expect_nothing_of_the_page(page, overheard)
    page.goto("/health")
    expect_state(page, "No access")
    expect_nothing_of_the_page(page, overheard)
    page.get_by_role("button", name="Sign out").click()
    expect_state(page, "Sign in to read")


def test_signing_out_ends_it_in_every_window_and_for_every_copy(
    visit: BrowserContext, browser: Browser, url: str
) -> None:
    page, other = visit.new_page(), visit.new_page()
    page.goto("/")
    sign_in(page, "ana")
    expect_state(page, "Open")
    other.goto("/health")
    expect(other.locator(".signed-in")).to_be_visible()
    copied = visit.cookies()
    page.get_by_role("button", name="Sign out").click()
    expect_state(page, "Sign in to read")
    # At its next tick, with nobody touching it.
    expect_state(other, "Sign in again")
    expect(other.get_by_role("link", name="Plan")).to_have_count(0)
    with browser.new_context(base_url=url) as thief:
        thief.add_cookies(
            [
                {"name": one["name"], "value": one["value"], "url": url}
                for one in copied
                if "name" in one and "value" in one
            ]
        )
        stolen = thief.new_page()
        stolen.goto("/")
        expect_state(stolen, "Sign in again")
    sign_in(page, "ana")
    expect_state(page, "Open")


def test_an_old_sign_in_is_none(visit: BrowserContext, accounts: Provider) -> None:
    accounts.issued = lambda: time.time() - 3_600 * HOURS - 1
    page = visit.new_page()
    overheard = Overheard(page)
    page.goto("/")
    sign_in(page, "ana")
    expect_state(page, "Sign in again")
    expect_nothing_of_the_page(page, overheard)
    accounts.issued = time.time
    sign_in(page, "ana")
    expect_state(page, "Open")


def test_a_forged_cookie_is_nobodys(visit: BrowserContext, url: str) -> None:
    page = visit.new_page()
    page.goto("/")
    sign_in(page, "ana")
    expect_state(page, "Open")
    (signed,) = (one for one in visit.cookies() if one.get("name") == "_streamlit_user")
    value = signed.get("value", "")
    forged = ("A" if value[0] != "A" else "B") + value[1:]
    visit.add_cookies([{"name": "_streamlit_user", "value": forged, "url": url}])
    page.goto("/")
    expect_state(page, "Sign in to read")


def test_without_a_proxy_the_page_serves_tls(
    browser: Browser, serve: ServeProcess, accounts: Provider, tmp_path: Path
) -> None:
    login = write_login(
        tmp_path / "login.toml",
        "https://localhost:{port}/oauth2callback",
        issuer=accounts.issuer,
        readers=READERS,
    )
    keys = serve.operator.folder
    with (
        DashboardProcess(
            serve.private,
            *("--login", str(login)),
            *("--certificate", str(keys / "server.crt")),
            *("--private-key", str(keys / "server.key")),
        ) as dashboard,
        browser.new_context(ignore_https_errors=True) as context,
    ):
        assert dashboard.url.startswith("https://127.0.0.1:")
        page = context.new_page()
        page.goto(dashboard.url.replace("127.0.0.1", "localhost"))
        sign_in(page, "kim")
        expect_state(page, "Open")
        ours = [one for one in context.cookies() if one.get("name", "").startswith("_streamlit")]
        assert len(ours) == 3
        assert all(one.get("secure") for one in ours)
