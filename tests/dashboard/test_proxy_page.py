"""The page behind a real reverse proxy with TLS, under the name and the path that were stated."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from hubbub.bundle import Bundle
from hubbub_aggregator.keys import add_certificates
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, read_estimates
from tests.dashboard.logins import write_login
from tests.dashboard.pages import DashboardProcess, Witness, chromium
from tests.dashboard.provider import provider
from tests.dashboard.test_page import expect_shares, expect_state
from tests.dashboard.tls_proxy import TlsProxy, tls_proxy
from tests.processes import ServeProcess

HOST = "stats.example.test"
ELSEWHERE = "evil.example.test"
METRIC = "behind.a.proxy"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One that takes both names for this machine's."""
    names = ", ".join(f"MAP {host} 127.0.0.1" for host in (HOST, ELSEWHERE))
    with chromium(f"--host-resolver-rules={names}") as browser:
        yield browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(ignore_https_errors=True) as context:
        yield context


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("operator")
    operator = Operator.create(folder / "keys")
    path = folder / "metrics.hubbub"
    path.write_bytes(operator.sign([make_metric(METRIC)]))
    bundle = Bundle.load(path, operator_key=operator.key)
    with ServeProcess(operator, path, folder / "reports.sqlite3") as serve:
        answer(serve, bundle, METRIC, [0] * 300)
        yield serve


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[TlsProxy]:
    operator = Operator.create(tmp_path / "proxy")
    add_certificates(operator.folder, [HOST], now=0)
    with tls_proxy(operator.folder / "server.crt", operator.folder / "server.key") as proxy:
        yield proxy


def at_port_of(dashboard: DashboardProcess) -> int:
    return int(dashboard.url.partition("//")[2].partition("/")[0].rpartition(":")[2])


@pytest.mark.parametrize("path", ["", "/shared/stats"])
def test_the_page_works_under_its_stated_address_only(
    serve: ServeProcess, proxy: TlsProxy, context: BrowserContext, path: str
) -> None:
    public = f"https://{HOST}:{proxy.port}{path}"
    with DashboardProcess(serve.private, "--behind-proxy", public) as dashboard:
        proxy.target = at_port_of(dashboard)
        page = context.new_page()
        witness = Witness(page, public)
        page.goto(f"{public}/?metric={METRIC}&every=paused")
        expect_state(page, "Open")
        expect_shares(page, read_estimates(serve, METRIC))
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        assert "excellent" in download.value.path().read_text(encoding="utf-8")
        page.get_by_role("link", name="Health").click()
        expect(page).to_have_url(f"{public}/health")
        page.goto(f"{public}/plan")
        expect(page.get_by_role("button", name="Another crowd")).to_be_visible()
        assert witness.elsewhere == []
        assert witness.errors == []

        # What the operator looks at on the machine itself.
        page.goto(dashboard.url)
        expect_state(page, "Open")

        page.goto(f"https://{ELSEWHERE}:{proxy.port}{path}/")
        expect(page.locator("body")).to_contain_text(f"served at {public}")


def test_readers_sign_in_behind_a_proxy(
    serve: ServeProcess, proxy: TlsProxy, context: BrowserContext, tmp_path: Path
) -> None:
    public = f"https://{HOST}:{proxy.port}/stats"
    people = {name: {"email": f"{name}@example.org", "email_verified": True} for name in "ab"}
    with provider(people) as accounts:
        login = write_login(
            tmp_path / "login.toml",
            f"{public}/oauth2callback",
            issuer=accounts.issuer,
            readers=["a@example.org"],
        )
        flags = ("--behind-proxy", public, "--login", str(login))
        with DashboardProcess(serve.private, *flags) as dashboard:
            proxy.target = at_port_of(dashboard)
            page = context.new_page()
            page.goto(f"{public}/plan?values=3")
            for person in "ab":
                page.get_by_role("button", name="Sign in").click()
                page.get_by_role("link", name=person, exact=True).click()
                if person == "a":
                    # Where the reader was going.
                    expect(page).to_have_url(f"{public}/plan?values=3")
                    expect(page.locator(".signed-in")).to_contain_text("a@example.org")
                else:
                    expect_state(page, "No access")
                page.get_by_role("button", name="Sign out").click()
                expect_state(page, "Sign in to read")
