"""Uploading: seal what waits, send it, note what became of it; back off when it fails.

Nothing here depends on what a report says: when it is sent follows from chance and the
network alone.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from hubbub.contract import Bundle
from hubbub.ledger import Entry, Ledger, Status
from hubbub.randomness import Source
from hubbub.transport import Refused, Transport

log = logging.getLogger("hubbub")

# A first report leaves within this many seconds, at a moment drawn by chance.
FIRST_WITHIN: Final = 10.0
# Full jitter: the n-th pause is uniform up to FIRST_PAUSE · 2^n, at most LONGEST_PAUSE.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 3_600.0
# An RPC that takes longer has lost its way.
RPC_TIMEOUT: Final = 10.0

# What a ReportStatus of the wire means for the ledger.
_SETTLED: Final[Mapping[int, Status]] = {
    1: Status.COUNTED,  # counted now
    2: Status.COUNTED,  # counted before: an answer was lost on the way
    3: Status.REFUSED,  # does not open
    4: Status.REFUSED,  # not canonical
}
# Refusals after which no retry of the same report can succeed.
_FINAL: Final[Mapping[str, Status]] = {
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
        # One sender at a time: the thread, or a flush.
        self._sending = threading.Lock()
        self._state = threading.Lock()
        self._thread: threading.Thread | None = None
        # Something was stored since the thread last looked.
        self._stored = False
        self._stop = threading.Event()
        self.enabled = True

    def wake(self) -> None:
        """See to it that what waits is sent soon. Returns at once."""
        with self._state:
            self._stored = True
            if self._thread is None and self.enabled and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="hubbub", daemon=True)
                self._thread.start()

    def flush(self, timeout: float) -> bool:
        """Send what waits, for up to `timeout` seconds; tell whether nothing waits any more."""
        deadline = time.monotonic() + timeout
        failures = 0
        while True:
            left = max(0.0, deadline - time.monotonic())
            if not self._sending.acquire(timeout=left):
                return not self._ledger.outbox()
            try:
                pause = self._send_all(deadline)
            finally:
                self._sending.release()
            if pause is None:
                return True
            pause = max(pause, self._jitter(FIRST_PAUSE * 2**failures))
            failures += 1
            if time.monotonic() + pause >= deadline or self._stop.wait(pause):
                return False

    def close(self, timeout: float) -> None:
        """Stop sending, waiting at most `timeout` seconds for the thread."""
        self._stop.set()
        with self._state:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _run(self) -> None:
        failures = 0
        pause = self._jitter(FIRST_WITHIN)
        while not self._stop.wait(pause):
            with self._state:
                self._stored = False
            try:
                with self._sending:
                    pushback = self._send_all(None)
            except Exception as error:
                # A full disk, a closed ledger. What waits, waits; the message may hold no more.
                log.warning("upload failed: %s", type(error).__name__)
                pushback = 0.0
            with self._state:
                if (pushback is None and not self._stored) or not self.enabled:
                    # Whoever stores a report after this starts another thread.
                    self._thread = None
                    return
            pause = max(
                pushback or 0.0, self._jitter(min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE))
            )
            failures = min(failures + 1, 20)

    def _send_all(self, deadline: float | None) -> float | None:
        """Try each waiting report once. None: nothing waits; else the aggregator's pushback."""
        pushback: float | None = None
        for entry in self._ledger.outbox():
            timeout = RPC_TIMEOUT
            if deadline is not None:
                timeout = min(timeout, max(0.05, deadline - time.monotonic()))
            if not self.enabled or self._stop.is_set():
                return 0.0
            try:
                status = self._send(entry, timeout)
            except Refused as refusal:
                log.info("report not taken: %s", refusal.reason)
                pushback = max(pushback or 0.0, refusal.pushback)
            else:
                self._ledger.settle(entry, status)
        return pushback

    def _send(self, entry: Entry, timeout: float) -> Status:
        """Send one report and return what became of it; raises Refused to try again later."""
        key_id, sealed = self._sealed(entry)
        destination, now = self._transport.destination, int(self._clock())
        if not self._ledger.depart(entry, key_id, sealed, destination, now):
            return Status.WITHDRAWN
        try:
            (status,) = self._transport.submit(entry.digest, entry.round, key_id, sealed, timeout)
        except Refused as refusal:
            if refusal.reason in _FINAL:
                return _FINAL[refusal.reason]
            raise
        except ValueError:
            raise Refused("UNREADABLE_ANSWER") from None
        if status not in _SETTLED:
            raise Refused("UNREADABLE_ANSWER")
        return _SETTLED[status]

    def _sealed(self, entry: Entry) -> tuple[bytes, bytes]:
        """The key id and sealed bytes: the same at every try, as long as the key is in force."""
        keys = {key.key_id: key for key in self._bundle.sealing_keys}
        if entry.sealed is not None and entry.key_id in keys:
            return entry.key_id, entry.sealed
        if entry.report is None:
            raise Refused("WITHDRAWN")
        # Loaded with the first report that leaves: the host's start need not pay for it.
        from hubbub.sealing import seal

        key = self._bundle.sealing_keys[0]
        return key.key_id, seal(key, entry.digest, entry.round, entry.report)

    def _jitter(self, limit: float) -> float:
        """A uniform time up to `limit` seconds, to the millisecond."""
        return self._source.below(int(limit * 1000) + 1) / 1000
