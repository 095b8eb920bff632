"""Surviving a fork: no lock may be copied while a thread that the child lacks is holding it.

So every lock is taken before the process is copied, and each side lets go of it after. What
the two sides cannot share (a connection, a channel, a thread) is made anew in the child.
Nobody else ever holds two of these locks, so taking them all cannot block.
"""

import os
import threading
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

Renew = Callable[[Any], None]
# By owner: the lock, and what to do in the child.
_watched: Final[WeakKeyDictionary[object, tuple["threading.RLock", Renew]]] = WeakKeyDictionary()
# Taken before a fork, for the child and the parent to let go of. One thread forks at a time.
_held: Final[list[tuple[object, "threading.RLock", Renew]]] = []
_forking: Final = threading.RLock()


def watch(owner: object, lock: "threading.RLock", renew: Renew) -> None:
    """At every fork hold `lock`, and call renew(owner) in the child, as long as it lives."""
    _watched[owner] = (lock, renew)


def _before() -> None:
    _forking.acquire()
    for reference in _watched.keyrefs():
        owner = reference()
        if owner is not None:
            lock, renew = _watched[owner]
            lock.acquire()
            _held.append((owner, lock, renew))


def _in_parent() -> None:
    while _held:
        _, lock, _ = _held.pop()
        lock.release()
    _forking.release()


def _in_child() -> None:
    for owner, _, renew in _held:
        renew(owner)
    _in_parent()


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
