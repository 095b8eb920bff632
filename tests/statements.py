"""Reading a statement: its facts about one metric, and the lines of its page."""

from pathlib import Path

from hubbub.ledger import Ledger
from hubbub.statement import Statement, statement
from hubbub.statement.facts import Asked


def told(state: Path, now: float = 500) -> Statement:
    """What a state directory tells."""
    ledger = Ledger.open_to_read(str(state))
    try:
        return statement(ledger, now=now)
    finally:
        ledger.close()


def about(facts: Statement, metric: str) -> Asked:
    (found,) = (each for each in facts.metrics if each.metric == metric)
    return found


def section(text: str, heading: str) -> list[str]:
    """The lines under a heading, each sentence in one."""
    (found,) = (part for part in text.split("\n\n") if part.splitlines()[0] == heading)
    _, *lines = found.splitlines()
    sentences: list[str] = []
    for line in lines:
        goes_on = line.startswith(" " * 8) and sentences
        if goes_on:
            sentences[-1] += " " + line.strip()
        else:
            sentences.append(line.strip())
    return sentences


def row(text: str, metric: str, label: str) -> str:
    """What stands beside a label of a metric."""
    lines = section(text, f"Metric {metric}")
    (found,) = (line for line in lines if line.startswith(f"{label}  "))
    return found.removeprefix(label).strip()
