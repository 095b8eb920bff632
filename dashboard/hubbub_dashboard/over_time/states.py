"""What state the page is in, in a word and a sentence. Pure."""

from typing import Any

from hubbub_dashboard import states
from hubbub_dashboard.over_time.series import Kind, Series
from hubbub_dashboard.reading.answers import Metric
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.states import Status, Tone


def status(
    address: str,
    metrics: Reading[tuple[Metric, ...]],
    failed: Reading[Any] | None,
    series: Series | None,
    now: float,
) -> Status | None:
    """Return the state of a page that shows `series`; None if it needs none.

    `failed`: what could not be read, if something could not.
    """
    found = states.in_the_way(address, metrics, failed, now)
    if found is not None or series is None:
        return found
    return _of(series)


def _of(series: Series) -> Status:
    kinds = {point.kind for point in series.points}
    newest = series.points[-1]
    if Kind.OPEN in kinds:
        return Status(
            Tone.LIVE,
            "Open",
            "The newest figures are preliminary; those of closed rounds are final.",
        )
    if Kind.WAITING in kinds:
        return Status(
            Tone.WAITING,
            f"Waiting for round {newest.number}",
            "An open round appears with its first snapshot; figures of closed rounds are final.",
        )
    return Status(Tone.FINAL, "Closed", "These rounds take no more reports: all figures are final.")
