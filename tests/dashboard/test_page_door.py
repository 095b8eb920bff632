"""What of a browser's requests reaches the page: by rule, and at a real one's listener."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from hubbub_dashboard.access.door import refusal
from hubbub_dashboard.access.public_address import PublicAddress
from tests.dashboard.pages import DashboardProcess
from tests.processes import PATIENCE

PUBLIC = PublicAddress("https", "stats.example.org", 443, "/stats")
NOBODY = "127.0.0.1:9"


class Asked(NamedTuple):
    host: str
    origin: str | None = None
    method: str | None = None


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (Asked("localhost:8501", "http://localhost:8501"), None),
        (Asked("127.0.0.1:8501", "http://127.0.0.1:8501"), None),
        (Asked("[::1]:8501", "http://[::1]:8501"), None),
        (Asked("localhost", "http://localhost"), None),
        (Asked("localhost:8501"), None),
        (Asked("stats.example.org", PUBLIC.origin), None),
        # A proxy that names the listener instead of itself.
        (Asked("127.0.0.1:8501", PUBLIC.origin), None),
        (Asked("stats.example.org", "http://stats.example.org"), 403),
        (Asked("stats.example.org", "https://stats.example.org:8443"), 403),
        (Asked("stats.example.org", "https://evil.example"), 403),
        (Asked("localhost:8501", "http://localhost:3000"), 403),
        (Asked("localhost:8501", "https://evil.example"), 403),
        (Asked("localhost:8501", "null"), 403),
        (Asked("evil.example", "https://evil.example"), 421),
        (Asked("evil.example:8501", "http://evil.example:8501"), 421),
        (Asked("stats.example.org.evil.example", None), 421),
        (Asked("192.0.2.1:8501", None), 421),
        (Asked("", None), 421),
        (Asked("[", None), 421),
        (Asked("localhost:8501", "https://evil.example", "GET"), None),
        (Asked("localhost:8501", None, "HEAD"), None),
        (Asked("localhost:8501", None, "POST"), 405),
        (Asked("localhost:8501", None, "PUT"), 405),
        (Asked("evil.example", None, "GET"), 421),
    ],
)
def test_rule(asked: Asked, status: int | None) -> None:
    found = refusal(PUBLIC, asked.host, origin=asked.origin, method=asked.method)
    assert (found and found[0]) == status


def test_without_a_public_address_there_is_this_machine_only() -> None:
    assert refusal(None, "localhost:1", origin="http://localhost:1", method=None) is None
    refused = refusal(None, "stats.example.org", origin=None, method="GET")
    assert refused is not None
    assert "on this machine only" in refused[1]


@pytest.fixture(scope="module")
def dashboard() -> Iterator[DashboardProcess]:
    with DashboardProcess(NOBODY, "--behind-proxy", str(PUBLIC)) as dashboard:
        yield dashboard


def get(dashboard: DashboardProcess, path: str, host: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(dashboard.url).netloc, timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse()


def ask(dashboard: DashboardProcess, path: str, method: str = "GET", **headers: str) -> int:
    where = urlsplit(dashboard.url)
    connection = http.client.HTTPConnection(where.netloc, timeout=PATIENCE)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(connection):
        connection.request(method, f"{where.path}{path}", headers=fields)
        return connection.getresponse().status


def shake_hands(dashboard: DashboardProcess, **headers: str) -> int:
    """Open the page's web socket; 101 if it opens."""
    return ask(
        dashboard,
        "/_stcore/stream",
        Connection="Upgrade",
        Upgrade="websocket",
        Sec_WebSocket_Version="13",
        Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==",
        **headers,
    )


def test_the_listener_keeps_the_rule(dashboard: DashboardProcess) -> None:
    assert dashboard.line.startswith(f"Hubbub dashboard: {PUBLIC}, served from http://127.0.0.1:")
    here = urlsplit(dashboard.url).netloc
    assert shake_hands(dashboard, Host="stats.example.org", Origin=PUBLIC.origin) == 101
    assert shake_hands(dashboard, Host=here, Origin=PUBLIC.origin) == 101
    assert shake_hands(dashboard, Host=here, Origin=f"http://{here}") == 101
    assert shake_hands(dashboard, Host=here, Origin="http://localhost:1") == 403
    assert shake_hands(dashboard, Host="evil.example", Origin="https://evil.example") == 403
    assert ask(dashboard, "/", Host="stats.example.org") == 200
    assert ask(dashboard, "/", Host="evil.example") == 421
    assert ask(dashboard, "/_stcore/upload_file/a/b", "PUT", Host="stats.example.org") == 405


def test_the_listener_knows_that_it_is_reached_over_tls(dashboard: DashboardProcess) -> None:
    answer = get(dashboard, PUBLIC.path, "stats.example.org")
    assert answer.headers["location"] == f"{PUBLIC}/"
    cookies = get(dashboard, f"{PUBLIC.path}/_stcore/health", "stats.example.org").headers.get_all(
        "set-cookie", []
    )
    assert cookies
    assert all("; Secure" in cookie for cookie in cookies)
    here = urlsplit(dashboard.url).netloc
    assert answer.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert get(dashboard, PUBLIC.path, here).headers["location"] == f"{dashboard.url}/"
