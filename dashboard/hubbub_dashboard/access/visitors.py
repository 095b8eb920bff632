"""Who is let in: decided anew at every look. Pure, but for what is remembered of sign-outs."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hubbub_dashboard.access.login_file import Login

HOURS: Final = 12
"""How long a sign-in lasts; Streamlit's cookie would say so for 30 days."""


class Standing(Enum):
    """What somebody is to the page."""

    NOBODY = "not signed in"
    ENDED = "signed in too long ago, or signed out since"
    UNVERIFIED = "signed in with an address that may be anybody's"
    STRANGER = "signed in, and no reader"
    READER = "signed in, and a reader"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at the page."""

    standing: Standing
    address: str = ""
    """As the provider gives it."""


class SignOuts:
    """The sign-ins that were ended before their time, in whatever window."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, sign_in: str, now: float) -> None:
        """End a sign-in, for all windows that have it and all copies of its cookie."""
        kept = {key: until for key, until in self._until.items() if until > now}
        self._until = {**kept, sign_in: now + 3_600 * HOURS}

    def __contains__(self, sign_in: object) -> bool:
        return sign_in in self._until


def sign_in_of(user: Mapping[str, object]) -> str:
    """What tells this sign-in from all others."""
    return f"{user.get('sub')} {user.get('iat')} {user.get('nonce')}"


def visitor(
    user: Mapping[str, object], login: Login, sign_outs: Container[str], now: float
) -> Visitor:
    """Judge what the provider said about somebody, which Streamlit keeps in a signed cookie."""
    if user.get("is_logged_in") is not True:
        return Visitor(Standing.NOBODY)
    begun = user.get("iat")
    if not isinstance(begun, int | float) or now - begun > 3_600 * HOURS:
        return Visitor(Standing.ENDED)
    if sign_in_of(user) in sign_outs:
        return Visitor(Standing.ENDED)
    address = user.get("email")
    if not isinstance(address, str) or not _verified(user, login):
        return Visitor(Standing.UNVERIFIED, address if isinstance(address, str) else "")
    return Visitor(Standing.READER if login.admits(address) else Standing.STRANGER, address)


def _verified(user: Mapping[str, object], login: Login) -> bool:
    # Some providers write it as text.
    match user.get("email_verified"):
        case True | "true":
            return True
        case None:
            return login.trust_addresses
        case _:
            return False
