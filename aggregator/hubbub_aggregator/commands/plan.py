"""`hubbub plan`: what each mechanism will buy, before anything is collected."""

import math
import textwrap
from typing import Annotated, Any, Final

import typer

from hubbub.exact import Epsilon
from hubbub.limits import MAX_CHARGE_PER_REPORT, MAX_VALUES
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import (
    FormatOfOne,
    FormatOfOneOption,
    LevelOption,
)
from hubbub_aggregator.commands.output import print_json
from hubbub_aggregator.planning.choice import Aim, NothingFits, chosen
from hubbub_aggregator.planning.planner import Curator, Plan, Prospect
from hubbub_aggregator.planning.planner import plan as make_plan
from hubbub_aggregator.text_table import text_table

# More than there are people; the exact power takes seconds there.
_MOST_REPORTS: Final = 10**10

_WIDTH: Final = 100

_LEGEND: Final = (
    "Std error and ± (the interval for one value, for all at once) are those of a value that "
    "nobody has; × bound is its variance over the least that any mechanism can have for all "
    "values alike, in ℓ2 the same for the variances of all values together. A step is on one cell."
)


def plan(
    *,
    values: Annotated[
        int, typer.Option(help="How many answers there are, other and absent included.")
    ],
    epsilon: Annotated[str, typer.Option(help='ε of one report: "1", "0.5", "ln 3".')],
    reports: Annotated[int, typer.Option(help="How many reports will be collected.")],
    max_bytes: Annotated[
        int | None, typer.Option(help="Only mechanisms with payloads of at most so many bytes.")
    ] = None,
    share: Annotated[
        float, typer.Option(help="The share, 0 to 1, whose estimate should be the most accurate.")
    ] = 0.0,
    half_width: Annotated[
        float, typer.Option(help="The half-width, as a share, for which reports are counted.")
    ] = 0.01,
    level: LevelOption = 0.95,
    output: FormatOfOneOption = FormatOfOne.TABLE,
) -> None:
    """Say what a metric will show, before anybody is asked.

    And what it will cost, with every mechanism. Contacts nobody.
    """
    if not 2 <= values <= MAX_VALUES:
        raise CommandError(f"--values is 2 to {MAX_VALUES:,} answers, not {values:,}")
    if not 1 <= reports <= _MOST_REPORTS:
        raise CommandError(f"--reports is 1 to {_MOST_REPORTS:,}, not {reports:,}")
    if max_bytes is not None and max_bytes < 1:
        raise CommandError(f"--max-bytes is at least 1, not {max_bytes:,}")
    if not 0 <= share <= 1:
        raise CommandError(f"--share is 0 to 1, for example 0.1, not {share:g}")
    if not 0 < half_width < 1:
        raise CommandError(f"--half-width is between 0 and 1, for example 0.01, not {half_width:g}")
    try:
        made = make_plan(
            values,
            _epsilon(epsilon),
            reports,
            aim=Aim(share, max_bytes),
            level=level,
            wanted=half_width,
        )
    except NothingFits as error:
        raise CommandError(f"--max-bytes: {error}; allow more bytes") from None
    if output is FormatOfOne.JSON:
        print_json(as_report(made))
    else:
        print(_text(made))


def _epsilon(text: str) -> Epsilon:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError as error:
        raise CommandError(f"--epsilon: {error}") from None
    if epsilon.charge > MAX_CHARGE_PER_REPORT:
        raise CommandError(f"--epsilon: {epsilon.text} is above 8, the most a report may cost")
    return epsilon


def as_report(made: Plan) -> dict[str, Any]:
    """The plan as the JSON that scripts rely on."""
    return {
        "values": made.values,
        "epsilon": made.epsilon.decimal,
        "reports": made.reports,
        "level": made.level,
        "share": made.aim.share,
        "max_bytes": made.aim.max_bytes,
        "wanted_half_width": made.wanted,
        "auto": made.prospects[0].mechanism.name,
        "reason": made.reason,
        "mechanisms": [_row(prospect) for prospect in made.prospects],
        "curator": _curator(made.curator, made.reports),
        "price": {"std_errors": made.price, "reports": made.price**2},
    }


def _row(prospect: Prospect) -> dict[str, Any]:
    return {
        "name": prospect.mechanism.name,
        "parameters": chosen(prospect.mechanism),
        "std_error": prospect.std_error,
        "std_error_at_share": prospect.std_error_at_share,
        "half_width": prospect.half_width,
        "simultaneous_half_width": prospect.simultaneous_half_width,
        "detectable": prospect.detectable,
        "reports_needed": prospect.reports_needed,
        "payload_bytes": prospect.mechanism.payload_size,
        "cells": prospect.work.cells,
        "steps_per_report": prospect.work.per_report,
        "steps_per_reading": prospect.work.per_reading,
        "influence": prospect.influence,
        "to_bound": prospect.to_bound,
        "to_bound_l2": prospect.to_bound_l2,
    }


