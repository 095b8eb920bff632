"""Laying out text that strangers wrote in part: columns, wrapping, and every direction of writing.

A contract's labels are printable, but may be long, wide, or written from right to left. None of
that may move what stands beside it, or look like a line of ours: what is wrapped goes on in its
own column.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final

COLUMNS: Final = 100

# Between these, text has a direction of its own (Unicode Standard Annex 9).
_ISOLATE, _ISOLATE_END = "\u2068", "\u2069"
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
# A label's column is no wider than this, so that text keeps most of the line.
_WIDEST_LABEL: Final = 24


def isolated(text: str) -> str:
    """The text, so that its direction of writing ends where it ends."""
    if _RIGHT_TO_LEFT.isdisjoint(map(unicodedata.bidirectional, text)):
        return text
    return f"{_ISOLATE}{text}{_ISOLATE_END}"


def table(rows: Iterable[tuple[str, str]], indent: int = 0) -> list[str]:
    """Lines of labels and, in a column of their own, what belongs to them."""
    rows = list(rows)
    column = min(_WIDEST_LABEL, max((_width(label) for label, _ in rows), default=0)) + 2
    lines: list[str] = []
    for label, text in rows:
        first, *rest = wrapped(text, indent + column)
        lead = " " * indent + label
        if _width(label) + 2 > column:
            lines.append(lead)
        else:
            first = lead + first[_width(lead) :]
        lines += [first, *rest]
    return lines


def wrapped(text: str, indent: int = 0, hang: int = 0) -> list[str]:
    """The text in lines of at most COLUMNS, each behind so many spaces, all but the first behind
    `hang` more; at least one line."""
    most = COLUMNS - indent - hang
    lines, line = [], ""
    for word in _pieces(text, most):
        longer = f"{line} {word}" if line else word
        if _width(longer) > most:
            lines.append(line)
            longer = word
        line = longer
    first, *rest = _closed([*lines, line])
    return [" " * indent + first, *(" " * (indent + hang) + line for line in rest)]


def _pieces(text: str, most: int) -> Iterable[str]:
    """The words of a text; those that are too wide for a line in several pieces."""
    for word in text.split():
        piece = ""
        for character in word:
            if _width(piece + character) > most:
                yield piece
                piece = ""
            piece += character
        yield piece


def _closed(lines: Iterable[str]) -> Iterable[str]:
    """The lines, so that an isolate that goes over several is one in each."""
    depth = 0
    for line in lines:
        opened = _ISOLATE * depth + line
        depth = opened.count(_ISOLATE) - opened.count(_ISOLATE_END)
        yield opened + _ISOLATE_END * depth


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
