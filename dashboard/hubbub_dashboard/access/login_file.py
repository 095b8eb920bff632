"""The file named by --login: the provider that knows people, and who of them may read."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from hubbub_aggregator.mistakes import Mistake
from hubbub_dashboard.access.public_address import read_public_address

CALLBACK: Final = "/oauth2callback"
"""Where the provider sends people back to; Streamlit's."""

_DISCOVERY: Final = "/.well-known/openid-configuration"
_PROVIDER: Final = (
    "redirect_uri",
    "cookie_secret",
    "client_id",
    "client_secret",
    "server_metadata_url",
)
_READERS: Final = re.compile(r"[^@\s]*@[^@\s.]+(\.[^@\s.]+)+")

# Whoever guesses the secret signs in as anybody. Of so many random digits, one in ten million has
# fewer different ones; what was typed by holding a key has one.
_SHORTEST_SECRET: Final = 32
_FEWEST_DIFFERENT: Final = 6

# Bytes; a thousand readers fit.
_LARGEST_FILE: Final = 1 << 16


class LoginFileError(Mistake):
    """A login file that cannot be used; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who may read the page, and who knows them."""

    auth: Mapping[str, str] = field(repr=False)
    """What Streamlit calls [auth]."""
    readers: frozenset[str]
    """Addresses, and "@example.org" for all of a domain."""
    trust_addresses: bool
    """Take an address though the provider does not say whether it is verified."""

    def admits(self, address: str) -> bool:
        """Whether a verified address is a reader's."""
        _, at, domain = _folded(address).rpartition("@")
        return _folded(address) in self.readers or f"{at}{domain}" in self.readers


# Read once: the page's server and its script must go by the same.
@cache
def read_login(path: Path) -> Login:
    """Read and check the file. Raises LoginFileError, PublicAddressError."""
    tables = _parse(path, _read(path))
    return Login(_provider(path, tables), *_rules(path, tables))


def _read(path: Path) -> bytes:
    """Read a file of usual size that nobody else may."""
    try:
        # A pipe that nobody writes to would keep whoever opens it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            _check_mode(path, os.fstat(descriptor).st_mode)
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise LoginFileError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        raise LoginFileError(
            f"{path} has more than {_LARGEST_FILE >> 10} KiB: it is no login file, or lists many "
            f"readers instead of their domain"
        )
    return content


def _check_mode(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise LoginFileError(f"{path} is not a file")
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IRWXO):
        raise LoginFileError(
            f"{path} holds secrets, and other users of this machine can read or change it: "
            f"chmod 600 {path}"
        )


def _parse(path: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:
        raise LoginFileError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise LoginFileError(f"{path} nests its values too deeply") from None


def _table(path: Path, tables: dict[str, Any], name: str) -> dict[str, Any]:
    table = tables.get(name)
    if not isinstance(table, dict):
        raise LoginFileError(f"{path} has no table [{name}]")
    return cast("dict[str, Any]", table)


def _provider(path: Path, tables: dict[str, Any]) -> dict[str, str]:
    table = _table(path, tables, "auth")
    for key in _PROVIDER:
        if not isinstance(table.get(key), str) or not table[key].strip():
            raise LoginFileError(f"[auth] of {path} needs {key}, a text")
    for key in table:
        if key not in _PROVIDER:
            raise LoginFileError(f"[auth] of {path} has {key}, which means nothing here")
    secret = table["cookie_secret"]
    if len(secret) < _SHORTEST_SECRET or len(set(secret)) < _FEWEST_DIFFERENT:
        raise LoginFileError(
            f"cookie_secret in {path} must have {_SHORTEST_SECRET} characters or more, and be "
            f"random: python -c 'import secrets; print(secrets.token_hex())' makes one"
        )
    _check_discovery(path, table["server_metadata_url"])
    return dict(table)


def _check_discovery(path: Path, url: str) -> None:
    if not url.endswith(_DISCOVERY):
        raise LoginFileError(
            f"server_metadata_url in {path} must end with {_DISCOVERY}, unlike {url}"
        )
    read_public_address(url.removesuffix(_DISCOVERY), f"the provider of {path}")


def _rules(path: Path, tables: dict[str, Any]) -> tuple[frozenset[str], bool]:
    table = _table(path, tables, "hubbub")
    readers = table.get("readers")
    if not isinstance(readers, list) or not readers:
        raise LoginFileError(
            f"[hubbub] of {path} needs readers, a list such as "
            f'["ana@example.org", "@example.org"]: without it whoever has an account with the '
            f"provider could read the page"
        )
    for reader in cast("list[object]", readers):
        if not isinstance(reader, str) or not _READERS.fullmatch(reader):
            raise LoginFileError(
                f"readers in {path} are addresses, or @ and a domain, not {reader!r}"
            )
    trust = table.get("trust_addresses", False)
    if not isinstance(trust, bool):
        raise LoginFileError(f"trust_addresses in {path} is true or false, not {trust!r}")
    for key in table:
        if key not in ("readers", "trust_addresses"):
            raise LoginFileError(f"[hubbub] of {path} has {key}, which means nothing here")
    return frozenset(map(_folded, cast("list[str]", readers))), trust


def _folded(address: str) -> str:
    """Small letters; beyond ASCII some letters would become others' ones."""
    return address.lower() if address.isascii() else address
