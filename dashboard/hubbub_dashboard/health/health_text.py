"""Numbers and sentences of the health page. Pure; plain text, not markup."""

from collections.abc import Mapping, Sequence
from typing import Final

from hubbub_aggregator.status_record import moment
from hubbub_dashboard import text
from hubbub_dashboard.health.history import Interval

# The least that is told apart from nothing, each second.
_LEAST: Final = 0.01

QUANTILES: Final = (
    "Of a hundred requests, 50 took no longer than p50 and 99 no longer than p99; what is told is "
    "at most 60\u202f% too high."
)

WHAT_IS_REJECTED: Final = (
    "Rejected are reports that cannot be opened or are not canonical, and requests refused as a "
    "whole; not duplicates, which devices send to be sure."
)

NO_HISTORY: Final = "The last 15 minutes appear here as time goes by, from the first look on."


def per_second(rate: float) -> str:
    """Write how many come each second, with three digits or so."""
    if rate == 0:
        return "0"
    if rate < _LEAST:
        return "less than 0.01"
    places = 0 if rate >= 100 else 1 if rate >= 10 else 2
    return f"{rate:,.{places}f}"


def share(part: int, whole: int) -> str:
    """Write what share of some counts one is; never 0 % or 100 % of what is not."""
    shown = 100 * part / whole
    if 0 < part < whole:
        shown = min(max(shown, 0.1), 99.9)
    return f"{shown:.1f}\u202f%" if 0 < part < whole else f"{shown:.0f}\u202f%"


def until(expires: str, as_of: str) -> str:
    """Write when a certificate ends as "until 2027-12-30 (397 days)"; both as in a status."""
    days = int((moment(expires) - moment(as_of)) // 86_400)
    return f"until {expires[:10]} ({text.counted(max(0, days), 'day')})"


def unknown_digests(refused: Mapping[str, int]) -> str:
    """Say how many devices hold a contract that this aggregator does not know."""
    unknown = refused.get("unknown_digest", 0)
    if not unknown:
        return "No request was for a digest that it does not know."
    whole = sum(refused.values())
    what = "was for a digest that it does not know: its device holds another bundle"
    if unknown > 1:
        what = "were for digests that it does not know: their devices hold another bundle"
    return (
        f"{text.count(unknown)} of {text.counted(whole, 'refused request')} "
        f"({share(unknown, whole)}) {what}."
    )


def history(metrics: int) -> str:
    """Say what a step of the charts is, and whose, where the bundle lists so many metrics."""
    step = "Every step is the average between two looks"
    if metrics == 1:
        return (
            f"{step}. The bundle lists one metric, so it tells how many reports of it came, and "
            f"never what they said."
        )
    return (
        f"{step}, over all metrics together. Of one metric, what came between two snapshots is "
        f"told nowhere: it would tell what they hide."
    )


def alternative(what: str, intervals: Sequence[Interval], rates: Sequence[float]) -> str:
    """Say in a sentence what a chart of the last minutes shows."""
    minutes = round((intervals[-1].ends - intervals[0].begins) / 60)
    length = "minute" if minutes <= 1 else f"{minutes} minutes"
    return (
        f"{what} over the last {length}: {per_second(rates[-1])} lately, {per_second(max(rates))} "
        f"at most, {per_second(min(rates))} at least."
    )
