"""Where an archive has what: a folder for each digest, in it one for each round, in it one file.

The folders' names are Hive's partitions, which DuckDB, Arrow and Spark read as columns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FILE: Final = "reports.parquet"
_PLACE: Final = re.compile(r"digest=([0-9a-f]{64})/round=(0|[1-9][0-9]{0,18})/reports\.parquet")


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


def places(archive: Path) -> Iterator[Place]:
    """Every file of reports in an archive, by digest and round. Raises OSError."""
    found: list[Place] = []
    for path in archive.glob(f"digest=*/round=*/{_FILE}"):
        place = _PLACE.fullmatch(path.relative_to(archive).as_posix())
        if place is not None:
            found.append(Place(path, bytes.fromhex(place[1]), int(place[2])))
    yield from sorted(found, key=lambda place: (place.digest, place.round))
