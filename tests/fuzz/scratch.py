"""A folder for what targets write: in memory where there is such a file system, to be quick.

Gone when Python ends. Libfuzzer ends without telling Python: set TMPDIR to a folder that goes.
"""

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = "/dev/shm"  # noqa: S108


def memory() -> str | None:
    return _MEMORY if os.path.isdir(_MEMORY) else None


@functools.cache
def folder() -> Path:
    made = tempfile.mkdtemp(prefix="fuzz-", dir=None if "TMPDIR" in os.environ else memory())
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)
