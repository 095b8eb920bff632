"""The owner's view: what was asked, what left, what it can reveal at most."""

from datetime import UTC, datetime
from typing import Final

from hubbub.contract import Metric, parse_metric
from hubbub.exact import Epsilon, charge_text
from hubbub.ledger import Entry, Ledger, Status
from hubbub.limits import MAX_CHARGE_PER_DEVICE, REPORT_ID_BYTES
from hubbub.mechanisms import LocalHashing

_WHO_SEES_WHAT: Final = """\
Who can see what
  The aggregator opens your reports and sees the network address they came from. It does
  not learn whether any of them is true. The network sees that this device sends something,
  when, and how much: the same for every answer. Whoever gets past the encryption of the
  line learns which metric and round a report is for, and no more.
  One device could send many reports; the aggregator cannot tell."""

_KEPT: Final = {
    False: "the aggregator counts each report and keeps none",
    True: "the aggregator keeps each report, with its noise, to ask it more questions later",
}

IN_WORDS: Final = {
    Status.WAITING: "waits to be sent",
    Status.SENT: "sent, not answered yet",
    Status.COUNTED: "counted",
    Status.REFUSED: "refused by the aggregator",
    Status.EXPIRED: "its round closed before the aggregator said that it is counted",
    Status.WITHDRAWN: "withdrawn",
}


def statement(ledger: Ledger) -> str:
    """Everything the device's owner may want to know, as text."""
    entries = ledger.entries()
    budgets = ledger.budgets()
    metrics = [parse_metric(contract) for contract in ledger.contracts().values()]
    operators = [
        f"Asked by operator {key} (bundle revision {revision})"
        for key, revision in ledger.operators().items()
    ]
    sections = [
        "\n".join([*operators, _sources(entries, budgets)]),
        *(_metric_section(metric, entries, budgets) for metric in metrics),
        _WHO_SEES_WHAT,
    ]
    return "\n\n".join(sections)


def _sources(entries: list[Entry], budgets: dict[str, int]) -> str:
    """What each source has given away, and what it may still."""
    lines: list[str] = []
    for source in sorted({*budgets, *(entry.source for entry in entries)}):
        spent, left = _account(source, entries, budgets)
        allowed = budgets.get(source, 0)
        most = Epsilon.parse(charge_text(max(spent, allowed)))
        lines.append(
            f"Source {source!r}: ε {charge_text(spent)} spent, {charge_text(left)} left of "
            f"{charge_text(allowed)}. {_in_words(most, 'all reports that it allows')}"
        )
    return "\n".join(lines)


def _account(source: str, entries: list[Entry], budgets: dict[str, int]) -> tuple[int, int]:
    """What a source has spent, and what it has left; all sources together have a limit too."""
    spent = sum(entry.charge for entry in entries if entry.source == source)
    all_spent = sum(entry.charge for entry in entries)
    left = min(budgets.get(source, 0) - spent, MAX_CHARGE_PER_DEVICE - all_spent)
    return spent, max(0, left)


def _metric_section(metric: Metric, entries: list[Entry], budgets: dict[str, int]) -> str:
    mine = [entry for entry in entries if entry.metric == metric.name]
    spent = sum(entry.charge for entry in mine)
    _, left = _account(metric.source, entries, budgets)
    rest = f"{charge_text(left)} left" if metric.source in budgets else "no budget on this device"
    lines = [
        metric.name,
        f"  Question   {metric.question}",
        f"  Answers    {'any text' if metric.domain.open else _some(metric.domain.labels)}",
        f"  Source     {metric.source}",
        f"  Mechanism  {metric.mechanism.name}, contract {metric.digest.hex()[:16]}…",
        f"  Privacy    ε {metric.epsilon.text} a report. {_in_words(metric.epsilon, 'one report')}",
        f"  Kept       {_KEPT[metric.retain]}",
        f"  Rounds     {metric.schedule.rounds}",
        f"  Spent      ε {charge_text(spent)}; its source has {rest}",
        f"  Reports    {len(mine) or 'none'}",
    ]
    return "\n".join([*lines, *(_report_line(metric, entry) for entry in mine)])


def _report_line(metric: Metric, entry: Entry) -> str:
    if entry.report is None:
        said = "deleted before it left"
    else:
        payload = entry.report[REPORT_ID_BYTES:]
        labels = metric.supported(payload)
        speaks_for = _some(labels) if labels else "nothing"
        if isinstance(metric.mechanism, LocalHashing) and metric.domain.open:
            speaks_for = f"one of every {metric.mechanism.buckets} texts"
        said = f"{len(entry.report)} bytes, says {speaks_for}"
    where = ""
    if entry.destination is not None and entry.left_at is not None:
        where = f"left for {entry.destination} at {_time(entry.left_at)}; "
    return f"    round {entry.round}: {said}; {where}{IN_WORDS[entry.status]}"


def _some(labels: tuple[str, ...], most: int = 8) -> str:
    """The first few labels, and how many more there are."""
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _in_words(epsilon: Epsilon, after: str) -> str:
    """What ε allows, for somebody who thought it 50:50: e^ε/(1 + e^ε), rounded up."""
    odds = epsilon.exponential(128).high
    per_mille = -(-1000 * odds // (1 + odds))
    sure = f"{per_mille / 10:.1f}" if per_mille < 1000 else "more than 99.9"
    return (
        f"Anyone who thought something about you 50:50 can be at most {sure} % sure after {after}."
    )


def newest(ledger: Ledger, metric: str) -> Status:
    """What has become of a metric's newest report."""
    return [entry for entry in ledger.entries() if entry.metric == metric][-1].status
