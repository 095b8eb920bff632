"""What writing or reading an archive can meet."""

from hubbub_aggregator.mistakes import Mistake


class ArchiveError(Mistake):
    """Why a file of the archive cannot be written or believed; one sentence, what to do."""


def require_libraries() -> None:
    """Raises ArchiveError if the extra is not installed."""
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise ArchiveError(
            f"an archive needs {error.name}: pip install 'hubbub[archive]'"
        ) from None
    del duckdb
