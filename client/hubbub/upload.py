"""Uploading: seal what waits, send it when it is due, note what became of it; back off when it
fails.

Nothing here depends on what a report says: when it is sent follows from chance and the
network alone.
"""

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Final

from hubbub import background, forks, log
from hubbub.errors import StateUnavailable
from hubbub.ledger import Ledger
from hubbub.limits import CLOCK_SKEW
from hubbub.randomness import Source
from hubbub.recording import Recorder
from hubbub.refresh import BundleInForce
from hubbub.rows import Entry, Status, Switch
from hubbub.transport import GrpcTransport, Refused, Transport

# Full jitter: the n-th pause is uniform up to FIRST_PAUSE · 2^n, at most LONGEST_PAUSE.
FIRST_PAUSE: Final = 1.0
# So often, at least, the clock is looked at, which may have been set.
LONGEST_PAUSE: Final = 3_600.0
# The longest where it is the device's own state that cannot be written: that costs nobody else
# anything, and what waits is to leave soon after there is space again. Seconds.
LOCAL_PAUSE: Final = 4.0
# While the owner has paused, so often it is asked whether that is over.
PAUSED_LOOK: Final = 600.0
# While somebody reads what the owner has deleted, so often it is looked whether that is over.
READERS_LOOK: Final = 5.0
# A program that stores one report often stores more; so long the upload lets it. Seconds.
BURST: Final = 0.2
# Where nothing is due for longer, no connection is kept. Seconds.
IDLE: Final = 30.0
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
    "MESSAGE_TOO_LARGE": Status.REFUSED,
}
# Refusals of an aggregator that has another bundle in force than this device.
OTHER_BUNDLE: Final = frozenset({"UNKNOWN_DIGEST", "UNKNOWN_KEY"})
# What is said where there is no aggregator, or none that has time.
UNREACHED: Final = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED", "OVERLOADED"}
)


