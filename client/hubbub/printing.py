"""How commands print, whatever characters a terminal can show."""

from io import TextIOWrapper
from typing import TextIO


def for_people(stream: TextIO) -> None:
    """Better an escaped ε than an end half-way."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def for_programs(stream: TextIO) -> None:
    """UTF-8 from now on: programs do not guess."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="replace")
