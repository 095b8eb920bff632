"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Make or replace a file, which everybody may read unless `mode` says otherwise.

    Raises OSError, having changed nothing.
    """
    try:
        _write(path, data, mode)
    except OSError as error:
        # Nobody has heard of the file that it was written to first.
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp made it private.
        os.chmod(scratch, mode)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
