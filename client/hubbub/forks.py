"""Surviving a fork: no lock may be copied while a thread that the child lacks is holding it.

So every lock is taken before the process is copied, and each side lets go of it after. What
the two sides cannot share (a connection, a channel, a thread) is made anew in the child.
Nobody else ever holds two of these locks, so taking them all cannot block.
"""

import os
import threading
from collections.abc import Callable
from typing import Final
from weakref import WeakMethod

# What to do in the child, and the lock to hold meanwhile.
_watched: Final[dict[WeakMethod[Callable[[], None]], "threading.RLock"]] = {}
# Taken before a fork, for the child and the parent to let go of. One thread forks at a time.
_held: Final[list[tuple[Callable[[], None] | None, "threading.RLock"]]] = []
_forking: Final = threading.RLock()


def watch(lock: "threading.RLock", in_child: Callable[[], None]) -> None:
    """At every fork hold `lock`, and call `in_child`, a method, as long as its object lives."""
    _watched[WeakMethod(in_child, _watched.pop)] = lock


def _before() -> None:
    _forking.acquire()
    for reference, lock in tuple(_watched.items()):
        lock.acquire()
        _held.append((reference(), lock))


def _in_parent() -> None:
    while _held:
        _held.pop()[1].release()
    _forking.release()


def _in_child() -> None:
    for renew, _ in _held:
        if renew is not None:
            renew()
    _in_parent()


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
