"""What state the page is in, in words: every state has its own badge and sentence. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from hubbub_dashboard import text
from hubbub_dashboard.reading.answers import Comparison, Estimates, Metric, RoundState
from hubbub_dashboard.reading.memory import Reading


class Tone(Enum):
    """How a state's badge looks: a glyph each, so that none depends on colour."""

    LIVE = "●"
    FINAL = "■"
    WAITING = "◌"
    AWAY = "▲"
    WARNING = "◆"
    PROBLEM = "✖"


@dataclass(frozen=True, slots=True)
class Status:
    """A state of the page."""

    tone: Tone
    word: str
    sentence: str


def not_connected(address: str) -> Status:
    """No answer since the page's server started."""
    return Status(
        Tone.AWAY,
        "Not connected",
        f"No aggregator has answered at {address} yet. Is `hubbub serve` running, with its private "
        f"listener there? This page keeps trying and fills up by itself.",
    )


def no_metrics(address: str) -> Status:
    """The aggregator answers, and has nothing to show."""
    return Status(
        Tone.WAITING,
        "No metrics",
        f"The aggregator at {address} answers, but its bundle lists no metric; `hubbub sign` "
        f"puts metrics into one.",
    )


def away(address: str, reading: Reading[Any], estimates: Estimates | None, now: float) -> Status:
    """The aggregator answered once, and does not now."""
    if reading.answered is None:
        silence = "has no answer about this round"
    else:
        silence = (
            f"last answered at {text.clock(reading.answered)} "
            f"({text.age(now - reading.answered)} ago), and does not answer now"
        )
    shown = f"{_last_known(estimates)} " if estimates is not None else ""
    return Status(
        Tone.AWAY,
        "Aggregator away",
        f"The aggregator at {address} {silence}. {shown}The page goes live again by itself.",
    )


def _last_known(estimates: Estimates) -> str:
    match estimates.state:
        case RoundState.NOT_OPEN:
            return "This round had not opened by then."
        case RoundState.OPEN:
            return "This round was still open: newer figures may exist."
        case RoundState.CLOSED if estimates.n == 0:
            return "This round had closed with no reports, or its counts had been forgotten."
        case RoundState.CLOSED:
            return "This round had closed: these figures are final."


def of_round(estimates: Estimates) -> Status:
    """Where a round stands, while the aggregator answers."""
    step = text.counted(estimates.publish_step, "report")
    match estimates.state:
        case RoundState.NOT_OPEN:
            return Status(Tone.WAITING, "Not open yet", "This round takes no reports yet.")
        case RoundState.CLOSED if estimates.n == 0:
            return Status(
                Tone.FINAL,
                "Closed",
                "This round closed with no reports, or its counts were forgotten.",
            )
        case RoundState.CLOSED:
            return Status(
                Tone.FINAL, "Closed", "This round takes no more reports: these figures are final."
            )
        case RoundState.OPEN if estimates.n == 0:
            return Status(
                Tone.WAITING,
                "Waiting for the first snapshot",
                f"Figures appear once this round holds at least {step}. Until then not "
                f"even their number is shown, so that the first to answer are not singled out.",
            )
        case RoundState.OPEN:
            return Status(Tone.LIVE, "Open", text.publishing(estimates.publish_step))


def of_comparison(comparison: Comparison) -> Status:
    """Where the rounds of a comparison stand, while the aggregator answers."""
    for side in (comparison.left, comparison.right):
        if side.n == 0:
            return Status(
                Tone.WAITING,
                "Nothing to compare yet",
                f"Round {side.round} of `{side.metric}` has no snapshot: it has not opened, holds "
                f"too few reports yet, or its counts were forgotten.",
            )
    if comparison.final:
        return Status(
            Tone.FINAL, "Final", "No more reports are taken: these figures do not change."
        )
    return Status(
        Tone.LIVE, "Preliminary", "Reports still come in, and the figures change with them."
    )


def in_the_way(
    address: str,
    metrics: Reading[tuple[Metric, ...]],
    reading: Reading[Any] | None,
    now: float,
    *,
    known: Estimates | None = None,
) -> Status | None:
    """Return what keeps a page from showing what it should; None: nothing does.

    `reading`: what it shows of one of `metrics`, None if it needs no more than them; `known`: the
    round's last snapshot, where that is shown still.
    """
    if metrics.value is None:
        return not_connected(address)
    if not metrics.value:
        return no_metrics(address)
    if metrics.failure:
        return away(address, metrics, known, now)
    if reading is not None and (reading.failure or reading.value is None):
        return away(address, reading, known, now)
    return None


def comparison_status(
    address: str,
    metrics: Reading[tuple[Metric, ...]],
    comparison: Reading[Comparison],
    now: float,
) -> Status:
    """Return the state of a page that shows `comparison`, of rounds of `metrics`."""
    found = in_the_way(address, metrics, comparison, now)
    if found is not None or comparison.value is None:
        return found or not_connected(address)
    return of_comparison(comparison.value)


def status(
    address: str,
    metrics: Reading[tuple[Metric, ...]],
    estimates: Reading[Estimates],
    now: float,
) -> Status:
    """Return the state of a page that shows `estimates`, one of `metrics`."""
    found = in_the_way(address, metrics, estimates, now, known=estimates.value)
    if found is not None or estimates.value is None:
        return found or not_connected(address)
    return of_round(estimates.value)
