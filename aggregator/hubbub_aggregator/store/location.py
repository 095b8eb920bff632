"""Where a store is, as somebody wrote it: understood once, and shown without its password."""

from typing import Final

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hubbub_aggregator.store.errors import StoreUnavailable

# libpq takes a password among a URL's options too, so what is shown is chosen, not what is hidden.
_SHOWN_OPTIONS: Final = ("host", "port")


def parse(location: str) -> URL:
    """Raises StoreUnavailable, without anything of the text that may be a password."""
    hidden = f"{location.partition('://')[0]}://…"
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number.
        raise StoreUnavailable(
            hidden,
            "is not a URL such as sqlite:///hubbub.sqlite3 or "
            "postgresql+psycopg://user@host/database",
        ) from None
    if "@" in (url.host or ""):
        # The host would hold the rest of the password, and every message names the host.
        raise StoreUnavailable(hidden, "an @ in a user's name or password is written %40")
    return url


def shown(url: URL) -> str:
    """The URL for people: no password, and no option but where the server is."""
    return URL.create(
        url.drivername,
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query={name: url.query[name] for name in _SHOWN_OPTIONS if name in url.query},
    ).render_as_string()
