"""The statement as a page of text: what matters most first, in anybody's words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hubbub.statement.layout import table, wrapped
from hubbub.statement.metric_section import MetricSection, command, counted, sure
from hubbub.statement.words import Words

if TYPE_CHECKING:
    from hubbub.statement.gathering import Statement

# So many reports of each metric, and bundles, are shown unless all are asked for.
NEWEST: Final = 10

Rows = Iterator[tuple[str, str]]


def page(statement: "Statement", words: Words, newest: int | None) -> str:
    """The text; see Statement.text."""
    sections = [
        [
            *wrapped(words("title", as_of=statement.as_of)),
            "",
            *table(_summary(statement, words)),
        ],
        [
            words("heading.budgets"),
            *wrapped(words("budgets.about"), 2),
            *table(_budgets(statement, words), 2),
        ],
        *(MetricSection(metric, words, newest).lines() for metric in statement.metrics),
        [
            words("heading.bundles"),
            *wrapped(words("bundles.about"), 2),
            *table(_bundles(statement, words, newest), 2),
        ],
        [words("heading.who"), *table(_who(statement, words), 2)],
        [words("heading.unknown"), *wrapped(words("unknown"), 2)],
        [
            words("heading.switches"),
            *wrapped(words("switches.about"), 2),
            *table(_switches(words), 2),
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections)


def _summary(statement: "Statement", words: Words) -> Rows:
    """Five lines for whoever reads no further."""
    total = statement.total
    asked = sum(metric.asked for metric in statement.metrics)
    operators = ", ".join(dict.fromkeys(bundle.operator for bundle in statement.bundles))
    questions = words("questions", count=asked, operators=operators)
    meaning = words(
        "meaning.device",
        sure=sure(words, total.spent_percent),
        sure_at_last=sure(words, total.allowed_percent),
    )
    if _has_memo(statement):
        meaning = f"{meaning} {words('meaning.memo')}"
    reports = [report for metric in statement.metrics for report in metric.reports]
    yield (
        words("label.collection"),
        words(f"collection.{statement.collection}", chosen_at=statement.chosen_at),
    )
    yield words("label.questions"), questions if asked else words("questions.none")
    yield words("label.reports"), counted(words, reports)
    yield words("label.spent"), words("spent.device", **total._asdict())
    yield words("label.meaning"), meaning


def _has_memo(statement: "Statement") -> bool:
    """Whether any metric is memoised."""
    return any(metric.memo for metric in statement.metrics)


def _keeps_memo(statement: "Statement") -> bool:
    """Whether one is on the device."""
    return any(
        metric.memo is not None and payment.in_force
        for metric in statement.metrics
        for payment in (metric.series.payments if metric.series is not None else ())
    )


def _budgets(statement: "Statement", words: Words) -> Rows:
    for budget in statement.budgets:
        most = sure(words, budget.allowed_percent)
        yield budget.source, words("budget", **budget._asdict(), sure=most)
    yield words("label.all-sources"), words("budget.device", **statement.total._asdict())


def _bundles(statement: "Statement", words: Words, newest: int | None) -> Rows:
    """The last that was taken first."""
    for bundle in reversed(statement.bundles[-(newest or 0) :]):
        came = "bundle.fetched" if bundle.fetched else "bundle.app"
        adopted = bundle.adopted_at or words("bundle.unknown-time")
        yield (
            words("label.revision", revision=bundle.revision),
            words(came, adopted=adopted, **bundle._asdict()),
        )


def _who(statement: "Statement", words: Words) -> Rows:
    thief = [words("who.thief")]
    if _keeps_memo(statement):
        thief.append(words("who.memo-thief"))
    most = sure(words, statement.total.allowed_percent)
    yield words("label.aggregator"), words("who.aggregator")
    yield words("label.network"), words("who.network")
    yield words("label.together"), words("who.together", sure=most)
    yield words("label.thief"), " ".join(thief)
    yield words("label.app"), words("who.app")
    yield words("label.others"), words("who.others")


def _switches(words: Words) -> Rows:
    for there, back in (("pause", "resume"), ("opt-out", "opt-in")):
        commands = {"command": command(f"{there} DIR"), "back": command(f"{back} DIR")}
        yield words(f"label.{there}"), words(f"switch.{there}", **commands)
    yield words("label.export"), words("switch.export", command=command("export DIR FILE"))
