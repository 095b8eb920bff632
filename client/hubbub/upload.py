"""Uploading: seal what waits, send it, note what became of it; back off when it fails.

Nothing here depends on what a report says: when it is sent follows from chance and the
network alone.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from hubbub import forks, log
from hubbub.contract import Bundle
from hubbub.ledger import Entry, Ledger, Status
from hubbub.randomness import Source
from hubbub.transport import Refused, Transport

# A first report leaves within this many seconds, at a moment drawn by chance.
FIRST_WITHIN: Final = 10.0
# Full jitter: the n-th pause is uniform up to FIRST_PAUSE · 2^n, at most LONGEST_PAUSE.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 3_600.0
# An RPC that takes longer has lost its way.
RPC_TIMEOUT: Final = 10.0

# What a ReportStatus of the wire means for the ledger.
SETTLED: Final[Mapping[int, Status]] = {
    1: Status.COUNTED,  # counted now
    2: Status.COUNTED,  # counted before: an answer was lost on the way
    3: Status.REFUSED,  # does not open
    4: Status.REFUSED,  # not canonical
}
# Refusals after which no retry of the same report can succeed.
FINAL: Final[Mapping[str, Status]] = {
    "ROUND_CLOSED": Status.EXPIRED,
    "NO_SUCH_ROUND": Status.REFUSED,
    "WRONG_LENGTH": Status.REFUSED,
    "TOO_MANY_REPORTS": Status.REFUSED,
}


class Uploader:
    """Empties a ledger's outbox, in a thread of its own or in the caller's."""

    def __init__(
        self,
        ledger: Ledger,
        bundle: Bundle,
        transport: Transport,
        *,
        clock: Callable[[], float],
        source: Source,
    ) -> None:
        self._ledger = ledger
        self._bundle = bundle
        self._transport = transport
        self._clock = clock
        self._source = source
        self.enabled = True
        self._stop = threading.Event()
        # One sender at a time: the thread, or a flush.
        self._sending = threading.Lock()
        # For the two below; re-entrant for the sake of signal handlers, as the ledger's.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        # Something was stored since the thread last looked.
        self._stored = False
        forks.watch(self, self._lock, Uploader._after_fork)

    def wake(self) -> None:
        """See to it that what waits is sent soon. Returns at once.

        Raises RuntimeError if the system has no thread for it; the next call tries again.
        """
        with self._lock:
            self._stored = True
            if self._thread is None and self.enabled and not self._stop.is_set():
                thread = threading.Thread(target=self._run, name="hubbub", daemon=True)
                thread.start()
                self._thread = thread

    def flush(self, timeout: float) -> bool:
        """Send what waits, for up to `timeout` seconds; tell whether nothing waits any more."""
        # In this order it holds for NaN and infinity too.
        deadline = time.monotonic() + min(max(0.0, timeout), threading.TIMEOUT_MAX / 2)
        failures = 0
        while self.enabled and not self._stop.is_set():
            left = max(0.0, deadline - time.monotonic())
            if not self._sending.acquire(timeout=left):
                break
            try:
                pushback = self._send_all(deadline)
            finally:
                self._sending.release()
            if pushback is None:
                break
            pause = max(pushback, self._back_off(failures))
            failures += 1
            if time.monotonic() + pause >= deadline:
                break
            self._stop.wait(pause)
        return not self._ledger.outbox()

    def close(self, timeout: float) -> None:
        """Stop sending, waiting at most `timeout` seconds for the thread."""
        self._stop.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _after_fork(self) -> None:
        """The child has no thread, and nobody there who lets go of these."""
        stopped = self._stop.is_set()
        self._thread = None
        self._sending = threading.Lock()
        self._stop = threading.Event()
        if stopped:
            self._stop.set()

    def _run(self) -> None:
        failures = 0
        pause = self._jitter(FIRST_WITHIN)
        while not self._stop.wait(pause):
            with self._lock:
                self._stored = False
            pushback = self._try_to_send()
            with self._lock:
                if (pushback is None and not self._stored) or not self.enabled:
                    # Whoever stores a report after this starts another thread.
                    self._thread = None
                    return
            if pushback is None:
                failures = 0
            pause = min(max(pushback or 0.0, self._back_off(failures)), LONGEST_PAUSE)
            failures += 1

    def _try_to_send(self) -> float | None:
        try:
            with self._sending:
                return self._send_all(None)
        except Exception as error:
            # A full disk, a closed ledger. What waits, waits; the message may hold no more.
            if not self._stop.is_set():
                log.warning("upload failed: %s", type(error).__name__)
            return 0.0

    def _send_all(self, deadline: float | None) -> float | None:
        """Try each waiting report once. None: nothing waits; else the aggregator's pushback."""
        pushback: float | None = None
        for entry in self._ledger.outbox():
            timeout = RPC_TIMEOUT
            if deadline is not None:
                timeout = min(timeout, deadline - time.monotonic())
            if timeout <= 0 or not self.enabled or self._stop.is_set():
                return pushback or 0.0
            try:
                self._send(entry, timeout)
            except Refused as refusal:
                log.info("report not taken: %s", refusal.reason)
                pushback = max(pushback or 0.0, refusal.pushback)
        return pushback

    def _send(self, entry: Entry, timeout: float) -> None:
        """Send one report and note what became of it; raises Refused to try again later."""
        key_id, sealed = self._sealed(entry)
        destination, now = self._transport.destination, int(self._clock())
        leaving = self._ledger.depart(entry, key_id, sealed, destination, now)
        if leaving is not None:
            self._ledger.settle(entry, self._submit(entry, key_id, leaving, timeout))

    def _submit(self, entry: Entry, key_id: bytes, sealed: bytes, timeout: float) -> Status:
        try:
            (status,) = self._transport.submit(entry.digest, entry.round, key_id, sealed, timeout)
            return SETTLED[status]
        except Refused as refusal:
            if refusal.reason in FINAL:
                return FINAL[refusal.reason]
            raise
        except Exception as error:
            # An answer that makes no sense, or an app's own transport: no reason to give up,
            # and none to keep other reports back.
            raise Refused(type(error).__name__) from None

    def _sealed(self, entry: Entry) -> tuple[bytes, bytes]:
        """The key id and sealed bytes: the same at every try, as long as the key is in force."""
        keys = {key.key_id for key in self._bundle.sealing_keys}
        if entry.sealed is not None and entry.key_id in keys:
            return entry.key_id, entry.sealed
        if entry.report is None:
            raise Refused("WITHDRAWN")
        # Loaded with the first report that leaves: the host's start need not pay for it.
        from hubbub.sealing import seal

        key = self._bundle.sealing_keys[0]
        return key.key_id, seal(key, entry.digest, entry.round, entry.report)

    def _back_off(self, failures: int) -> float:
        """How long to wait after so many failures in a row before this one."""
        return self._jitter(min(FIRST_PAUSE * 2 ** min(failures, 20), LONGEST_PAUSE))

    def _jitter(self, limit: float) -> float:
        """A uniform time up to `limit` seconds, to the millisecond."""
        return self._source.below(int(limit * 1000) + 1) / 1000
