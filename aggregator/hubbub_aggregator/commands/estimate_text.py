"""What `hubbub estimate` says to people: a table, what it is of, and what it rests on."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from hubbub_aggregator.answers import Estimates, PooledEstimates
from hubbub_aggregator.commands.output import EMPTY, whose
from hubbub_aggregator.percent import decimals, percent
from hubbub_aggregator.text_table import text_table

NAME_CANDIDATES: Final = "an open domain: name candidates with --candidates FILE"

_AMONG_REPORTS: Final = {
    "respondents": "share among the reports, each about its device's value in its round",
    "population": "share among all devices, rounds weighing as many reports as they have",
}
_AT_MOST: Final = (
    "Errors and intervals are at most so wide, as they are if the same devices answered in all\n"
    "rounds and their values never changed: who answered when is not known."
)
_INDEPENDENT: Final = "Every report has noise of its own: rounds add up as if they were one."
_JUDGED: Final = "Not distinguishable from zero is judged over all values at once."


def estimate_text(answer: Estimates | PooledEstimates) -> str:
    """The lines that a terminal shows."""
    law = f"{answer.mechanism}, ε = {answer.epsilon.declared} (realised {answer.epsilon.realised})"
    if isinstance(answer, PooledEstimates):
        return "\n".join([*_pooled_title(answer), law, *_imported(answer.report), *_pooled(answer)])
    title = f"{answer.metric}, round {answer.round} ({answer.state})"
    if answer.n:
        title += f": n = {answer.n:,} as of {answer.report['as_of']}"
    return "\n".join([title, law, *_imported(answer.report), *_of_one_round(answer)])


def _imported(report: dict[str, Any]) -> list[str]:
    if not report["plain"]:
        return []
    return [f"{report['plain']:,} of these reports came unsealed: imported, not from a device"]


def _of_one_round(answer: Estimates) -> list[str]:
    values = answer.report["values"]
    if not answer.n:
        return [_no_figures(answer)]
    if not values:
        return [NAME_CANDIDATES]
    return [
        whose(answer.target, answer.level),
        *_table(values),
        f"{_influence(values)}.",
        _JUDGED,
    ]


def _no_figures(answer: Estimates) -> str:
    if answer.state == "closed":
        return f"no figures: the round {EMPTY}"
    return (
        f"no figures yet: the first snapshot needs {answer.publish_step:,} reports, "
        f"or the round's end"
    )


def _pooled_title(answer: PooledEstimates) -> list[str]:
    first, last = answer.first_round, answer.last_round
    title = f"{answer.metric}, rounds {first} to {last} pooled"
    if answer.n:
        title += f": n = {answer.n:,} as of {answer.report['as_of']}"
    missing = answer.report["without_reports"]
    return [title, f"no snapshot of {_spelt(missing)}"] if answer.n and missing else [title]


def _spelt(rounds: Sequence[int]) -> str:
    """Ascending round numbers, those in a row together."""
    # What is in a row keeps its distance from the numbers of its places.
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(rounds), lambda place: place[1] - place[0])
    ]
    spelt = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"{'round' if len(rounds) == 1 else 'rounds'} {', '.join(spelt)}"


def _pooled(answer: PooledEstimates) -> list[str]:
    if not answer.n:
        return ["no figures: none of these rounds has a snapshot"]
    values = answer.report["values"]
    return [
        whose(answer.target, answer.level, _AMONG_REPORTS),
        *_table(values),
        f"{_influence(values)},",
        f"one hostile device by {len(answer.rounds):,} times as much.",
        _JUDGED,
        _AT_MOST if answer.at_most else _INDEPENDENT,
    ]


def _influence(values: list[dict[str, Any]]) -> str:
    """Two sentences but for the last full stop."""
    influence = values[0]["influence"]
    return (
        f"Each interval holds for its value alone. One hostile report moves a share by up to "
        f"{percent(influence, decimals(influence))}"
    )


def _table(values: list[dict[str, Any]]) -> list[str]:
    places = decimals(min(row["std_error"] for row in values))
    rows = [
        (
            row["value"],
            *(percent(row[name], places) for name in ("estimate", "std_error", "low", "high")),
            "" if row["distinguishable"] else "not distinguishable from zero",
        )
        for row in values
    ]
    return ["", text_table(("value", "share", "std error", "low", "high", ""), rows), ""]
