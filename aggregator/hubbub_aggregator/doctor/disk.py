"""A disk: whether there is room on it for what is written there."""

import os
from collections.abc import Iterator
from pathlib import Path

from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.troubles import LEAST_FREE


def look_at_disk(
    about: About, path: Path, where: str, wanted: int, *, full: str, tight: str
) -> Iterator[Finding]:
    """`where`: what `path` is; `wanted`: bytes that had better be free.

    `full` and `tight` go on after "make room": what it is like until then, and what it is for.
    """
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    said = f"{free >> 20:,} MiB free where {where}"
    if free < LEAST_FREE:
        yield about.problem(f"{said}; make room, {full}")
    elif free < wanted:
        yield about.warning(f"{said}; make room {tight}")
    else:
        yield about.ok(said)
    if not disk.f_favail and disk.f_files:
        yield about.problem("no file can be made there: its inodes are used up; remove some files")
