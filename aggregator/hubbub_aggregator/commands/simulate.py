"""`hubbub simulate`: what a collection would show, beside the truth it would be about."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hubbub.bundle import Bundle
from hubbub.contract import Metric, require_proof
from hubbub.domain import Domain, is_text_answer
from hubbub_aggregator.candidates import read_candidates
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.bundle_file import read_metrics
from hubbub_aggregator.commands.options import (
    Format,
    FormatOption,
    LevelOption,
    Target,
    TargetOption,
)
from hubbub_aggregator.commands.output import print_csv, print_json, remark, whose
from hubbub_aggregator.csv_table import read_columns
from hubbub_aggregator.percent import decimals, percent
from hubbub_aggregator.records import rows
from hubbub_aggregator.some_names import some
from hubbub_aggregator.text_table import text_table

# Some minutes' work; whoever wants more may scale the intervals by the root of it.
MAX_DEVICES: Final = 10**9

# What an open domain is asked about unless told otherwise: a table that people read.
_MOST_FREQUENT: Final = 100

# Answers outside the domain that are named, and characters of each.
_NAMED: Final = 3
_SHOWN: Final = 40

Answers = Counter[str | None]
"""How many devices give each answer; None: nothing to report."""


def simulate(
    bundle: Annotated[Path, typer.Argument(help="A signed bundle.")],
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    *,
    table: Annotated[Path, typer.Option("--csv", help="A table of people and their answers.")],
    column: Annotated[str, typer.Option(help="The column whose cells they answer.")],
    count: Annotated[
        str | None,
        typer.Option(help="A column that says how many people each row stands for."),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(help="Texts that an open domain is asked about, one a line."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Any number: the same one, the same crowd.")
    ] = None,
    target: TargetOption = Target.RESPONDENTS,
    level: LevelOption = 0.95,
    output: FormatOption = Format.TABLE,
    operator_key: Annotated[
        str | None,
        typer.Option(help="Also check that this operator signed it: the line in operator.pub."),
    ] = None,
) -> None:
    """Try a metric on people whose answers are known.

    Prints truth beside estimate. Every person is a device, whose answer is randomised as the
    SDK would, counted and estimated as the aggregator would. Nothing is sent. The metric's
    privacy is proved first; the bundle's signature is checked with --operator-key alone.
    """
    asked = _metric(bundle, metric, operator_key)
    answers = _answers(table, column, count)
    texts = _texts(asked, answers, candidates)
    # Imported here: no other command needs what a crowd does.
    from hubbub_aggregator.crowd import SeededChance
    from hubbub_aggregator.simulate import simulate as run

    found = run(asked, answers, SeededChance(seed), texts)
    if found.outside:
        remark(
            f"{found.outside:,} of {found.n:,} answers are not in the domain "
            f"({_some_outside(asked.domain, answers)}): each becomes a uniformly random value, as "
            f"on a device, and moves what is estimated"
        )
    report = found.report(target=target.value, level=level) | {"seed": seed}
    match output:
        case Format.JSON:
            print_json(report)
        case Format.CSV:
            lines = rows(report)
            print_csv(lines[0], lines)
        case Format.TABLE:
            print(_table(report))


def _metric(path: Path, name: str, operator_key: str | None) -> Metric:
    signed = path.read_bytes()
    metrics = {metric.name: metric for metric in read_metrics(path, signed)}
    if operator_key is not None:
        Bundle.verify(signed, operator_key=operator_key)
    if name not in metrics:
        raise CommandError(f"{path} has no metric {name!r}; it has {some(list(metrics), name)}")
    require_proof(metrics[name])
    return metrics[name]


def _answers(path: Path, column: str, count: str | None) -> Answers:
    """What the table's people answer; an empty cell is nothing to report."""
    if count is None:
        (cells,) = read_columns(path, column)
        answers: Answers = Counter(cell or None for cell in cells)
    else:
        answers = Counter()
        cells, counts = read_columns(path, column, count)
        for row, (cell, text) in enumerate(zip(cells, counts, strict=True), 1):
            answers[cell or None] += _people(path, row, count, text)
    if not 0 < answers.total() <= MAX_DEVICES:
        raise CommandError(
            f"{path} has {answers.total():,} people; 1 to {MAX_DEVICES:,} can be simulated"
        )
    return answers


def _people(path: Path, row: int, column: str, text: str) -> int:
    # Not int(), which takes "1_000" and "٣", and refuses very long ones in words of its own.
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_DEVICES))):
        raise CommandError(
            f"{path}: row {row} under the header has {text[:40]!r} in column {column!r}, which "
            f"is not a whole number up to {MAX_DEVICES:,}"
        )
    return int(text)


def _texts(asked: Metric, answers: Answers, candidates: Path | None) -> list[str]:
    """What an open domain is asked about; nothing, for any other."""
    if not asked.domain.open:
        if candidates is not None:
            raise CommandError(
                f"metric {asked.name!r} lists its values; --candidates is for open domains"
            )
        return []
    if candidates is not None:
        return read_candidates(candidates)
    texts = [answer for answer, _ in answers.most_common() if answer and is_text_answer(answer)]
    if not texts:
        raise CommandError(f"metric {asked.name!r} is about texts, and the column has none")
    if len(texts) > _MOST_FREQUENT:
        remark(f"asked about the {_MOST_FREQUENT} most frequent of {len(texts):,} texts")
    return texts[:_MOST_FREQUENT]


def _some_outside(domain: Domain, answers: Answers) -> str:
    """The first answers that are not in a domain, as a person recognises them."""
    outside = [answer for answer in +answers if domain.index_of(answer) is None]
    named = ["nothing" if answer is None else repr(answer[:_SHOWN]) for answer in outside[:_NAMED]]
    return ", ".join(named + ["…"] * (len(outside) > _NAMED))


def _table(report: dict[str, Any]) -> str:
    values, epsilon = report["values"], report["epsilon"]
    places = decimals(min(value["std_error"] for value in values))
    inside = [value["low"] <= value["truth"] <= value["high"] for value in values]
    figures = ("truth", "estimate", "std_error", "low", "high")
    level = f"{100 * report['level']:g} %"
    lines = [
        (
            value["value"],
            *(percent(value[name], places) for name in figures),
            "inside" if covered else "outside",
        )
        for value, covered in zip(values, inside, strict=True)
    ]
    return "\n".join(
        (
            f"{report['metric']}, simulated: n = {report['n']:,} devices",
            f"{report['mechanism']}, ε = {epsilon['declared']} (realised {epsilon['realised']})",
            whose(report["target"], report["level"]),
            "",
            text_table(("value", "truth", "share", "std error", "low", "high", ""), lines),
            "",
            f"{sum(inside)} of {len(inside)} truths inside their {level} interval.",
        )
    )