class Uploader:
    """Empties a ledger's outbox, in a thread of its own or in the caller's."""

    def __init__(
        self,
        ledger: Ledger,
        in_force: BundleInForce,
        recorder: Recorder,
        transport: Transport,
        *,
        owned: bool,
        clock: Callable[[], float],
        source: Source,
    ) -> None:
        """`owned`: whether the transport may follow a newer bundle's endpoint, and be idle."""
        self._ledger = ledger
        self._in_force = in_force
        self._recorder = recorder
        self._transport = transport
        self._owned = owned
        self._clock = clock
        self._source = source
        self.enabled = True
        # Whether the ledger could not be written when it was last tried by the thread.
        self._unwritable = False
        # Whether a report was handed to the transport since it was last looked at.
        self._left = False
        self._stop = threading.Event()
        # Wakes the thread. An Event's lock would catch a signal handler in its own thread.
        self._signals = SimpleQueue[None]()
        # One sender at a time: the thread, or a flush.
        self._sending = threading.Lock()
        # For the thread; re-entrant for the sake of signal handlers, as the ledger's.
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        forks.watch(self, self._lock, Uploader._after_fork)

    def wake(self) -> None:
        """See to it that what waits is sent when it is due. Returns at once.

        Raises RuntimeError if the system has no thread for it; the next call tries again.
        """
        self._signals.put(None)
        with self._lock:
            if self._thread is None and self.enabled and not self._stop.is_set():
                self._thread = background.start(self._run)

    def flush(self, timeout: float) -> bool:
        """Send what waits, for up to `timeout` seconds; a series' reports only if they are due.

        Tells whether nothing of that waits any more.
        """
        # In this order it holds for NaN and infinity too.
        deadline = time.monotonic() + min(max(0.0, timeout), threading.TIMEOUT_MAX / 2)
        failures = 0
        while self.enabled and not self._stop.is_set():
            left = max(0.0, deadline - time.monotonic())
            if not self._sending.acquire(timeout=left):
                break
            try:
                pushback = self._send_all(self._may_leave, deadline)
            finally:
                self._sending.release()
            if pushback is None:
                break
            pause = max(pushback, self._back_off(failures))
            failures += 1
            if time.monotonic() + pause >= deadline:
                break
            self._stop.wait(pause)
        return not any(map(self._may_leave, self._ledger.outbox()))

    def quiesce(self, timeout: float) -> None:
        """Wait until nothing is being sent any more, at most so many seconds."""
        if self._sending.acquire(timeout=timeout):
            self._sending.release()

    def close(self, timeout: float) -> None:
        """Stop sending, waiting at most `timeout` seconds for the thread."""
        self._stop.set()
        self._signals.put(None)
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _after_fork(self) -> None:
        """The child has no thread, and nobody there who lets go of these."""
        stopped = self._stop.is_set()
        self._thread = None
        self._sending = threading.Lock()
        self._signals = SimpleQueue()
        self._stop = threading.Event()
        if stopped:
            self._stop.set()

    def _run(self) -> None:
        failures, not_before = 0, 0.0
        while not self._stop.is_set():
            waits = not_before - time.monotonic()
            pause: float | None = waits
            if waits <= 0:
                pushback, pause = self._try_to_send()
                if pushback is None:
                    failures = 0
                elif self._unwritable and not self._left:
                    pause = self._up_to(LOCAL_PAUSE)
                    not_before = time.monotonic() + pause
                else:
                    pause = min(max(pushback, self._back_off(failures)), LONGEST_PAUSE)
                    not_before = time.monotonic() + pause
                    failures += 1
            if not self._sleep(pause):
                return

    def _sleep(self, pause: float | None) -> bool:
        """Sleep until it is time or there is news. False: there is nothing to do any more."""
        with self._lock:
            # Whoever stores a report after this starts another thread.
            if not self.enabled or (pause is None and self._signals.empty()):
                self._thread = None
                return False
        try:
            self._signals.get(timeout=min(max(0.0, pause or 0.0), LONGEST_PAUSE))
            # News comes in bursts, and one look is for all of it.
            self._stop.wait(BURST)
            while True:
                self._signals.get_nowait()
        except Empty:
            return True

    def _try_to_send(self) -> tuple[float | None, float | None]:
        """The aggregator's pushback, None if all went well; and seconds until there is more to do,
        None if there is not."""
        self._left = False
        try:
            if self._unwritable:
                # Before anything leaves: an aggregator must not be asked again and again for an
                # answer that cannot be kept.
                self._ledger.require_writable()
            switch = self._ledger.switch()
            if switch is Switch.OPTED_OUT:
                return None, None if self._ledger.forget() else READERS_LOOK
            if switch is Switch.PAUSED:
                return None, PAUSED_LOOK
            next_end = self._recorder.attend_all()
            pushback = None
            # Asked first: where nothing is due, nothing is written.
            times = self._ledger.outbox_times()
            if times is not None and self._has_come(times.first_due, times.last_recorded):
                with self._sending:
                    self._ledger.drop_old()
                    pushback = self._send_all(self._is_due, None)
                    self._ledger.checkpoint()
                times = self._ledger.outbox_times()
            moments = [] if times is None else [float(times.first_due)]
            if next_end is not None:
                moments.append(next_end)
            pause = min(moments) - self._clock() if moments else None
            if pause is None or pause > IDLE:
                self._hang_up()
            self._unwritable = False
            return pushback, pause
        except Exception as error:
            # A full disk, a closed ledger. What waits, waits; the message may hold no more.
            before = self._unwritable
            self._unwritable = isinstance(error, StateUnavailable)
            if not self._stop.is_set() and not (before and self._unwritable):
                log.warning("upload failed: %s", type(error).__name__)
            return 0.0, None

    def _is_due(self, entry: Entry) -> bool:
        # When one of a series leaves must not tell whether its round had an answer.
        return self._has_come(entry.due_at, 0 if entry.in_series else entry.recorded_at)

    def _has_come(self, due_at: int, recorded_at: int) -> bool:
        """Whether a report is due. By a clock that was set back none would be for years."""
        now = self._clock()
        return due_at <= now or now < recorded_at - CLOCK_SKEW

    def _may_leave(self, entry: Entry) -> bool:
        return self._is_due(entry) or not entry.in_series

    def _send_all(self, chosen: Callable[[Entry], bool], deadline: float | None) -> float | None:
        """Try each chosen report once. None: none is left; else the aggregator's pushback."""
        pushback: float | None = None
        sent, other_bundle = False, False
        for entry in filter(chosen, self._ledger.outbox()):
            timeout = RPC_TIMEOUT
            if deadline is not None:
                timeout = min(timeout, deadline - time.monotonic())
            if timeout <= 0 or not self.enabled or self._stop.is_set():
                return pushback or 0.0
            try:
                self._send(entry, timeout)
                sent = True
            except Refused as refusal:
                log.info("report not taken: %s", refusal.reason)
                pushback = max(pushback or 0.0, refusal.pushback)
                other_bundle = other_bundle or refusal.reason in OTHER_BUNDLE
                if refusal.reason in UNREACHED:
                    # The others would fare no better, and only add to its load.
                    break
        if sent or other_bundle:
            left = RPC_TIMEOUT if deadline is None else deadline - time.monotonic()
            self._refresh(min(left, RPC_TIMEOUT), needed=other_bundle)
        return pushback

    def _refresh(self, timeout: float, *, needed: bool) -> None:
        """Go on with a newer bundle, if the aggregator has one, and with its endpoint."""
        if timeout <= 0:
            return
        came = self._in_force.refresh(self._transport, timeout, needed=needed)
        channel = self._own_channel()
        if came and channel is not None:
            bundle = self._in_force.bundle
            channel.move(bundle.endpoint, bundle.certificate_authority)

    def _hang_up(self) -> None:
        """Keep no connection, unless a flush is using it at this moment."""
        channel = self._own_channel()
        if channel is not None and self._sending.acquire(blocking=False):
            try:
                channel.disconnect()
            finally:
                self._sending.release()

    def _own_channel(self) -> GrpcTransport | None:
        """The transport, if it is not the app's."""
        transport = self._transport
        return transport if self._owned and isinstance(transport, GrpcTransport) else None

    def _send(self, entry: Entry, timeout: float) -> None:
        """Send one report and note what became of it; raises Refused to try again later."""
        key_id, sealed = self._sealed(entry)
        destination, now = self._transport.destination, int(self._clock())
        leaving = self._ledger.depart(entry, key_id, sealed, destination, now)
        if leaving is not None:
            self._left = True
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
        keys = {key.key_id for key in self._in_force.bundle.sealing_keys}
        for departure in self._ledger.departures(entry):
            if departure.sealed is not None and departure.key_id in keys:
                return departure.key_id, departure.sealed
        if entry.report is None:
            raise Refused("WITHDRAWN")
        # Loaded with the first report that leaves: the host's start need not pay for it.
        with forks.forbidden():
            from hubbub.sealing import seal

        key = self._in_force.bundle.sealing_keys[0]
        return key.key_id, seal(key, entry.digest, entry.round, entry.report)

    def _back_off(self, failures: int) -> float:
        """How long to wait after so many failures in a row before this one."""
        return self._up_to(min(FIRST_PAUSE * 2 ** min(failures, 20), LONGEST_PAUSE))

    def _up_to(self, seconds: float) -> float:
        """Uniform, to the millisecond."""
        return self._source.below(int(seconds * 1000) + 1) / 1000
