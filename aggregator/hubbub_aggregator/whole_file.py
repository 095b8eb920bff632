"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Make or replace a file, which everybody may read unless `mode` says otherwise.

    Raises OSError, having changed nothing.
    """
    with writing_whole(path, mode=mode) as file:
        file.write(data)


@contextmanager
def writing_whole(path: Path, *, mode: int = 0o644) -> Generator[BinaryIO]:
    """The same, of what the body writes; if that raises, nothing is changed.

    What is in the file is then on disk; that it has its name, `sync_folder` sees to.
    """
    try:
        descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            # mkstemp made it private.
            os.chmod(scratch, mode)
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise
    except OSError as error:
        if error.errno is None:
            raise
        # Nobody has heard of the file that it was written to first.
        raise OSError(error.errno, error.strerror, str(path)) from None


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
