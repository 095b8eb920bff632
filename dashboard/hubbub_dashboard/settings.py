"""What the page is told on its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub_aggregator.connection import DEFAULT_ADDRESS, is_loopback

PROGRAM: Final = "hubbub dashboard"


class SettingsError(Exception):
    """A setting that cannot be used; the message is one sentence a person can act on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the estimates come from, and where the page is served."""

    aggregator: str
    """host:port of the private listener."""
    address: str
    """Address to listen on; loopback."""
    port: int
    """0: any free one."""
    keys: Path | None
    """Folder with ca.crt, client.crt and client.key; None: plaintext, to loopback only."""


def read_settings(arguments: Sequence[str]) -> Settings:
    """Read the command line. Raises SettingsError; exits on --help and unknown flags."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Serve a live page of an aggregator's estimates."
    )
    parser.add_argument(
        "--aggregator",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help="private listener to read from (default: %(default)s)",
    )
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        help="loopback address to serve the page on (default: %(default)s)",
    )
    parser.add_argument(
        "--port", type=int, default=8501, help="0 takes any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="DIR",
        help="folder with ca.crt, client.crt and client.key, for an aggregator elsewhere",
    )
    found = parser.parse_args(arguments)
    settings = Settings(found.aggregator, found.address, found.port, found.keys)
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    if not 0 <= settings.port <= 65_535:
        raise SettingsError(f"--port must be between 0 and 65535, not {settings.port}")
    # The page has no login, so whoever reaches it reads every metric.
    if not is_loopback(f"{settings.address}:{settings.port}"):
        raise SettingsError(
            f"{settings.address} is not a loopback address, and the page has no login yet: serve "
            f"it on 127.0.0.1 and reach it through a tunnel (ssh -L 8501:127.0.0.1:8501 HOST)"
        )
    host, colon, port = settings.aggregator.rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise SettingsError(f"--aggregator must be HOST:PORT, not {settings.aggregator!r}")
    if settings.keys is None and not is_loopback(settings.aggregator):
        raise SettingsError(
            f"{host} is not this machine, and estimates travel in plaintext on loopback only: "
            f"name the folder with ca.crt, client.crt and client.key by --keys"
        )
