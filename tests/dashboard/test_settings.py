"""The command line: what is refused, each with its own sentence."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub_dashboard.settings import Settings, SettingsError, read_settings
from hubbub_dashboard.streamlit_options import options
from tests.processes import PATIENCE


def test_defaults_stay_on_this_machine() -> None:
    assert read_settings([]) == Settings("localhost:7444", "127.0.0.1", 8501, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address", "0.0.0.0"], "no login yet"),  # noqa: S104
        (["--address", "192.0.2.1"], "no login yet"),
        (["--address", "page.example.com"], "no login yet"),
        (["--port", "65536"], "between 0 and 65535"),
        (["--aggregator", "localhost"], "HOST:PORT"),
        (["--aggregator", "collect.example.com:7444"], "plaintext on loopback only"),
    ],
)
def test_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_settings(arguments)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_served(address: str) -> None:
    assert read_settings(["--address", address]).address == address


def test_an_aggregator_elsewhere_is_read_with_keys(tmp_path: Path) -> None:
    arguments = ["--aggregator", "collect.example.com:7444", "--keys", str(tmp_path)]
    assert read_settings(arguments).keys == tmp_path


def test_streamlit_neither_calls_home_nor_explains_errors() -> None:
    found = options("127.0.0.1", 8501)
    assert found["browser.gatherUsageStats"] is False
    assert found["client.showErrorDetails"] == "none"
    assert found["server.address"] == "127.0.0.1"


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
