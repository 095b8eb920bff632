"""Taking a metric's files out of an archive."""

import shutil
from pathlib import Path

from hubbub_aggregator.archive.errors import ArchiveError
from hubbub_aggregator.archive.files import folder_of
from hubbub_aggregator.whole_file import sync_folder


def size_of(archive: Path, digest: bytes) -> int:
    """How many bytes an archive keeps of a metric. Raises ArchiveError if there is none."""
    if not archive.is_dir():
        raise ArchiveError(f"there is no archive {archive}; give --archive")
    folder = folder_of(archive, digest)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def remove(archive: Path, digest: bytes) -> None:
    """Delete all that an archive keeps of a metric, durably. Raises OSError."""
    folder = folder_of(archive, digest)
    if folder.exists():
        shutil.rmtree(folder)
        sync_folder(archive)
