"""What state the health page is in: all is well, or what is wrong and what to do. Pure."""

from dataclasses import replace

from hubbub_aggregator.doctor.findings import Level
from hubbub_aggregator.troubles import Trouble, troubles
from hubbub_dashboard import states
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.reading.source import AggregatorStatus
from hubbub_dashboard.states import Status, Tone

# gRPC's word for a call that a server does not know.
_UNKNOWN_CALL = "UNIMPLEMENTED"


def status(address: str, reading: Reading[AggregatorStatus], now: float) -> Status:
    """Return the state in a word, and a sentence about everything that has none of its own."""
    if reading.failure == _UNKNOWN_CALL:
        return Status(
            Tone.AWAY,
            "Older aggregator",
            f"The aggregator at {address} answers, but is of a version that does not tell how it "
            f"is doing. Once it runs this version, the page fills up by itself.",
        )
    if reading.value is None:
        return states.not_connected(address)
    if reading.failure:
        away = states.away(address, reading, None, now)
        return replace(
            away,
            sentence=f"{away.sentence} `hubbub doctor`, on its machine, tells what keeps it from "
            f"running.",
        )
    found = troubles(reading.value.record)
    if not found:
        return Status(Tone.LIVE, "All is well", "Nothing here needs your attention.")
    if found[0].level is Level.PROBLEM:
        return Status(Tone.PROBLEM, "Problem", "")
    return Status(Tone.WARNING, "Warning", "")


def known_troubles(reading: Reading[AggregatorStatus]) -> tuple[Trouble, ...]:
    """What is wrong, or was when the aggregator last answered."""
    return () if reading.value is None else troubles(reading.value.record)
