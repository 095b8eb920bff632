"""Steps of a ledger's work, between any two of which a process can be killed.

Every statement to SQLite that writes and every file operation of the SDK's own is one. In a
process of its own: `kill_before(n)` lets n steps happen, and then it is over, as by kill -9.
"""

import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any

from hubbub import files, generation

# Of the pragmas only these write.
READ_ONLY = ("SELECT", "PRAGMA s", "PRAGMA t", "PRAGMA u", "PRAGMA a", "PRAGMA i")


class Steps:
    """Counts steps, and ends the process before one of them."""

    def __init__(self, last: int) -> None:
        self._left = last

    def step(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with a step before it."""

        def stepped(*arguments: Any, **options: Any) -> Any:
            self.step()
            return function(*arguments, **options)

        return stepped


def kill_before(last: int) -> None:
    """Let this process take so many steps."""
    steps = Steps(last)

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            if not statement.lstrip().startswith(READ_ONLY):
                steps.step()
            return super().execute(statement, *arguments)

        def close(self) -> None:
            steps.step()
            super().close()

    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=Connection, **options)

    replacements: list[tuple[Any, str, Callable[..., Any]]] = [
        (sqlite3, "connect", connected),
        (files, "open", steps.before(open)),
        (generation, "open", steps.before(open)),
        (generation, "_flush", steps.before(os.fdatasync)),
    ]
    for name in ("open", "link", "unlink", "fsync", "makedirs"):
        replacements.append((os, name, steps.before(getattr(os, name))))
    for module, name, replacement in replacements:
        setattr(module, name, replacement)
