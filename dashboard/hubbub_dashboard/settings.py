"""What the page is told on its command line."""

import argparse
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub_aggregator.connection import DEFAULT_ADDRESS, LAST_PORT, check_address, is_loopback
from hubbub_aggregator.mistakes import Mistake
from hubbub_dashboard.access.host import read_host
from hubbub_dashboard.access.login_file import CALLBACK, Login, read_login
from hubbub_dashboard.access.public_address import PublicAddress, read_public_address

PROGRAM: Final = "hubbub dashboard"


class SettingsError(Mistake):
    """A setting that cannot be used; the message is one sentence a person can act on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the estimates come from, and where the page is served."""

    aggregator: str
    """host:port of the private listener."""
    address: str
    """Address to listen on."""
    port: int
    """0: any free one."""
    keys: Path | None
    """Folder with ca.crt, client.crt and client.key; None: plaintext, to loopback only."""
    public: PublicAddress | None = None
    """Where viewers find the page, if that is not where it listens."""
    login: Login | None = None
    """None: whoever reaches the page reads it."""
    certificate: tuple[Path, Path] | None = None
    """The files of the page's certificate and private key; None: plaintext."""


def read_settings(arguments: Sequence[str]) -> Settings:
    """Read the command line. Raises Mistake; exits on --help and unknown flags."""
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
        help="address to serve the page on; other than loopback only with one of "
        "--behind-proxy and --login (default: %(default)s)",
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
    parser.add_argument(
        "--behind-proxy",
        metavar="URL",
        help="https address at which a reverse proxy serves the page, to those whom it lets in",
    )
    parser.add_argument(
        "--login",
        type=Path,
        metavar="FILE",
        help="TOML file with the OpenID Connect provider that signs readers in, and who they are",
    )
    parser.add_argument(
        "--certificate", type=Path, metavar="FILE", help="PEM certificate to serve the page with"
    )
    parser.add_argument("--private-key", type=Path, metavar="FILE", help="its private key, PEM")
    found = parser.parse_args(arguments)
    login = read_login(found.login) if found.login else None
    certificate = _certificate(found.certificate, found.private_key)
    settings = Settings(
        found.aggregator,
        read_host(found.address, "--address"),
        found.port,
        found.keys,
        _public(found.behind_proxy, login, found.port),
        login,
        certificate,
    )
    _check(settings)
    _check_reach(settings, proxy=found.behind_proxy is not None)
    return settings


def _certificate(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise SettingsError("--certificate and --private-key go together")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:
        raise SettingsError(
            f"cannot serve with {certificate} and {key}: {error.strerror or error}"
        ) from None
    return certificate, key


def _public(proxy: str | None, login: Login | None, port: int) -> PublicAddress | None:
    stated = None if proxy is None else read_public_address(proxy, "--behind-proxy")
    if login is None:
        return stated
    # Streamlit fills in the port, too.
    uri = login.auth["redirect_uri"].replace("{port}", str(port))
    if not uri.endswith(CALLBACK):
        raise SettingsError(f"redirect_uri must end with {CALLBACK}, unlike {uri}")
    back = read_public_address(uri.removesuffix(CALLBACK), "redirect_uri", any_port=port == 0)
    if stated not in (None, back):
        raise SettingsError(
            f"behind a proxy at {stated}, redirect_uri must be {stated}{CALLBACK}, not {uri}"
        )
    return back


def _check(settings: Settings) -> None:
    if not 0 <= settings.port <= LAST_PORT:
        raise SettingsError(f"--port must be between 0 and {LAST_PORT}, not {settings.port}")
    check_address(settings.aggregator)
    if settings.keys is None and not is_loopback(settings.aggregator):
        raise SettingsError(
            f"{settings.aggregator} is not on this machine, and estimates travel in plaintext on "
            f"loopback only: name the folder with ca.crt, client.crt and client.key by --keys"
        )


def _check_reach(settings: Settings, *, proxy: bool) -> None:
    """Whoever reaches the page reads every metric, unless a proxy or a login is in between."""
    if settings.login and not proxy:
        _check_login_without_proxy(settings)
    if proxy or settings.login or is_loopback(f"{settings.address}:{settings.port}"):
        return
    raise SettingsError(
        f"{settings.address} is not a loopback address, and whoever reached the page there would "
        f"read every metric. For yourself, serve it on 127.0.0.1 and reach it through a tunnel "
        f"(ssh -L 8501:127.0.0.1:8501 HOST); for others, put a reverse proxy before it that lets "
        f"in only them (--behind-proxy https://HOST), or have them sign in (--login FILE)"
    )


def _check_login_without_proxy(settings: Settings) -> None:
    encrypted = settings.public is not None and settings.public.secure
    if settings.certificate is None and (
        encrypted or not is_loopback(f"{settings.address}:{settings.port}")
    ):
        raise SettingsError(
            "people who sign in elsewhere than on this machine need TLS: give the page a "
            "certificate (--certificate FILE --private-key FILE), or put a reverse proxy that has "
            "one before it (--behind-proxy https://HOST)"
        )
    if settings.certificate is not None and not encrypted:
        raise SettingsError("with --certificate, redirect_uri must begin with https://")
