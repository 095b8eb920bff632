"""The archive: whether a round that closes could be written there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub_aggregator.archive.errors import require_libraries
from hubbub_aggregator.archive.files import require_name
from hubbub_aggregator.doctor.disk import look_at_disk
from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.doctor.store_file import store_size

_archive: Final = About("archive")
_disk: Final = About("archive disk")


def look_at_archive(folder: Path | None, store: Path | None) -> Iterator[Finding]:
    """`folder`: the setting; None: there is to be none, of which there is nothing to say.

    `store`: its file, if it is in one.
    """
    if folder is None:
        return
    yield from _archive.looking(lambda: _folder(folder))
    there = folder if folder.is_dir() else folder.absolute().parent
    if there.is_dir():
        yield from _disk.looking(lambda: _room(there, store))


def _folder(folder: Path) -> Iterator[Finding]:
    require_libraries()
    require_name(folder)
    made = folder.exists()
    there = folder.absolute() if made else folder.absolute().parent
    if made and not there.is_dir():
        yield _archive.problem(f"{there} is no folder; give --archive one that can be written")
    elif not there.is_dir():
        yield _archive.problem(
            f"there is no folder {there} to make {folder.name} in; mount its disk, mkdir it, or "
            f"give --archive the right path"
        )
    elif not os.access(there, os.W_OK | os.X_OK):
        yield _archive.problem(
            f"{there} cannot be written by this user; rounds whose reports are kept would stay "
            f"open; allow it, or give --archive another folder"
        )
    elif made:
        yield _archive.ok(f"{folder} can be written")
    else:
        yield _archive.ok(f"{folder} can be made")


def _room(there: Path, store: Path | None) -> Iterator[Finding]:
    """No round has more reports than the store, which may be all the same round's."""
    wanted = 0 if store is None else store_size(store)
    beside = f", and the store takes {wanted >> 20:,} MiB" if wanted else ""
    yield from look_at_disk(
        _disk,
        there,
        f"the archive is{beside}",
        wanted,
        full="until then rounds whose reports are kept stay open",
        tight="for the rounds to come: while one is written, its reports are there twice",
    )
