"""`hubbub simulate`: what a collection would show, beside the truth it would be about."""

import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hubbub.contract import Bundle, Metric, is_text_answer, require_proof
from hubbub_aggregator.candidates import read_candidates
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.bundle_file import read_metrics
from hubbub_aggregator.commands.estimate import AMONG, EstimateFormat, EstimateTarget
from hubbub_aggregator.csv_table import read_columns, remark
from hubbub_aggregator.percent import decimals, percent
from hubbub_aggregator.records import rows
from hubbub_aggregator.text_table import text_table

# Some minutes' work; whoever wants more may scale the intervals by the root of it.
MAX_DEVICES: Final = 10**9

# What an open domain is asked about unless told otherwise: a table that people read.
_MOST_FREQUENT: Final = 100

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
    target: Annotated[
        EstimateTarget,
        typer.Option(help="Shares among those who answered, or among all who would have."),
    ] = EstimateTarget.RESPONDENTS,
    level: Annotated[
        float, typer.Option(help="Probability that an interval covers, between 0 and 1.")
    ] = 0.95,
    output: Annotated[
        EstimateFormat, typer.Option("--format", help="table, json or csv.")
    ] = EstimateFormat.TABLE,
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
    if not 0 < level < 1:
        raise CommandError(f"--level is between 0 and 1, for example 0.95, not {level:g}")
    asked = _metric(bundle, metric, operator_key)
    answers = _answers(table, column, count)
    texts = _texts(asked, answers, candidates)
    # Imported here: no other command needs what a crowd does.
    from hubbub_aggregator.crowd import SeededChance
    from hubbub_aggregator.simulate import simulate as run

    found = run(asked, answers, SeededChance(seed), texts)
    if found.outside:
        remark(
            f"{found.outside:,} of {found.n:,} answers are not in the domain: each becomes a "
            f"uniformly random value, as on a device, and moves what is estimated"
        )
    report = found.report(target=target.value, level=level) | {"seed": seed}
    match output:
        case EstimateFormat.JSON:
            print(json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False))
        case EstimateFormat.CSV:
            _print_csv(report)
        case EstimateFormat.TABLE:
            print(_table(report))


def _metric(path: Path, name: str, operator_key: str | None) -> Metric:
    signed = path.read_bytes()
    metrics = {metric.name: metric for metric in read_metrics(path, signed)}
    if operator_key is not None:
        Bundle.verify(signed, operator_key=operator_key)
    if name not in metrics:
        raise CommandError(f"{path} has no metric {name!r}; it has {', '.join(metrics) or 'none'}")
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


def _print_csv(report: dict[str, Any]) -> None:
    lines = rows(report)
    writer = csv.DictWriter(sys.stdout, lines[0])
    writer.writeheader()
    writer.writerows(lines)


def _table(report: dict[str, Any]) -> str:
    values, epsilon = report["values"], report["epsilon"]
    places = decimals(min(value["std_error"] for value in values))
    inside = [value["low"] <= value["truth"] <= value["high"] for value in values]
    figures = ("truth", "estimate", "std_error", "low", "high")
    lines = [
        (
            value["value"],
            *(percent(value[name], places) for name in figures),
            "inside" if covered else "outside",
        )
        for value, covered in zip(values, inside, strict=True)
    ]
    level, target = f"{100 * report['level']:g} %", report["target"]
    return "\n".join(
        (
            f"{report['metric']}, simulated: n = {report['n']:,} devices",
            f"{report['mechanism']}, ε = {epsilon['declared']} (realised {epsilon['realised']})",
            f"{AMONG[target]} ({target}), unbiased; {level} intervals",
            "",
            text_table(("value", "truth", "share", "std error", "low", "high", ""), lines),
            "",
            f"{sum(inside)} of {len(inside)} truths inside their {level} interval.",
        )
    )
