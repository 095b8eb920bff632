"""What a look finds: all is well, something will be wrong, or something is."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from hubbub.errors import HubbubError
from hubbub_aggregator.mistakes import Mistake


class Level(StrEnum):
    """How much it matters."""

    OK = "ok"
    WARNING = "warning"
    """It runs, but not as it should, or not for long."""
    PROBLEM = "problem"
    """It does not run, counts nothing, or is not safe."""


class Finding(NamedTuple):
    """A sentence about one thing; unless it is ok, one that says what to do."""

    level: Level
    subject: str
    text: str


class About:
    """Makes findings about one subject."""

    def __init__(self, subject: str) -> None:
        self._subject = subject

    def ok(self, text: str) -> Finding:
        return Finding(Level.OK, self._subject, text)

    def warning(self, text: str) -> Finding:
        return Finding(Level.WARNING, self._subject, text)

    def problem(self, text: str) -> Finding:
        return Finding(Level.PROBLEM, self._subject, text)

    def looking(self, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
        """What `look` finds; what stops it is a problem itself, told as other commands tell it."""
        try:
            yield from look()
        except (Mistake, HubbubError) as error:
            yield self.problem(str(error))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            yield self.problem(f"{where}{error.strerror or error}; mend that and look again")
