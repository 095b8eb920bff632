"""A plan as a person reads it: tables of figures, and what follows from them in sentences."""

import math
import textwrap
from typing import Final

from hubbub.exact import charge_text
from hubbub.exposure import Resemblance
from hubbub.limits import MAX_CHARGE_PER_SOURCE
from hubbub.mechanisms import Mechanism
from hubbub.statement.figures import percent
from hubbub_aggregator.planning.choice import chosen
from hubbub_aggregator.planning.planner import Plan
from hubbub_aggregator.text_table import text_table

_WIDTH: Final = 100

_LEGEND: Final = (
    "Std error and ± (the interval for one value, for all at once) are those of a value that "
    "nobody has; × bound is its variance over the least that any mechanism can have for all "
    "values alike, in ℓ2 the same for the variances of all values together. A step is on one cell."
)


def plan_text(made: Plan) -> str:
    """The whole page, of lines of at most 100 columns."""
    title = (
        f"{made.values:,} values, ε = {made.epsilon.text}, {reports(made.reports)}"
        f"{_rounds(made)}; {100 * made.level:g} % intervals; shares among these devices"
    )
    paragraphs = [_LEGEND, pick(made), sight(made), in_all(made), price(made)]
    tables = [_accuracy(made), _costs(made)]
    memory = made.prospects[0].memory
    if memory is not None:
        tables.append(_memos(made))
        paragraphs.insert(1, _memo_legend(memory.alike))
    wrapped = [textwrap.fill(text, _WIDTH) for text in (title, *paragraphs) if text]
    return "\n\n".join([wrapped[0], *tables, *wrapped[1:]])


def _rounds(made: Plan) -> str:
    rounds, memo = made.series.rounds, made.series.memo
    each = f" in each of {rounds:,} rounds" if rounds > 1 else ""
    return f"{each}, from a memo of ε∞ = {memo.permanent.text} a row" if memo else each


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
            short_name(row.mechanism),
            percentage(row.std_error),
            *([percentage(row.std_error_at_share)] if at_share else []),
            percentage(row.half_width),
            percentage(row.simultaneous_half_width),
            "–" if row.detectable is None else percentage(row.detectable),
            "–" if row.reports_needed is None else whole(row.reports_needed),
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
            short_name(row.mechanism),
            ", ".join(f"{name} {number}" for name, number in chosen(row.mechanism).items()),
            f"{row.mechanism.payload_size:,}",
            percentage(row.influence),
            whole(row.work.cells),
            whole(row.work.per_report),
            whole(row.work.per_reading),
        ]
        for row in made.prospects
    ]
    return text_table(header, rows, left=2)


def short_name(mechanism: Mechanism) -> str:
    """Without what all of a table's have in common."""
    return mechanism.name.removeprefix("memoised-")


def _memos(made: Plan) -> str:
    header = ("memo", "rows", "ε in all", "change noticed", "ever", "same device", "hash bits")
    rows = [
        [
            short_name(row.mechanism),
            f"{memory.rows:,}",
            charge_text(row.charge),
            _chance(memory.alike.change_noticed),
            _chance(memory.alike.change_noticed_ever),
            _chance(memory.alike.linked),
            f"{memory.alike.identifying_bits:.1f}",
        ]
        for row in made.prospects
        if (memory := row.memory) is not None
    ]
    return text_table(header, rows)


def _memo_legend(alike: Resemblance) -> str:
    return (
        f"Change noticed: how often whoever compares the first half of {alike.rounds} reports with "
        f"the second is right about whether the value changed; ever: with any number of reports, "
        f"at most. Same device: how often two runs of {reports(alike.run)} look more alike if one "
        f"device made both. Guessing is right 50 %. Hash bits mark the device in every report."
    )


def pick(made: Plan) -> str:
    """Which mechanism "auto" picks, and why."""
    share = made.aim.share
    return f"{f'For a share of {100 * share:g} %, ' if share else ''}auto picks {made.reason}."


def sight(made: Plan) -> str:
    """Which share would be seen, and what one hostile report does."""
    first = made.prospects[0]
    if first.detectable is None:
        return (
            f"{reports(made.reports)} {'is' if made.reports == 1 else 'are'} too few: not even a "
            f"value that everybody has would surely be distinguishable from zero."
        )
    people = whole(round(first.detectable * made.reports))
    return (
        f"With it, a value that {percentage(first.detectable)} of the devices have ({people}) "
        f"comes out as distinguishable from zero in 4 of 5 collections. One hostile report moves "
        f"a share by up to {percentage(first.influence)}."
    )


def in_all(made: Plan) -> str:
    """What all rounds cost a device, and what else could be had for that; empty for one round."""
    series, first = made.series, made.prospects[0]
    if series.rounds == 1 and made.fresh is None:
        return ""
    if series.memo is not None:
        way = f"A device answers {series.rounds:,} rounds from its memo"
    elif series.join is not None:
        way = (
            f"A device joins {series.join:,} of {series.rounds:,} rounds, drawn beforehand, so "
            f"that {made.devices:,} devices send {reports(made.reports)} in each"
        )
    else:
        way = f"A device answers {series.rounds:,} rounds with fresh noise"
    cost = f"{way}. That costs it ε = {charge_text(first.charge)} in all."
    if made.fresh is not None:
        epsilon = float(made.fresh.epsilon.decimal)
        return (
            f"{cost} For the same, fresh noise in every round would be of ε = {_digits(epsilon)} a "
            f"report, with a standard error of {percentage(made.fresh.std_error)} instead of "
            f"{percentage(first.std_error)}."
        )
    if first.charge > MAX_CHARGE_PER_SOURCE:
        affordable = MAX_CHARGE_PER_SOURCE // made.epsilon.charge
        return f"{cost} Devices stop at 32, the most for a source: after {affordable:,} rounds."
    return cost


def price(made: Plan) -> str:
    """What a trusted curator would pay, and so what it costs to trust nobody."""
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


def reports(number: int) -> str:
    """So many reports, or one."""
    return f"{number:,} report{'s' if number != 1 else ''}"


def _chance(probability: float) -> str:
    """Rounded up, since it is a warning."""
    return f"{percent(probability)} %"


def percentage(share: float) -> str:
    """A positive share as a percentage of three digits."""
    return f"{_digits(100 * share)} %"


def _people(number: float) -> str:
    return _digits(number) if number < 1000 else whole(round(number))


def _digits(number: float) -> str:
    """Three digits of a positive number, without an exponent: what is known of it and matters."""
    if number == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(number))
    return f"{round(number, decimals):,.{max(0, decimals)}f}"


def whole(number: int) -> str:
    """A whole number; of a very large one four digits."""
    return f"{number:,}" if number < 10**9 else f"{number:.3e}"
