"""What writing or reading an archive can meet."""

from importlib.util import find_spec

from hubbub_aggregator.mistakes import Mistake


class ArchiveError(Mistake):
    """Why a file of the archive cannot be written or believed; one sentence, what to do."""


def require_libraries() -> None:
    """Raises ArchiveError if the extra is not installed."""
    for library in ("duckdb", "pyarrow"):
        if find_spec(library) is None:
            raise ArchiveError(f"an archive needs {library}: pip install 'hubbub[archive]'")
