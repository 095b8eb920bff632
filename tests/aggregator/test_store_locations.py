"""Where a store is: which locations are understood, and that no message shows a password."""

import sys

import pytest

from hubbub_aggregator.store import StoreUnavailable
from hubbub_aggregator.store.location import parse, shown
from tests.aggregator.stores import open_store

SECRET = "s3cr3t"  # noqa: S105
NOWHERE = "/nonexistent"


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("what://ever", "SQLite file or a PostgreSQL database"),
        (f"mysql://me:{SECRET}@host/db", "SQLite file or a PostgreSQL database"),
        (f"postgresql+psycopg2://me:{SECRET}@host/db", "another driver"),
        (f"postgresql+psycopg://me:{SECRET}@host", "names no database"),
        (f"postgresql+psycopg://me:{SECRET}@host/", "names no database"),
        (f"postgresql+psycopg://me:{SECRET}@host:port/db", "not a URL"),
        (f"postgresql+psycopg://me:p@{SECRET}@host/db", "written %40"),
        (f"post gresql://me:{SECRET}@host/db", "not a URL"),
        (f"://me:{SECRET}@host/db", "not a URL"),
        (f"postgresql+psycopg://me:{SECRET}@/db?host={NOWHERE}", "No such file"),
        (f"postgresql+psycopg://me@/db?host={NOWHERE}&password={SECRET}", "No such file"),
        (f"postgresql+psycopg://me@/db?host={NOWHERE}&no={SECRET}", "invalid connection option"),
        (f"postgresql+psycopg://me@/db?host={NOWHERE}&sslmode={SECRET}", "invalid sslmode"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_a_sentence(location: str, says: str) -> None:
    with pytest.raises(StoreUnavailable, match=says) as raised:
        open_store(location)
    text = str(raised.value)
    assert "\n" not in text
    # A password is no sslmode; what libpq quotes is what it was given as something else.
    assert SECRET not in text or "sslmode" in text


@pytest.mark.parametrize(
    ("location", "is_shown"),
    [
        (f"postgresql+psycopg://me:{SECRET}@host:1/db", "postgresql+psycopg://me@host:1/db"),
        (f"postgresql://me@/db?password={SECRET}", "postgresql://me@/db"),
        (f"postgresql://me:{SECRET}@/db?host=/run&passfile=x", "postgresql://me@/db?host=%2Frun"),
        (f"postgresql://me:{SECRET}%40x@host/db", "postgresql://me@host/db"),
    ],
)
def test_a_location_is_shown_without_its_password(location: str, is_shown: str) -> None:
    assert shown(parse(location)) == is_shown


def test_a_missing_driver_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        StoreUnavailable, match=r"needs psycopg: pip install 'hubbub\[postgresql\]'"
    ):
        open_store(f"postgresql+psycopg://me:{SECRET}@host/db")
