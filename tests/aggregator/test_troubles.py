"""What somebody has to act on, and the words for it."""

import re
from typing import Any

import pytest

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.commands.status_text import status_text
from hubbub_aggregator.doctor.findings import Level
from hubbub_aggregator.troubles import LEAST_FREE, WARNING_DAYS, troubles
from tests.statuses import DAY, NOW, make_status


def store(**facts: Any) -> dict[str, Any]:
    return {"store": estimate_pb2.StoreStatus(location="s", **facts)}


def archive(**facts: Any) -> dict[str, Any]:
    status = estimate_pb2.ArchiveStatus(folder="kept", failing_since=NOW, **facts)
    return {"archive": status}


def test_nothing_is_wrong() -> None:
    well = make_status()
    assert troubles(well) == ()
    assert status_text(well).startswith("state ")


@pytest.mark.parametrize(
    "facts",
    [
        {"certificate_expires": None},
        {"certificate_expires": NOW + WARNING_DAYS * DAY},
        store(),
        store(free_bytes=LEAST_FREE),
        {"archive": None},
    ],
)
def test_the_limits_of_what_is_well(facts: dict[str, Any]) -> None:
    assert troubles(make_status(**facts)) == ()


@pytest.mark.parametrize(
    ("facts", "level", "said"),
    [
        (store(failing_since=NOW - 60), Level.PROBLEM, "Nothing is counted since 2001-09-09T01:45"),
        (store(unreadable="gone"), Level.PROBLEM, "The store cannot be read: gone."),
        (store(unreadable="space?"), Level.PROBLEM, "The store cannot be read: space?"),
        (store(free_bytes=LEAST_FREE - 1), Level.PROBLEM, "nearly full: 63 MiB are free"),
        (archive(reason="full"), Level.PROBLEM, "full. See to kept; .* close the round again."),
        (archive(rounds_overdue=1), Level.PROBLEM, "1 round waits"),
        (archive(rounds_overdue=1_000), Level.PROBLEM, "1,000 rounds wait"),
        ({"certificate_expires": NOW - 1}, Level.PROBLEM, "has expired on 2001-09-09"),
        ({"certificate_expires": NOW + 1}, Level.WARNING, "in less than a day"),
        ({"certificate_expires": NOW + 1.5 * DAY}, Level.WARNING, "in 1 day;"),
        ({"certificate_expires": NOW + WARNING_DAYS * DAY - 1}, Level.WARNING, "in 29 days;"),
        ({"stopping": True}, Level.WARNING, "is stopping: .* start it again"),
    ],
)
def test_what_is_wrong_and_what_to_do(facts: dict[str, Any], level: Level, said: str) -> None:
    record = make_status(**facts)
    (found,) = troubles(record)
    assert found.level is level
    assert re.search(said, found.what + found.more)
    what = found.what.upper() if level is Level.PROBLEM else found.what
    assert status_text(record).startswith(f"{what}{found.more}\n\nstate ")


def test_the_worst_comes_first() -> None:
    record = make_status(stopping=True, **store(unreadable="gone", failing_since=NOW))
    assert [found.what for found in troubles(record)] == [
        "Nothing is counted",
        "The store cannot be read",
        "The aggregator is stopping",
    ]
