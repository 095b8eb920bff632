"""The command line: what is refused, each with its own sentence."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hubbub_aggregator.keys import create_keys
from hubbub_aggregator.mistakes import Mistake
from hubbub_dashboard.access.public_address import PublicAddress
from hubbub_dashboard.settings import Settings, SettingsError, read_settings
from hubbub_dashboard.streamlit_options import options
from tests.dashboard.logins import write_login
from tests.processes import PATIENCE


def test_defaults_stay_on_this_machine() -> None:
    assert read_settings([]) == Settings("localhost:7444", "127.0.0.1", 8501, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address", "0.0.0.0"], "would read every metric"),  # noqa: S104
        (["--address", "192.0.2.1"], "would read every metric"),
        (["--address", "page.example.com"], "would read every metric"),
        (["--port", "65536"], "between 0 and 65535"),
        (["--aggregator", "localhost"], "host:port"),
        (["--aggregator", "collect.example.com:7444"], "plaintext on loopback only"),
        (["--behind-proxy", "stats.example.org"], "must be like"),
        (["--behind-proxy", "ftp://stats.example.org"], "must be like"),
        (["--behind-proxy", "https://ana@stats.example.org"], "must be like"),
        (["--behind-proxy", "https://stats.example.org/a?b"], "must be like"),
        (["--behind-proxy", "https://stats.example.org/../a"], "must be like"),
        (["--behind-proxy", "https://*.example.org"], "must be like"),
        (["--behind-proxy", "https://stats.example.org:x"], "must be like"),
        (["--behind-proxy", "http://stats.example.org"], "in plaintext"),
        (["--behind-proxy", "https://stats.example.org:0"], "between 1 and 65535, not 0"),
        (["--behind-proxy", "https://stats.example.org:70000"], "between 1 and 65535, not 70000"),
        (["--behind-proxy", f"https://example.org:{'9' * 5_000}"], "between 1 and 65535"),
        (["--behind-proxy", "https://a..b"], "each part of its name"),
        (["--behind-proxy", "https://a-.example.org"], "each part of its name"),
        (["--behind-proxy", f"https://{'a' * 64}.example.org"], "each part of its name"),
        (["--behind-proxy", f"https://{'a.' * 126}org"], "more than 253 characters"),
        (["--behind-proxy", "https://999.1.1.1"], "no IPv4 address"),
        (["--behind-proxy", "https://1.2.3"], "no IPv4 address"),
        (["--behind-proxy", "https://example.0x7f"], "no IPv4 address"),
        (["--behind-proxy", "https://[:::]"], "no IPv6 address"),
        (["--behind-proxy", "https://[1:2]"], "no IPv6 address"),
        (["--address", "a..b"], "--address has 'a..b' for a host"),
        (["--address", ""], "--address has '' for a host"),
        (["--address", "\udcff"], "each part of its name"),
        (["--address", "999.1.1.1"], "no IPv4 address"),
        (["--address", "[::1]"], "no IPv6 address"),
        (["--aggregator", "localhost:0"], "an aggregator is at host:port"),
        (["--aggregator", "localhost:70000"], "an aggregator is at host:port"),
        (["--certificate", "page.crt"], "go together"),
        (["--private-key", "page.key"], "go together"),
        (["--certificate", "page.crt", "--private-key", "page.key"], "No such file"),
        (["--login", "none.toml"], "cannot read none.toml"),
    ],
)
def test_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        read_settings(arguments)


def test_an_address_elsewhere_is_refused_with_every_way_that_there_is() -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings(["--address", "192.0.2.1"])
    for way in ("ssh -L 8501:127.0.0.1:8501", "--behind-proxy https://HOST", "--login FILE"):
        assert way in str(refused.value)


def test_behind_a_proxy_any_address_is_served() -> None:
    settings = read_settings(["--address", "192.0.2.1", "--behind-proxy", "https://Example.ORG/s/"])
    assert settings.public == PublicAddress("https", "example.org", 443, "/s")
    assert str(settings.public) == "https://example.org/s"


@pytest.mark.parametrize(
    ("stated", "origin"),
    [
        ("https://192.0.2.1:65535", "https://192.0.2.1:65535"),
        ("https://[2001:DB8:0:0::1]:443/", "https://[2001:db8::1]"),
        (f"https://{'a' * 63}.{'b.' * 93}org", f"https://{'a' * 63}.{'b.' * 93}org"),
        ("http://[0:0::1]:1", "http://[::1]:1"),
    ],
)
def test_an_origin_is_written_as_browsers_do(stated: str, origin: str) -> None:
    public = read_settings(["--behind-proxy", stated]).public
    assert public is not None
    assert public.origin == origin


@pytest.fixture
def certificate(tmp_path: Path) -> list[str]:
    keys = tmp_path / "keys"
    create_keys(keys, ["stats.example.org"], hybrid=False, now=time.time())
    return ["--certificate", str(keys / "server.crt"), "--private-key", str(keys / "server.key")]


def test_who_signs_in_elsewhere_needs_tls(tmp_path: Path, certificate: list[str]) -> None:
    there = write_login(tmp_path / "there", "https://stats.example.org:8501/oauth2callback")
    here = write_login(tmp_path / "here", "http://localhost:8501/oauth2callback")
    address = ["--address", "192.0.2.1"]
    assert read_settings(["--login", str(here)]).login is not None
    assert read_settings([*address, "--login", str(there), *certificate]).certificate is not None
    for arguments, said in (
        ([*address, "--login", str(here)], "need TLS"),
        (["--login", str(there)], "need TLS"),
        ([*address, "--login", str(here), *certificate], "must begin with https://"),
    ):
        with pytest.raises(SettingsError, match=said):
            read_settings(arguments)


def test_a_key_that_is_not_the_certificates_is_refused(
    tmp_path: Path, certificate: list[str]
) -> None:
    certificate[-1] = str(tmp_path / "keys" / "client.key")
    with pytest.raises(SettingsError, match="cannot serve with"):
        read_settings(certificate)


def test_who_signs_in_behind_a_proxy_comes_back_to_it(tmp_path: Path) -> None:
    login = write_login(tmp_path / "login", "https://example.org/stats/oauth2callback")
    arguments = ["--login", str(login), "--behind-proxy"]
    assert str(read_settings([*arguments, "https://example.org/stats"]).public) == (
        "https://example.org/stats"
    )
    with pytest.raises(SettingsError, match=r"must be https://example\.org/oauth2callback"):
        read_settings([*arguments, "https://example.org"])


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("https://stats.example.org/", "must end with /oauth2callback"),
        ("http://stats.example.org/oauth2callback", "in plaintext"),
        ("stats.example.org/oauth2callback", "must be like"),
        ("https://stats.example.org:99999/oauth2callback", "redirect_uri must have a port"),
        ("https://a..b/oauth2callback", "redirect_uri has 'a..b' for a host"),
    ],
)
def test_where_nobody_could_be_sent_back_to(tmp_path: Path, uri: str, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        read_settings(["--login", str(write_login(tmp_path / "login", uri))])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_served(address: str) -> None:
    assert read_settings(["--address", address]).address == address


def test_an_aggregator_elsewhere_is_read_with_keys(tmp_path: Path) -> None:
    arguments = ["--aggregator", "collect.example.com:7444", "--keys", str(tmp_path)]
    assert read_settings(arguments).keys == tmp_path


def test_streamlit_neither_calls_home_nor_explains_errors() -> None:
    found = options(read_settings([]))
    assert found["browser.gatherUsageStats"] is False
    assert found["client.showErrorDetails"] == "none"
    assert found["server.address"] == "127.0.0.1"
    # Whatever a user's own configuration of Streamlit says.
    assert found["secrets.files"] == []
    assert found["server.trustedUserHeaders"] == {}


def test_streamlit_is_told_the_public_address() -> None:
    found = options(read_settings(["--behind-proxy", "https://example.org/stats"]))
    assert found["server.allowedHosts"] == ["localhost", "127.0.0.1", "::1", "example.org"]
    assert found["server.baseUrlPath"] == "stats"
    assert found["browser.serverAddress"] == "example.org"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hubbub_dashboard", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_taken_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("--port", str(port))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"hubbub dashboard: cannot serve on 127.0.0.1, port {port}")
    assert ended.stderr.count("\n") == 1


def test_missing_keys_are_one_sentence(tmp_path: Path) -> None:
    ended = run("--port", "0", "--keys", str(tmp_path / "none"))
    assert ended.returncode == 1
    assert "ca.crt" in ended.stderr
    assert ended.stderr.count("\n") == 1
