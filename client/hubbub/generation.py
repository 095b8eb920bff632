"""The generation: a file beside the ledger that knows how often the ledger was changed.

An older copy of a ledger, put back, would hand out again what was spent since; so would one
whose write-ahead log was lost. The file `generation` is written after each change is durable
and before anything leaves, and a ledger that has come less far than it is refused.

It cannot tell when the whole directory is put back, or a machine cloned, or all of it deleted.
"""

import os
import zlib
from typing import Final

from hubbub.errors import StateCorrupt, StateRolledBack, StateUnavailable
from hubbub.files import published

FILE_NAME: Final = "generation"

# A slot is a sector, which a disk writes whole or not at all. Numbers take the slots in turn,
# so that a write that was torn, or that came too late, leaves the newest before it.
_SLOT_BYTES: Final = 512
_SLOTS: Final = 8
_MAGIC: Final = b"hub1"
_MARK_BYTES: Final = len(_MAGIC) + 8 + 4

# Not everywhere; the file's size, which it leaves out, never changes.
_flush: Final = getattr(os, "fdatasync", os.fsync)


class Sidecar:
    """The file `generation` of a state directory. Holds nothing open."""

    def __init__(self, state_dir: str) -> None:
        self._path = os.path.join(state_dir, FILE_NAME)
        # The number that a failed write leaves to be written; 0: none.
        self._owed = 0

    def exists(self) -> bool:
        return os.path.exists(self._path)

    def newest(self) -> int | None:
        """The number that the ledger has come to at least; None if there is no such file.

        Raises StateCorrupt or StateUnavailable.
        """
        try:
            with open(self._path, "rb") as file:
                content = file.read(_SLOTS * _SLOT_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateUnavailable(self._path, str(error)) from None
        numbers = [
            number
            for place in range(0, len(content), _SLOT_BYTES)
            if (number := _read(content[place : place + _MARK_BYTES])) is not None
        ]
        if not numbers:
            raise StateCorrupt(self._path, "it is damaged; spending is refused")
        return max(numbers)

    def create(self) -> None:
        """Make it, at 0, unless somebody else has. Raises StateUnavailable."""
        try:
            with published(self._path) as scratch, open(scratch, "wb") as file:
                file.write(_mark(0).ljust(_SLOTS * _SLOT_BYTES, b"\0"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StateUnavailable(self._path, f"cannot be created: {error}") from None

    def stamp(self, number: int | None) -> None:
        """Make durable that the ledger has come to a number; None: only what failed before.

        Two processes may come here in any order, since each has a slot for its number. One that
        was stopped for so long that others have come round to its slot leaves it to them. Raises
        StateUnavailable.
        """
        self._owed = max(number or 0, self._owed)
        if not self._owed:
            return
        place = self._owed % _SLOTS * _SLOT_BYTES
        try:
            with open(self._path, "r+b", buffering=0) as file:
                file.seek(place)
                there = _read(file.read(_MARK_BYTES))
                if there is None or there < self._owed:
                    file.seek(place)
                    file.write(_mark(self._owed))
                # Also if another process wrote it: that may not have come so far.
                _flush(file.fileno())
        except OSError as error:
            raise StateUnavailable(self._path, str(error)) from None
        self._owed = 0

    def require(self, reached: int | None, ledger: str, number: int) -> None:
        """Refuse a ledger, by its path, that has come to less than `newest` said before.

        In this order, since the ledger is changed first and this file then. Raises
        StateRolledBack.
        """
        if reached is None:
            # Unless it was made since: it is made before the ledger is first changed.
            if number > 0 and not self.exists():
                raise StateRolledBack(
                    self._path,
                    "it is missing, and without it nobody can tell whether the ledger is an older "
                    "copy; put it back as it was",
                )
        elif number < reached:
            raise StateRolledBack(
                ledger,
                f"it is an older copy, or its newest changes are lost: it was changed {reached} "
                f"times, and knows of {number}; put the newest back, with every file beside it",
            )


def _mark(number: int) -> bytes:
    said = _MAGIC + number.to_bytes(8, "big")
    return said + zlib.crc32(said).to_bytes(4, "big")


def _read(mark: bytes) -> int | None:
    """The number of a slot; None if it was never written, or is damaged."""
    number = int.from_bytes(mark[len(_MAGIC) : -4], "big")
    return number if mark == _mark(number & (1 << 64) - 1) else None
