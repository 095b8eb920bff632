"""Threads of ours in somebody else's process, which take none of its signals.

The system hands a process's signal to any thread that takes it. Python's handlers then wait for the
main thread, but a host's in C run there and then: uWSGI's would end a worker on our thread, which
would wait for the main thread, and that for it, for ever.
"""

import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

# Of a thread's own doing, and for it alone.
_FAULTS: Final = {"SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV"}


def start(run: Callable[[], object]) -> threading.Thread:
    """Start a daemon thread that takes no signals; nor do those that it starts.

    Raises RuntimeError if the system has no thread for it.
    """
    thread = threading.Thread(target=run, name="hubbub", daemon=True)
    with without_signals():
        thread.start()
    return thread


@contextmanager
def without_signals() -> Generator[None]:
    """Threads that the body starts take no signals, as their maker does not for that moment."""
    if sys.platform == "win32":
        yield
        return
    others = {one for one in signal.valid_signals() if getattr(one, "name", "") not in _FAULTS}
    # Asked first: a handler in Python may raise while they are blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, others)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
