"""What a status tells that somebody has to act on, in the words that every place tells it with."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hubbub_aggregator.doctor.findings import Level
from hubbub_aggregator.status_record import moment

# A commit of the largest requests takes a few MiB, and so does what SQLite writes beside it.
LEAST_FREE: Final = 64 << 20

# Before a certificate ends, so that there is time to make another.
WARNING_DAYS: Final = 30


class Trouble(NamedTuple):
    """What is wrong, and after it since when or why, and what to do; both make one sentence."""

    level: Level
    what: str
    more: str


def troubles(record: Mapping[str, Any]) -> tuple[Trouble, ...]:
    """What is wrong by `status_record`, the worst first; nothing if all is well."""
    found = (*of_store(record), *of_archive(record), *_certificate(record), *_stopping(record))
    return tuple(sorted(found, key=lambda trouble: trouble.level is not Level.PROBLEM))


def of_store(record: Mapping[str, Any]) -> Iterator[Trouble]:
    """What is wrong with the store, and the disk it is on."""
    store = record["store"]
    if store["failing_since"] is not None:
        yield Trouble(
            Level.PROBLEM,
            "Nothing is counted",
            f" since {store['failing_since']}: the store cannot be written; the aggregator's log "
            f"says why.",
        )
    if store["unreadable"] is not None:
        yield Trouble(Level.PROBLEM, "The store cannot be read", f": {_ended(store['unreadable'])}")
    if store["free_bytes"] is not None and store["free_bytes"] < LEAST_FREE:
        yield Trouble(
            Level.PROBLEM,
            "The disk is nearly full",
            f": {store['free_bytes'] >> 20:,} MiB are free where the store is; make room, or soon "
            f"no report is counted.",
        )


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith("?") else f"{sentence}."


def of_archive(record: Mapping[str, Any]) -> Iterator[Trouble]:
    """What keeps rounds from the archive."""
    archive = record["archive"]
    if archive is not None and archive["failing_since"] is not None:
        yield Trouble(
            Level.PROBLEM,
            "Rounds cannot be archived",
            f" since {archive['failing_since']}: {archive['reason']}. See to {archive['folder']}; "
            f"the aggregator's log names the file. {_overdue(archive['rounds_overdue'])}",
        )


def _overdue(rounds: int) -> str:
    if not rounds:
        return "When that is mended, close the round again."
    if rounds == 1:
        return "1 round waits to be closed, and is tried again every minute."
    return f"{rounds:,} rounds wait to be closed, and are tried again every minute."


def _certificate(record: Mapping[str, Any]) -> Iterator[Trouble]:
    expires = record["certificate_expires"]
    if expires is None:
        return
    days = int((moment(expires) - moment(record["as_of"])) // 86_400)
    renew = "make another with hubbub keygen --new-certificate, and every --host again."
    if days < 0:
        yield Trouble(
            Level.PROBLEM,
            "The certificate has expired",
            f" on {expires[:10]}, and devices refuse it; {renew}",
        )
    elif days < WARNING_DAYS:
        yield Trouble(
            Level.WARNING,
            "The certificate expires soon",
            f": on {expires[:10]}, in {_days(days)}; {renew}",
        )


def _days(days: int) -> str:
    return "less than a day" if days == 0 else "1 day" if days == 1 else f"{days} days"


def _stopping(record: Mapping[str, Any]) -> Iterator[Trouble]:
    if record["stopping"]:
        yield Trouble(
            Level.WARNING,
            "The aggregator is stopping",
            ": it finishes what is in hand; start it again if need be.",
        )
