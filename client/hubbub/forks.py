"""Surviving a fork: no lock may be copied while a thread that the child lacks is holding it.

So every lock is taken before the process is copied, and each side lets go of it after. What
the two sides cannot share (a connection, a channel, a thread) is made anew in the child.
Nobody else ever holds two of these locks but `forbidden`'s first, so taking them all cannot block.

Some servers fork without telling Python, or tell the child alone (uWSGI, unless it is asked to do
better). The child then has what is its parent's, which nothing can mend, and must leave it alone.
"""

# Loaded here, so that at a fork its lock is taken after ours: what is loaded while forks are
# forbidden takes it too.
import logging  # noqa: F401  # pyright: ignore[reportUnusedImport]
import os
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

Step = Callable[[Any], None]


def _nothing(_: object) -> None:
    """No step is to be taken."""


class _Watched(NamedTuple):
    lock: "threading.RLock"
    prepare: Step
    renew: Step


_watched: Final = WeakKeyDictionary[object, _Watched]()
# Taken before a fork, for the child and the parent to let go of. One thread forks at a time.
_held: Final = list[tuple[object, _Watched]]()
_forking: Final = threading.RLock()
# The process that everything watched belongs to.
_process = os.getpid()


def watch(owner: object, lock: "threading.RLock", renew: Step, prepare: Step = _nothing) -> None:
    """At every fork hold `lock`, and call renew(owner) in the child, as long as it lives.

    `prepare(owner)` is called before the fork, when the lock is taken.
    """
    if not _watched:
        _settle()
    _watched[owner] = _Watched(lock, prepare, renew)


def unannounced() -> bool:
    """Whether this process was forked behind Python's back, with what was watched then."""
    return os.getpid() != _process and bool(_watched)


def _settle() -> None:
    global _process  # noqa: PLW0603
    _process = os.getpid()


def forbidden() -> "threading.RLock":
    """A lock to hold where a fork would copy something that nobody watches yet.

    So it is around what loads a module late: a child that was forked in the middle of it would
    wait for ever for the thread that was loading.
    """
    return _forking


def _before() -> None:
    _hold(None, _Watched(_forking, _nothing, _nothing))
    for reference in _watched.keyrefs():
        owner = reference()
        if owner is not None:
            _hold(owner, _watched[owner])


def _hold(owner: object, watched: _Watched) -> None:
    watched.lock.acquire()
    _held.append((owner, watched))
    watched.prepare(owner)


def _in_parent() -> None:
    while _held:
        _, watched = _held.pop()
        watched.lock.release()


def _in_child() -> None:
    # None are held where nobody told us before.
    if _held:
        _settle()
    for owner, watched in _held:
        watched.renew(owner)
    _in_parent()


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
