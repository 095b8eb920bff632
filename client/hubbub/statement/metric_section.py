"""What the statement's page says about one metric, down to every report."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from hubbub.statement.facts import Asked, Departed, Loss, Memo, Report, Series, Timetable
from hubbub.statement.figures import span
from hubbub.statement.layout import isolated, table, wrapped
from hubbub.statement.words import Words

# So many labels, rounds, and bytes of a payload are shown; the JSON has the rest.
_LABELS: Final = 8
_ROUNDS: Final = 20
_BYTES: Final = 16
# As much of a SHA-256 as nobody finds twice by chance.
_HASH_DIGITS: Final = 16
# What a percentage that is next to 100 is rounded up to.
_ALL: Final = "100.0"

Rows = Iterator[tuple[str, str]]


def command(words: str) -> str:
    """What somebody types."""
    return f"`python -m hubbub {words}`"


def sure(words: Words, percent: str) -> str:
    """How sure somebody can be at most."""
    return words("sure.nearly") if percent == _ALL else words("sure", percent=percent)


def counted(words: Words, reports: Iterable[Report]) -> str:
    """How many reports there are, and what became of them."""
    counts = Counter(report.status for report in reports)
    if not counts:
        return words("reports.none")
    listed = [words(f"count.{status}", count=count) for status, count in counts.most_common()]
    return words("reports.counts", count=counts.total(), counts=", ".join(listed))


def timetable(words: Words, schedule: Timetable) -> str:
    """When a metric is asked, and where its noise comes from."""
    ends = schedule.form == "once" and schedule.ends is not None
    fields = {**schedule._asdict(), "every": span(schedule.every or 0)}
    return words("schedule.once-until" if ends else f"schedule.{schedule.form}", **fields)


def of_memo(words: Words, memo: Memo) -> Rows:
    """What answers from a memo protect, and what they do not."""
    facts = memo._asdict()
    protected = [words("memo.protected", **facts, times=memo.row.times)]
    bare = [words("memo.change", **facts), words("memo.linked", **facts)]
    if memo.hashes is not None:
        protected.append(words("memo.hashed"))
        bare.append(words("memo.identifying", **facts))
    yield words("label.protected"), " ".join(protected)
    yield words("label.not-protected"), " ".join(bare)


class MetricSection:
    """A metric, and its newest reports; None: all of them."""

    def __init__(self, metric: Asked, words: Words, newest: int | None) -> None:
        self._metric = metric
        self._words = words
        self._shown = metric.reports[-(newest or 0) :]

    def lines(self) -> list[str]:
        """The section's lines."""
        heading = "heading.metric" if self._metric.asked else "heading.former-metric"
        return [
            self._words(heading, name=self._metric.metric),
            *table(self._about(), 2),
            *self._reports(),
        ]

    def _about(self) -> Rows:
        """What it asks, what that can reveal, what it has cost."""
        words, metric = self._words, self._metric
        most = sure(words, metric.allowed_percent)
        after_all = "all-reports" if metric.memo is None else "all-reports.memo"
        spent = "metric.no-budget" if metric.left is None else "metric.spent"
        counts = counted(words, metric.reports)
        if len(self._shown) < len(metric.reports):
            counts = words("reports.newest", counts=counts, shown=len(self._shown))
        yield words("label.question"), isolated(metric.question)
        yield words("label.asked-by"), metric.operator or words("asked-by.unknown")
        yield words("label.source"), metric.source
        yield words("label.answers"), self._answers()
        yield words("label.one-report"), self._one_report(metric.report_loss)
        yield words("label.all-reports"), words(after_all, epsilon=metric.allowed, sure=most)
        yield words("label.spent"), words(spent, **metric._asdict())
        yield words("label.schedule"), timetable(words, metric.schedule)
        yield words("label.next"), self._next()
        yield words("label.silence"), self._silence()
        if metric.series is not None:
            yield from self._series(metric.series)
        if metric.memo is not None:
            yield from of_memo(words, metric.memo)
        yield words("label.kept"), words("kept.reports" if metric.retained else "kept.counts")
        yield from self._proof()
        yield words("label.reports"), counts

    def _answers(self) -> str:
        words, metric = self._words, self._metric
        answers = [words("answers.open") if metric.open else self._some(metric.answers)]
        for kind, label in (("other", metric.other), ("absent", metric.absent)):
            if label is not None:
                answers.append(words(f"answers.{kind}", answer=_quoted(label)))
        return "; ".join(answers)

    def _some(self, labels: tuple[str, ...], count: int | None = None) -> str:
        """The first few labels, and how many more there are."""
        listed = ", ".join(map(_quoted, labels[:_LABELS]))
        more = (len(labels) if count is None else count) - _LABELS
        return self._words("more", listed=listed, count=more) if more > 0 else listed

    def _one_report(self, loss: Loss) -> str:
        return self._words(
            "one-report", **loss._asdict(), sure=sure(self._words, loss.sure_percent)
        )

    def _next(self) -> str:
        coming = self._metric.next
        if coming is None:
            return self._words("next.dear" if self._metric.too_dear else "next.none")
        return self._words("next.open" if coming.ends is None else "next", **coming._asdict())

    def _silence(self) -> str:
        metric = self._metric
        if metric.absent is None:
            return self._words("silence.visible")
        filled = "silence.app" if metric.series is None else "silence.filled"
        return self._words(filled, answer=_quoted(metric.absent))

    def _series(self, series: Series) -> Rows:
        words = self._words
        price = "price.sampled" if self._metric.memo is None else "price.memoised"
        yield words("label.price"), words(price, **series._asdict())
        for payment in series.payments:
            charged = "charged" if payment.in_force else "charged.deleted"
            yield words("label.charged"), words(charged, **payment._asdict())
        if not series.payments:
            yield words("label.charged"), words("charged.not-yet")
        if series.joined:
            rounds = ", ".join(map(str, series.joined[:_ROUNDS]))
            more = len(series.joined) - _ROUNDS
            rounds = words("more", listed=rounds, count=more) if more > 0 else rounds
            yield words("label.joins"), words("joins", rounds=rounds)

    def _proof(self) -> Rows:
        words, metric = self._words, self._metric
        parameters = ", ".join(
            words("parameter", name=name, number=number)
            for name, number in metric.parameters.items()
        )
        mechanism = words("mechanism", name=metric.mechanism, parameters=parameters)
        yield words("label.mechanism"), mechanism
        yield words("label.proof"), words("proof", **metric.report_loss._asdict())
        if metric.memo is not None:
            yield words("label.row-proof"), words("proof", **metric.memo.row._asdict())
        yield words("label.contract"), metric.digest.hex()

    def _reports(self) -> Iterator[str]:
        """The newest first."""
        words, earlier = self._words, len(self._metric.reports) - len(self._shown)
        for report in reversed(self._shown):
            status = words(f"status.{report.status}", due_at=report.due_at)
            facts = {**report._asdict(), "status": status}
            yield from wrapped(words("report", **facts), 4, hang=4)
            yield from table(self._said(report), 6)
        if earlier:
            show = command("show --all DIR")
            yield from wrapped(words("reports.earlier", count=earlier, command=show), 4)

    def _said(self, report: Report) -> Rows:
        words = self._words
        if report.payload is None or report.report_id is None:
            yield words("label.says"), words("says.deleted")
        else:
            facts = {"report_id": report.report_id, "payload": self._cut(report.payload)}
            yield words("label.says"), self._says(report)
            yield words("label.report"), words("report.bytes", **facts)
        label = "label.left"
        for departure in report.departures:
            yield words(label), self._left(departure)
            label = "label.left-again"

    def _says(self, report: Report) -> str:
        if report.says_one_in is not None:
            return self._words("says.one-in", count=report.says_one_in)
        return self._some(report.says, report.says_count) or self._words("says.nothing")

    def _cut(self, payload: bytes) -> str:
        if len(payload) <= 2 * _BYTES:
            return payload.hex()
        return self._words("report.cut", hex=payload[:_BYTES], size=len(payload))

    def _left(self, departure: Departed) -> str:
        if departure.sha256 is None:
            return self._words("left.deleted", **departure._asdict())
        hashed = departure.sha256.hex()[:_HASH_DIGITS]
        return self._words("left", **departure._asdict(), hash=hashed)


def _quoted(label: str) -> str:
    """A label, so that it is plain where it ends."""
    return isolated(json.dumps(label, ensure_ascii=False))
