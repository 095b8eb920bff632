"""Names and addresses of machines, as browsers write them."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from hubbub_aggregator.mistakes import Mistake

_LONGEST: Final = 253
_PART: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)", re.ASCII)
# A browser takes whatever ends like this for an IPv4 address.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class HostError(Mistake):
    """What names no machine; the message says what and why."""


def read_host(text: str, what: str) -> str:
    """Read a name, or an IP address without brackets; returned as a browser writes it.

    Raises HostError.
    """
    if ":" in text:
        return str(_address(IPv6Address, text, what))
    name = text.lower()
    parts = name.split(".")
    if _NUMBER.fullmatch(parts[-1]):
        return str(_address(IPv4Address, text, what))
    if len(name) > _LONGEST:
        raise HostError(f"{what} has a host's name of more than {_LONGEST} characters: {text!r}")
    if not all(map(_PART.fullmatch, parts)):
        raise HostError(
            f"{what} has {text!r} for a host: each part of its name, between dots, has 1 to 63 "
            f"letters, digits and hyphens, and no hyphen at an end"
        )
    return name


def _address(
    kind: type[IPv4Address] | type[IPv6Address], text: str, what: str
) -> IPv4Address | IPv6Address:
    try:
        return kind(text)
    except AddressValueError:
        version = "IPv6" if kind is IPv6Address else "IPv4"
        raise HostError(f"{what} has {text!r} for a host, which is no {version} address") from None
