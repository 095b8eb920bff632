"""`hubbub plan`: what each mechanism will buy, before anything is collected."""

from typing import Annotated, Any, Final

import typer

from hubbub.exact import Epsilon, charge_text
from hubbub.exposure import COMPARED
from hubbub.limits import (
    MAX_CHARGE_PER_REPORT,
    MAX_CHARGE_PER_SOURCE,
    MAX_ROUNDS,
    MAX_VALUES,
)
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import (
    FormatOfOne,
    FormatOfOneOption,
    LevelOption,
)
from hubbub_aggregator.commands.output import print_json
from hubbub_aggregator.commands.plan_text import plan_text
from hubbub_aggregator.planning.choice import Aim, NothingFits, chosen
from hubbub_aggregator.planning.memoised import Memo
from hubbub_aggregator.planning.planner import Curator, Memory, Plan, Prospect
from hubbub_aggregator.planning.planner import plan as make_plan
from hubbub_aggregator.planning.series import Series

# More than there are people; the exact power takes seconds there.
_MOST_REPORTS: Final = 10**10


def plan(
    *,
    values: Annotated[
        int, typer.Option(help="How many answers there are, other and absent included.")
    ],
    epsilon: Annotated[str, typer.Option(help='ε of one report: "1", "0.5", "ln 3".')],
    reports: Annotated[
        int, typer.Option(help="How many devices will report: in each round, if they join all.")
    ],
    rounds: Annotated[
        int | None,
        typer.Option(help=f"How many rounds there will be; 1, or {COMPARED} with --permanent."),
    ] = None,
    join: Annotated[
        int | None, typer.Option(help="Sampled: how many of the rounds each device joins.")
    ] = None,
    permanent: Annotated[
        str | None, typer.Option(help="Memoised: ε of each row of a memo, above --epsilon.")
    ] = None,
    cells: Annotated[int | None, typer.Option(help="Only memos of at most so many rows.")] = None,
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
    made = planned(
        values,
        epsilon,
        reports,
        rounds=rounds,
        join=join,
        permanent=permanent,
        cells=cells,
        max_bytes=max_bytes,
        share=share,
        half_width=half_width,
        level=level,
    )
    if output is FormatOfOne.JSON:
        print_json(as_report(made))
    else:
        print(plan_text(made))


def planned(
    values: int,
    epsilon: str,
    reports: int,
    *,
    rounds: int | None = None,
    join: int | None = None,
    permanent: str | None = None,
    cells: int | None = None,
    max_bytes: int | None = None,
    share: float = 0.0,
    half_width: float = 0.01,
    level: float = 0.95,
) -> Plan:
    """The plan that the command's options ask for. Raises CommandError."""
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
    declared = _epsilon("--epsilon", epsilon)
    try:
        return make_plan(
            values,
            declared,
            reports,
            series=_series(declared, rounds, join, permanent, cells),
            aim=Aim(share, max_bytes),
            level=level,
            wanted=half_width,
        )
    except NothingFits as error:
        raise CommandError(f"--max-bytes: {error}; allow more bytes") from None


def _epsilon(option: str, text: str) -> Epsilon:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from None
    if epsilon.charge > MAX_CHARGE_PER_REPORT:
        raise CommandError(f"{option}: {epsilon.text} is above 8, the most a report may cost")
    return epsilon


def _series(
    epsilon: Epsilon,
    rounds: int | None,
    join: int | None,
    permanent: str | None,
    cells: int | None,
) -> Series:
    """The rounds that were asked for. Raises CommandError."""
    if cells is not None and permanent is None:
        raise CommandError("--cells goes with --permanent")
    if join is not None and permanent is not None:
        raise CommandError("--join and --permanent are two schedules; plan one after the other")
    if rounds is None:
        rounds = 1 if permanent is None else COMPARED
    if not 1 <= rounds <= MAX_ROUNDS:
        raise CommandError(f"--rounds is 1 to {MAX_ROUNDS:,}, not {rounds:,}")
    if join is not None and not 1 <= join <= rounds:
        raise CommandError(f"--join is 1 to {rounds:,}, the number of --rounds, not {join:,}")
    if join is not None and join * epsilon.charge > MAX_CHARGE_PER_SOURCE:
        raise CommandError(
            f"--join: {join:,} rounds of ε = {epsilon.text} cost more than 32, the most of a source"
        )
    if permanent is None:
        return Series(rounds, join)
    if cells is not None and cells < 2:
        raise CommandError(f"--cells is at least 2, not {cells:,}")
    row = _epsilon("--permanent", permanent)
    if row.charge <= epsilon.charge:
        raise CommandError("--permanent must be above --epsilon, which one report tells")
    return Series(rounds, memo=Memo(row, cells))


def as_report(made: Plan) -> dict[str, Any]:
    """The plan as the JSON that scripts rely on."""
    memo, fresh = made.series.memo, made.fresh
    return {
        "values": made.values,
        "epsilon": made.epsilon.decimal,
        "reports": made.devices,
        "rounds": made.series.rounds,
        "join": made.series.join,
        "permanent": memo.permanent.decimal if memo else None,
        "cells": memo.cells if memo else None,
        "reports_per_round": made.reports,
        "level": made.level,
        "share": made.aim.share,
        "max_bytes": made.aim.max_bytes,
        "wanted_half_width": made.wanted,
        "auto": made.prospects[0].mechanism.name,
        "reason": made.reason,
        "mechanisms": [_row(prospect) for prospect in made.prospects],
        "curator": _curator(made.curator, made.reports),
        "price": {"std_errors": made.price, "reports": made.price**2},
        "fresh": (
            {"epsilon": fresh.epsilon.decimal, "std_error": fresh.std_error} if fresh else None
        ),
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
        "epsilon_total": charge_text(prospect.charge),
        **({} if prospect.memory is None else _memory(prospect.memory)),
    }


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        "rows": memory.rows,
        "change_noticed": memory.alike.change_noticed,
        "change_noticed_ever": memory.alike.change_noticed_ever,
        "linked": memory.alike.linked,
        "identifying_bits": memory.alike.identifying_bits,
    }


def _curator(curator: Curator, n: int) -> dict[str, Any]:
    shares = {
        "std_error": curator.std_error,
        "half_width": curator.half_width,
        "simultaneous_half_width": curator.simultaneous_half_width,
    }
    return shares | {"in_people": {name: n * share for name, share in shares.items()}}
