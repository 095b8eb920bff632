"""The archive: whether a round that closes could be written there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub_aggregator.archive.errors import require_libraries
from hubbub_aggregator.archive.files import require_name
from hubbub_aggregator.doctor.findings import About, Finding

_archive: Final = About("archive")


def look_at_archive(folder: Path | None) -> Iterator[Finding]:
    """`folder`: the setting; None: there is to be none, of which there is nothing to say."""
    if folder is not None:
        yield from _archive.looking(lambda: _folder(folder))


def _folder(folder: Path) -> Iterator[Finding]:
    require_libraries()
    require_name(folder)
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        yield _archive.problem(f"{there} is no folder; give --archive one that can be written")
    elif not os.access(there, os.W_OK | os.X_OK):
        yield _archive.problem(
            f"{there} cannot be written by this user; rounds whose reports are kept would stay "
            f"open; allow it, or give --archive another folder"
        )
    elif there == folder.absolute():
        yield _archive.ok(f"{folder} can be written")
    else:
        yield _archive.ok(f"{folder} can be made")