def _curator(curator: Curator, n: int) -> dict[str, Any]:
    shares = {
        "std_error": curator.std_error,
        "half_width": curator.half_width,
        "simultaneous_half_width": curator.simultaneous_half_width,
    }
    return shares | {"in_people": {name: n * share for name, share in shares.items()}}


def _text(made: Plan) -> str:
    title = (
        f"{made.values:,} values, ε = {made.epsilon.text}, {_reports(made.reports)}; "
        f"{100 * made.level:g} % intervals; shares among these devices"
    )
    paragraphs = (_LEGEND, _pick(made), _sight(made), _price(made))
    return "\n\n".join(
        (
            title,
            _accuracy(made),
            _costs(made),
            *(textwrap.fill(paragraph, _WIDTH) for paragraph in paragraphs),
        )
    )


def _accuracy(made: Plan) -> str:
    at_share = made.aim.share > 0
    header = [
        "accuracy",
        *(["at 0 %", f"at {100 * made.aim.share:g} %"] if at_share else ["std error"]),
        "± one",
        "± all",
        "detectable",
        f"for ± {100 * made.wanted:g} %",
        "× bound",
        "in ℓ2",
    ]
    rows = [
        [
            row.mechanism.name,
            _percent(row.std_error),
            *([_percent(row.std_error_at_share)] if at_share else []),
            _percent(row.half_width),
            _percent(row.simultaneous_half_width),
            "–" if row.detectable is None else _percent(row.detectable),
            "–" if row.reports_needed is None else _count(row.reports_needed),
            _digits(row.to_bound),
            _digits(row.to_bound_l2),
        ]
        for row in made.prospects
    ]
    return text_table(header, rows)


def _costs(made: Plan) -> str:
    header = ("cost", "chosen", "bytes", "influence", "cells", "steps/report", "steps/reading")
    rows = [
        [
            row.mechanism.name,
            ", ".join(f"{name} {number}" for name, number in chosen(row.mechanism).items()),
            f"{row.mechanism.payload_size:,}",
            _percent(row.influence),
            _count(row.work.cells),
            _count(row.work.per_report),
            _count(row.work.per_reading),
        ]
        for row in made.prospects
    ]
    return text_table(header, rows, left=2)


def _pick(made: Plan) -> str:
    share = made.aim.share
    return f"{f'For a share of {100 * share:g} %, ' if share else ''}auto picks {made.reason}."


def _sight(made: Plan) -> str:
    first = made.prospects[0]
    if first.detectable is None:
        return (
            f"{_reports(made.reports)} {'is' if made.reports == 1 else 'are'} too few: not even a "
            f"value that everybody has would surely be distinguishable from zero."
        )
    people = _count(round(first.detectable * made.reports))
    return (
        f"With it, a value that {_percent(first.detectable)} of the devices have ({people}) comes "
        f"out as distinguishable from zero in 4 of 5 collections. One hostile report moves a "
        f"share by up to {_percent(first.influence)}."
    )


def _price(made: Plan) -> str:
    n = made.reports
    central = n * made.curator.simultaneous_half_width
    local = n * made.prospects[0].simultaneous_half_width
    cost = (
        f" Trusting nobody costs {_digits(made.price)} times the standard error, or "
        f"{_digits(made.price**2)} times the reports."
    )
    return (
        f"A curator whom everybody trusts with the true answers would be within "
        f"{_people(central)} people for the worst of the {made.values:,} values (Laplace "
        f"mechanism, the same ε, {100 * made.level:g} %); this would be within {_people(local)}."
        f"{cost if made.price > 1 else ''}"
    )


def _reports(number: int) -> str:
    return f"{number:,} report{'s' if number != 1 else ''}"


def _percent(share: float) -> str:
    return f"{_digits(100 * share)} %"


def _people(number: float) -> str:
    return _digits(number) if number < 1000 else _count(round(number))


def _digits(number: float) -> str:
    """Three digits of a positive number, without an exponent: what is known of it and matters."""
    if number == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(number))
    return f"{round(number, decimals):,.{max(0, decimals)}f}"


def _count(number: int) -> str:
    """A whole number; of a very large one four digits."""
    return f"{number:,}" if number < 10**9 else f"{number:.3e}"
