"""What pages are put together from: title, answer, part, table, as HTML. Pure.

Sentences are plain text and escaped here; a table's cells are HTML already.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from hubbub_dashboard import text

# A name within a sentence: at odd places of what it is split into.
_QUOTED: Final = re.compile("(\u2068[^\u2069]*\u2069)")
# Stands for a backtick that is not part of a name; nobody can write one.
_TYPED: Final = "\0"


class Row(NamedTuple):
    """A row of a table."""

    heading: str
    """HTML."""
    cells: Sequence[str]
    """HTML."""
    kind: str = ""
    """Its class: "picked", "doubt" or none."""


def code(sentence: str) -> str:
    """Escape a sentence; what stands between backticks is something to type.

    But not those of a name that `text.quoted` put into it.
    """
    parts = (
        piece if place % 2 else piece.replace("`", _TYPED)
        for place, piece in enumerate(_QUOTED.split(escape(sentence)))
    )
    return "".join(
        f"<code>{part}</code>" if place % 2 else part
        for place, part in enumerate("".join(parts).split(_TYPED))
    )


def title(heading: str, purpose: str = "") -> str:
    """The page's name, and what it is for."""
    said = f"<p>{escape(purpose)}</p>" if purpose else ""
    return f'<header class="hubbub"><h1>{escape(heading)}</h1>{said}</header>'


def answer(sentence: str, *more: str) -> str:
    """The answer, large, and what else follows from the same figures."""
    rest = "".join(f"<p>{kept_together(code(said))}</p>" for said in more if said)
    return (
        f'<section class="hubbub answer" aria-live="polite">'
        f"<p><strong>{kept_together(code(sentence))}</strong></p>{rest}</section>"
    )


def part(heading: str, *sentences: str) -> str:
    """A part's heading, and what is said below it."""
    said = "".join(f"<p>{kept_together(code(sentence))}</p>" for sentence in sentences)
    return f'<section class="hubbub part"><h2>{escape(heading)}</h2>{said}</section>'


def panel(label: str, figures: str) -> str:
    """A panel's heading: the value that it shows, and its newest figures."""
    return (
        f'<h2 class="hubbub panel"><bdi>{escape(label)}</bdi> '
        f"<span>{kept_together(code(figures))}</span></h2>"
    )


def sentence(said: str) -> str:
    """One sentence by itself, that changes with what the viewer does."""
    return f'<p class="hubbub sentence" aria-live="polite">{kept_together(code(said))}</p>'


def table(name: str, columns: Sequence[str], rows: Iterable[Row], *, short: bool = False) -> str:
    """A table that scrolls sideways where there is no room for it; `short`: there always is."""
    kind = "hubbub scroll short" if short else "hubbub scroll"
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr class="{row.kind}"><th scope="row" dir="auto">{row.heading}</th>'
        f"{''.join(f'<td>{cell}</td>' for cell in row.cells)}</tr>"
        for row in rows
    )
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def exact(number: float, shown: str) -> str:
    """A figure as it reads, with all its digits as the cell's machine-readable `value`."""
    return f'<data value="{number!r}">{shown}</data>'


def exact_interval(low: float, high: float, places: int, unit: str = "\u202f%") -> str:
    """An interval of shares, with all digits of both ends."""
    lower = exact(low, text.bare_low(low, places))
    return f"{lower} to {exact(high, text.bare_high(high, places))}{unit}"


def kept_together(said: str) -> str:
    """Keep a number and what it belongs to on one line, with the page's space before a unit."""
    return said.replace(" %", "\u202f%").replace("ε = ", "ε\u00a0=\u00a0")
