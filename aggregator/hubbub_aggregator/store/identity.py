"""Whether what is written still is what was opened."""

import os
from pathlib import Path
from typing import Protocol

from hubbub_aggregator.store.errors import StoreUnavailable


class Identity(Protocol):
    """What was opened."""

    def require(self) -> None:
        """Raises StoreUnavailable while it is not there."""


class ServerIdentity:
    """A database: its server says so itself when it is gone, and a commit then fails."""

    def require(self) -> None:
        pass


class FileIdentity:
    """A file as the kernel knows it, whatever its path comes to name later.

    A database that is open goes on working after its file is deleted or replaced, and all
    that it then says is durable would be gone with the process.
    """

    def __init__(self, path: Path) -> None:
        """Remember the file that is there now. Raises StoreUnavailable."""
        self._path = path
        self._known = self._look()

    def require(self) -> None:
        """Raises StoreUnavailable while another file is there, or none. Costs one stat."""
        if self._look() != self._known:
            raise self._unavailable("another file has taken its place")

    def _look(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except OSError as error:
            raise self._unavailable(f"it is gone ({error.strerror})") from error
        return status.st_dev, status.st_ino

    def _unavailable(self, what: str) -> StoreUnavailable:
        return StoreUnavailable(
            str(self._path),
            f"{what}; put back the file that was opened, or start the aggregator again",
        )
