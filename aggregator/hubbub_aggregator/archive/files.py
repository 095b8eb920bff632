"""Where an archive has what: a folder for each digest, in it one for each round, in it one file.

The folders' names are Hive's partitions, which DuckDB, Arrow and Spark read as columns.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub_aggregator.archive.errors import ArchiveError

_FILE: Final = "reports.parquet"
_DIGEST: Final = re.compile("digest=[0-9a-f]{64}")
_ROUND: Final = re.compile("round=(0|[1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class Place:
    """A file of an archive, by its name."""

    path: Path
    digest: bytes
    round: int


def folder_of(archive: Path, digest: bytes) -> Path:
    """Where everything of a metric is."""
    return archive / f"digest={digest.hex()}"


def path_of(archive: Path, digest: bytes, number: int) -> Path:
    """Where a round's reports are."""
    return folder_of(archive, digest) / f"round={number}" / _FILE


def require_name(path: Path) -> str:
    """The absolute path as DuckDB takes it, in whatever encoding Python takes names to be.

    Raises ArchiveError for what could be written, and not read by DuckDB.
    """
    name = os.fsencode(path.absolute())
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise ArchiveError(f"the archive's path {name!r} is not UTF-8; give another one") from None


def require_folder(archive: Path) -> None:
    """Raises ArchiveError if there is no archive."""
    if not archive.is_dir():
        raise ArchiveError(
            f"there is no archive folder {archive}; give the one that `hubbub serve` has as "
            f"--archive, or as HUBBUB_ARCHIVE"
        )


def places(archive: Path) -> Iterator[Place]:
    """Every file of reports in an archive, by digest and round. Raises ArchiveError or OSError."""
    require_name(archive)
    require_folder(archive)
    found: list[Place] = []
    for folder in _within(archive, _DIGEST):
        for path in _within(folder, _ROUND):
            file = path / _FILE
            # A link that leads nowhere too: what was there is missing.
            if os.path.lexists(file):
                digest, number = bytes.fromhex(folder.name[7:]), int(path.name[6:])
                found.append(Place(file, digest, number))
    yield from sorted(found, key=lambda place: (place.digest, place.round))


def _within(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The folders with such names. What may not be read is an error: `glob` would not see it."""
    return [path for path in folder.iterdir() if names.fullmatch(path.name) and path.is_dir()]
