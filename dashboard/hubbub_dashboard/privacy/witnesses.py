"""Who sees what of a metric's reports, and what not: the README's table, for one metric. Pure."""

from typing import NamedTuple

from hubbub.statement.facts import Asked
from hubbub_dashboard import text

AGGREGATOR = "the aggregator"
NETWORK = "the network"
READER = "a reader of the page"
STORE_THIEF = "a thief of the aggregator's store"
DEVICE_THIEF = "a thief of a device"
OWNER = "a device's owner"


class Witness(NamedTuple):
    """Somebody, and what comes before their eyes."""

    who: str
    sees: str
    sees_not: str


def witnesses(told: Asked, publish_step: int | None) -> list[Witness]:
    """Everybody who comes near the reports; `publish_step`: None if it is not known."""
    return [
        _aggregator(told),
        Witness(
            NETWORK,
            "that a device sends, when, and how much; past the encryption of the line, which "
            "metric and round",
            "the answer, nor anything that depends on it",
        ),
        _reader(told, publish_step),
        _store_thief(told),
        _device_thief(told),
        Witness(
            OWNER,
            "everything of this but the answers: every byte that left, and what it can reveal at "
            "most: `python -m hubbub show DIR`",
            "",
        ),
    ]


def _aggregator(told: Asked) -> Witness:
    sees = "every noisy report: metric, round, time, and the network address it came from"
    if told.memo is not None:
        sees += "; that reports resemble each other, and so may be one device's"
    if told.schedule.rounds > 1 and not _is_filled(told):
        sees += "; in which rounds a device answers"
    return Witness(AGGREGATOR, sees, "whether any one report is true")


def _is_filled(told: Asked) -> bool:
    """Whether a round that an app records nothing in is answered by the device itself."""
    return told.series is not None and told.absent is not None


def _reader(told: Asked, publish_step: int | None) -> Witness:
    step = "reports" if publish_step is None else f"at least {text.counted(publish_step, 'report')}"
    counts = "counts" if not told.open else "the counts of texts that somebody asks about,"
    return Witness(
        READER,
        f"{counts} in steps of {step}, with their noise; the last step, when a round closes, may "
        "be a single report",
        "the report of any one device, but for that last one",
    )


def _store_thief(told: Asked) -> Witness:
    if told.retained:
        return Witness(
            STORE_THIEF,
            "counts, random report ids of open rounds, and the noisy reports; of an archive, "
            "their ids too",
            "addresses, devices",
        )
    return Witness(
        STORE_THIEF,
        "counts, and random report ids of open rounds",
        "addresses, devices, any report",
    )


def _device_thief(told: Asked) -> Witness:
    if told.memo is not None:
        return Witness(
            DEVICE_THIEF,
            "noisy reports, what was spent, and the memo, which many reports held against it turn "
            "into answers",
            "",
        )
    return Witness(DEVICE_THIEF, "noisy reports, and what was spent", "the true answers")
