"""Where viewers find the page, when that is not where it listens."""

import re
from dataclasses import dataclass
from typing import Final

from hubbub_aggregator.connection import LAST_PORT, is_loopback
from hubbub_aggregator.mistakes import Mistake
from hubbub_dashboard.access.host import read_host

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])"
    r"(?::(?P<port>[0-9]+))?"
    r"(?P<path>(?:/[a-z0-9_~-][a-z0-9._~-]*)*)/?",
    re.ASCII | re.IGNORECASE,
)


class PublicAddressError(Mistake):
    """An address that no viewer can be sent to; the message says which and why."""


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """An origin, as browsers name it, and the path under which the page stands there."""

    scheme: str
    host: str
    """Without the port, in lower case."""
    port: int
    path: str
    """"" or "/stats"."""

    @property
    def origin(self) -> str:
        """What a browser sends as Origin."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def secure(self) -> bool:
        """Whether what viewers send and get is encrypted."""
        return self.scheme == "https"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


def read_public_address(text: str, what: str, *, any_port: bool = False) -> PublicAddress:
    """Read https://HOST[:PORT][/PATH]; http for this machine alone.

    `any_port`: port 0 may stand for one that the system will choose.

    Raises PublicAddressError or HostError.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise PublicAddressError(
            f"{what} must be like https://stats.example.org or https://example.org/stats, "
            f"not {text!r}"
        )
    scheme, host = found["scheme"].lower(), read_host(found["host"].strip("[]"), what)
    if scheme == "http" and not is_loopback(f"{host}:0"):
        raise PublicAddressError(
            f"{what} is {text}, where everything would travel in plaintext: it must begin with "
            f"https://"
        )
    port = _port(found["port"] or str(_DEFAULT_PORTS[scheme]), what, least=0 if any_port else 1)
    return PublicAddress(scheme, host, port, found["path"])


def _port(digits: str, what: str, *, least: int) -> int:
    # Python would raise on thousands of digits.
    port = int(digits) if len(digits) <= len(str(LAST_PORT)) else None
    if port is None or not least <= port <= LAST_PORT:
        raise PublicAddressError(f"{what} must have a port between 1 and {LAST_PORT}, not {digits}")
    return port
