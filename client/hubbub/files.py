"""New files that are whole from the first moment they have their name, and stay."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def published(path: str) -> Generator[str]:
    """Make a file under another name, which is given, then give it its own in one step.

    So an empty or partial file under that name is never a beginning: it is damage. If there is
    one of that name already, it stays. The body makes the content durable. Raises OSError.
    """
    scratch = f"{path}.{os.urandom(8).hex()}"
    os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield scratch
        # A hard link fails, where a rename would replace, if another process was faster.
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(scratch)
    _sync(os.path.dirname(path) or os.curdir)


def _sync(directory: str) -> None:
    """Make a new name in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
