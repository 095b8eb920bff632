"""The page about privacy's tables. Pure; every text from outside is escaped."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from typing import NamedTuple

from hubbub_dashboard import parts
from hubbub_dashboard.parts import Row
from hubbub_dashboard.privacy.beliefs import Belief
from hubbub_dashboard.privacy.witnesses import Witness

_PERCENT = "\u202f%"


class Neighbour(NamedTuple):
    """Another metric that draws on the same budget."""

    name: str
    epsilon: str | None
    """Of a report, declared; None: its contract is not known, or would be refused."""
    total: str | None
    """Of all its rounds."""


def odds(believed: Iterable[tuple[Fraction, Sequence[Belief]]], columns: Sequence[str]) -> str:
    """What becomes of somebody's belief; a column for what is seen."""
    rows = [
        Row(f"{int(100 * prior)}{_PERCENT}", [_belief(after) for after in beliefs])
        for prior, beliefs in believed
    ]
    return parts.table("How sure somebody can be", ["Sure before", *columns], rows, short=True)


def _belief(belief: Belief) -> str:
    if belief.is_open:
        return "no real limit"
    low, high = belief
    return f'<data value="{low}">{low}</data> to <data value="{high}">{high}</data>{_PERCENT}'


def neighbours(others: Iterable[Neighbour]) -> str:
    """What else is paid for from the same budget."""
    rows = [
        Row(
            f"<code>{escape(other.name)}</code>",
            [_epsilon(other.epsilon), _epsilon(other.total)],
        )
        for other in others
    ]
    return parts.table(
        "Metrics of the same source", ["Metric", "ε of a report", "ε of all rounds"], rows
    )


def _epsilon(decimal: str | None) -> str:
    return "not known" if decimal is None else escape(decimal)


def owner(rows: Iterable[tuple[str, str]]) -> str:
    """What a device's owner reads, word for word."""
    said = "".join(
        f"<dt>{escape(label)}</dt><dd>{parts.kept_together(parts.code(sentence))}</dd>"
        for label, sentence in rows
    )
    return f'<dl class="hubbub owner">{said}</dl>'


def who(witnesses: Iterable[Witness]) -> str:
    """Who sees what."""
    said = "".join(
        f"<dt>{escape(witness.who[:1].upper() + witness.who[1:])}</dt>"
        f"<dd><p>sees {parts.code(witness.sees)}.</p>{_unseen(witness)}</dd>"
        for witness in witnesses
    )
    return f'<dl class="hubbub owner">{said}</dl>'


def _unseen(witness: Witness) -> str:
    return f"<p>Not: {escape(witness.sees_not)}.</p>" if witness.sees_not else ""
