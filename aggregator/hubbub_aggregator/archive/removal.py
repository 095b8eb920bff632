"""Taking a metric's files out of an archive."""

import errno
import shutil
from collections.abc import Collection
from pathlib import Path

from hubbub_aggregator.archive.errors import ArchiveError
from hubbub_aggregator.archive.files import folder_of, path_of, require_folder
from hubbub_aggregator.whole_file import sync_folder


def size_of(archive: Path, digest: bytes, open_rounds: Collection[int]) -> int:
    """How many bytes an archive keeps of a metric, but for its open rounds.

    Raises ArchiveError if there is no archive, or OSError.
    """
    require_folder(archive)
    return sum(
        path.stat().st_size
        for folder in _rounds(archive, digest, open_rounds)
        for path in folder.rglob("*")
        if path.is_file()
    )


def remove(archive: Path, digest: bytes, open_rounds: Collection[int]) -> None:
    """Delete what an archive keeps of a metric, durably, but for its open rounds.

    Whoever closes one of those may be writing its file now. Raises ArchiveError or OSError: all
    is deleted that could be.
    """
    folder = folder_of(archive, digest)
    failed: list[str] = []
    for one in _rounds(archive, digest, open_rounds):
        try:
            _delete(one)
        except OSError as error:
            failed.append(f"{error.filename or one}: {error.strerror or error}")
    if folder.is_dir():
        sync_folder(folder)
        # A link to where the disk is larger is not ours.
        if not any(folder.iterdir()) and not folder.is_symlink():
            folder.rmdir()
            sync_folder(archive)
    if failed:
        raise ArchiveError("; ".join(failed))


def _delete(one: Path) -> None:
    """Delete what is in a metric's folder. Raises OSError."""
    if one.is_symlink():
        # Without its link, what it leads to would be found no more.
        raise OSError(errno.ELOOP, "is a link; delete what it leads to, and it", str(one))
    if one.is_dir():
        shutil.rmtree(one)
    else:
        one.unlink()


def _rounds(archive: Path, digest: bytes, open_rounds: Collection[int]) -> list[Path]:
    """The folders of a metric's rounds that are not open."""
    folder = folder_of(archive, digest)
    spared = {path_of(archive, digest, number).parent for number in open_rounds}
    return [one for one in folder.iterdir() if one not in spared] if folder.is_dir() else []
