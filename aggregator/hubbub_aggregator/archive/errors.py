"""What writing or reading an archive can meet."""

from importlib.util import find_spec
from typing import Final

from hubbub_aggregator.mistakes import Mistake


class ArchiveError(Mistake):
    """Why a file of the archive cannot be written or believed; one sentence, what to do."""


class NotArchived(ArchiveError):
    """Why a round's file cannot be written now; the round stays open."""

    def __init__(self, sentence: str, reason: str) -> None:
        """`reason`: the same in a few words, without a path and without a count of reports."""
        super().__init__(sentence)
        self.reason: Final = reason


def require_libraries() -> None:
    """Raises ArchiveError if the extra is not installed."""
    for library in ("duckdb", "pyarrow"):
        if find_spec(library) is None:
            raise ArchiveError(f"an archive needs {library}: pip install 'hubbub[archive]'")
