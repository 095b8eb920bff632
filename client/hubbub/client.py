"""The client: what an app holds. Construction may raise; after that nothing ever does."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fsdecode
from typing import TYPE_CHECKING, Final, Self

from hubbub import at_exit, forks, log, randomness
from hubbub.budgets import read_budgets
from hubbub.bundle import Bundle, operator_key_bytes
from hubbub.contract import Metric
from hubbub.errors import (
    BadSignature,
    HubbubError,
    StateUnavailable,
    UndeclaredSource,
    UnknownMetric,
)
from hubbub.exact import charge_text
from hubbub.ledger import Ledger
from hubbub.outcome import Outcome
from hubbub.preview import WaitingReport, preview
from hubbub.recording import Recorder
from hubbub.refresh import BundleInForce
from hubbub.rows import Switch
from hubbub.transport import GrpcTransport, Transport, is_loopback
from hubbub.upload import Uploader

if TYPE_CHECKING:
    from hubbub.statement import Statement

# How long closing, or turning off, may wait for a report that is under way.
_CLOSE_SECONDS: Final = 2.0


class Client:
    """Randomises values on this device, keeps account of ε, and sends the noisy reports.

    Thread-safe. Use it as a context manager, or call `close`.
    """

    # Replaced only by tests.
    _clock = staticmethod(time.time)
    _source: randomness.Source = randomness.SYSTEM

    def __init__(
        self,
        bundle: str | PathLike[str] | Bundle,
        *,
        operator_key: str | Sequence[str],
        state_dir: str | PathLike[str] | None,
        budgets: Mapping[str, str],
        enabled: bool = True,
        transport: Transport | None = None,
    ) -> None:
        """Open the state and check the bundle.

        `bundle`: a file, or an already verified Bundle, which clients may share.
        `operator_key`: "ed25519:<64 hex digits>", or several of which any may have signed.
        `state_dir`: a directory that only this app writes; None keeps the state in memory,
        for tests and simulations, and then reports go to this machine only, by `flush`.
        `budgets`: for each source that this app lets metrics draw on, the most ε a device
        may ever spend on it, as decimal text; at most 32.
        `transport`: where reports go instead of the bundle's endpoint; may be shared.

        Raises BundleError, StateError, InvalidBudget, ValueError for an operator key that is
        none, or OSError for a missing bundle file.
        """
        keys = (operator_key,) if isinstance(operator_key, str) else tuple(operator_key)
        self._budgets = read_budgets(budgets)
        given = _verified(bundle, keys)
        self._in_memory = state_dir is None
        # For the counts; re-entrant for the sake of signal handlers.
        self._lock = threading.RLock()
        self._counts = dict.fromkeys(Outcome, 0)
        self._closed = False
        # Whether this process may have what waits from its parent, and no thread to send it.
        self._inherited = False
        forks.watch(self, self._lock, Client._after_fork)
        self._ledger = Ledger.open(None if state_dir is None else fsdecode(state_dir))
        try:
            self._in_force = BundleInForce(given, self._ledger, keys, self._budgets, self._clock)
            self._owns_transport = transport is None
            self._transport: Transport = transport or GrpcTransport(
                self._bundle.endpoint, self._bundle.certificate_authority
            )
            if self._in_memory:
                _require_loopback(self._transport.destination)
        except BaseException:
            self._ledger.close()
            raise
        self._recorder = Recorder(
            self._ledger, self._in_force, self._budgets, clock=self._clock, source=self._source
        )
        self._uploader = Uploader(
            self._ledger,
            self._in_force,
            self._recorder,
            self._transport,
            # A state in memory stays on this machine, wherever the operator moves to.
            owned=self._owns_transport and not self._in_memory,
            clock=self._clock,
            source=self._source,
        )
        if not self._in_memory:
            at_exit.close_at_exit(self)
        if not enabled:
            self.enabled = False
        elif self._has_work():
            self._wake()

    @property
    def _bundle(self) -> Bundle:
        return self._in_force.bundle

    def metric(self, name: str) -> "MetricHandle":
        """The handle for recording a metric.

        A metric that is paid for as a whole is charged here, before there is anything to
        record: call it at start-up. Raises UnknownMetric (a KeyError) or UndeclaredSource.
        """
        metric = self._bundle.metrics.get(name)
        if metric is None:
            raise UnknownMetric(name, list(self._bundle.metrics))
        if metric.source not in self._budgets:
            raise UndeclaredSource(name, metric.source, list(self._budgets))
        if metric.is_series:
            self._enrol(metric)
        return MetricHandle(self, metric)

    @property
    def enabled(self) -> bool:
        """Whether the app lets anything be recorded or sent.

        Turning it off deletes what `opt_out` deletes. The account of what was spent stays, so
        that turning it on again gives no budget back. The app keeps this choice between starts;
        the owner's, `pause` and `opt_out`, are kept here.
        """
        return self._uploader.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        try:
            wanted = bool(enabled)
            if wanted and self._uploader.enabled:
                return
            # Emptied before turning on as well: it may have failed when it was turned off.
            self._stop_sending()
            self._ledger.withdraw()
            self._uploader.enabled = wanted
        except Exception as error:
            self._uploader.enabled = False
            log.warning("collection is off, but not withdrawn: %s", type(error).__name__)

    @property
    def switch(self) -> Switch | None:
        """What the owner of this device has chosen; None if the state cannot be read."""
        try:
            return self._ledger.switch()
        except HubbubError as error:
            log.warning("the owner's choice could not be read: %s", type(error).__name__)
            return None

    def pause(self) -> bool:
        """Record and send nothing until `resume`, over restarts too. What waits goes on waiting.

        Somebody who has opted out stays out. Returns whether that is in force: not if the state
        could not be written.
        """
        return self._set_switch(Switch.PAUSED, unless=Switch.OPTED_OUT)

    def resume(self) -> bool:
        """End a pause. Somebody who has opted out stays out.

        Returns whether that is in force: not if the state could not be written.
        """
        return self._set_switch(Switch.ON, unless=Switch.OPTED_OUT)

    def opt_out(self) -> bool:
        """Record and send nothing until `opt_in`, over restarts too; delete what was said.

        What waits, memos, and the bytes of reports that left are deleted. The account of what
        was spent stays. Returns whether that is in force: not if the state could not be written.
        """
        return self._set_switch(Switch.OPTED_OUT)

    def opt_in(self) -> bool:
        """End opting out. No budget comes back, and a new memo is charged in full."""
        return self._set_switch(Switch.ON)

    def _set_switch(self, switch: Switch, *, unless: Switch | None = None) -> bool:
        try:
            if self._closed:
                return False
            switch = self._ledger.set_switch(switch, int(self._clock()), unless=unless)
        except Exception as error:
            log.warning("the owner's choice could not be stored: %s", type(error).__name__)
            if switch is not Switch.ON:
                # It may be in force all the same.
                self._disconnect()
            return False
        if switch is not Switch.ON:
            self._disconnect()
        # Who has opted out may have something left to forget.
        if switch is Switch.OPTED_OUT or (switch is Switch.ON and self._has_work()):
            self._wake()
        return True

    def _stop_sending(self) -> None:
        self._uploader.enabled = False
        self._disconnect()

    def _disconnect(self) -> None:
        """Nothing leaves any more when this returns, unless on a connection of the app's own."""
        for _ in range(2):
            # Twice: a report on its way to the network may have connected anew in between.
            if self._owns_transport and isinstance(self._transport, GrpcTransport):
                self._transport.disconnect()
            self._uploader.quiesce(_CLOSE_SECONDS)

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """How often `record` gave each outcome since this client was made.

        A value outside the domain is counted as any other: the difference is between `record`
        and its caller alone.
        """
        with self._lock:
            return dict(self._counts)

    def preview(self) -> list[WaitingReport]:
        """What waits to be sent, as it will be sent. Draws nothing."""
        try:
            return preview(self._ledger, self._bundle)
        except Exception as error:
            log.warning("the outbox could not be read: %s", type(error).__name__)
            return []

    @property
    def dropped(self) -> int:
        """How many reports were dropped, in this device's life, because too many waited."""
        try:
            return self._ledger.dropped()
        except HubbubError as error:
            log.warning("the ledger could not be read: %s", type(error).__name__)
            return 0

    def statement(self) -> "Statement":
        """What was asked, what left, what it can reveal at most: for this device's owner.

        `str()` of it is text. Raises StateError if the state cannot be read.
        """
        from hubbub.statement import statement

        return statement(self._ledger, now=self._clock())

    def flush(self, timeout: float = 5.0) -> bool:
        """Send what waits now, for up to `timeout` seconds.

        Returns whether nothing waits any more but reports of a series, which leave when their
        round is over. Calling it is never needed, but with a state in memory: reports leave by
        themselves.
        """
        if self._closed or not self.enabled:
            return False
        try:
            began = time.monotonic()
            self._recorder.attend_all(timeout)
            return self._uploader.flush(timeout - (time.monotonic() - began))
        except Exception as error:
            log.warning("flush failed: %s", type(error).__name__)
            return False

    def close(self) -> None:
        """Stop sending and close the state; what waits is sent after the next start.

        Sends nothing by itself: a program that ends soon after it recorded calls `flush`.
        Called when the program ends, if the app did not.
        """
        self.close_within(_CLOSE_SECONDS)

    def close_within(self, seconds: float) -> None:
        """Close, waiting at most so long for a report that is under way."""
        if self._closed:
            return
        self._closed = True
        steps: list[Callable[[], None]] = [
            partial(self._uploader.close, seconds),
            self._ledger.close,
        ]
        if self._owns_transport:
            # First of all: it ends what is under way.
            steps.insert(0, self._transport.close)
        for step in steps:
            try:
                step()
            except Exception as error:
                log.warning("close failed: %s", type(error).__name__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def record(self, metric: Metric, value: object) -> Outcome:
        """What `MetricHandle.record` does; apps call it there."""
        try:
            outcome = self._try_to_record(metric, value)
        except Exception:
            # Whatever it was, its text might quote what it choked on.
            outcome = Outcome.NOT_STORED
        stored = bool(outcome)
        try:
            if stored or self._inherited:
                self._inherited = False
                self._wake()
            self._count(Outcome.STORED if stored else outcome, stored)
        except Exception:
            # The stack is at its end, or the app's log. Nothing of it is about the report.
            self._inherited = True
        return outcome

    def _after_fork(self) -> None:
        """The child counts on from what its parent had, and starts no thread by itself."""
        self._inherited = True

    def _wake(self) -> None:
        # A simulated crowd has no use for a thread in each of its devices.
        if self._in_memory:
            return
        try:
            self._uploader.wake()
        except Exception as error:
            # No thread to be had. What waits is safe, and the next report tries again.
            log.warning("the upload could not start: %s", type(error).__name__)

    def _has_work(self) -> bool:
        return bool(self._ledger.outbox_times() or self._recorder.series())

    def _enrol(self, metric: Metric) -> None:
        """Pay for a series, if anything may be recorded; else that is done when it may."""
        try:
            if self._may_record() and self._recorder.enrol(metric):
                log.warning(
                    "%s will not be answered: it costs ε = %s as a whole, and what source %s has "
                    "left of %s does not cover it",
                    metric.name,
                    charge_text(metric.series_charge or 0),
                    metric.source,
                    charge_text(self._budgets[metric.source]),
                )
        except Exception as error:
            log.warning("%s could not be enrolled: %s", metric.name, type(error).__name__)

    def _try_to_record(self, metric: Metric, value: object) -> Outcome:
        if not self._may_record():
            return self._off()
        # A newer bundle may no longer ask it.
        if metric.name not in self._bundle.metrics:
            return Outcome.NOT_ASKED_NOW
        outcome = self._recorder.record(metric, value, self._may_record)
        return self._off() if outcome is None else outcome

    def _may_record(self) -> bool:
        return self.enabled and not self._closed

    def _off(self) -> Outcome:
        return Outcome.CLIENT_CLOSED if self._closed else Outcome.COLLECTION_OFF

    def _count(self, outcome: Outcome, stored: bool) -> None:
        with self._lock:
            count = self._counts[outcome] = self._counts[outcome] + 1
        # The first, the tenth, the hundredth …: enough to notice, too few to fill a log.
        # Of a sampled metric most rounds are not joined, as they should be.
        worth = not stored and outcome is not Outcome.NOT_JOINED
        if worth and str(count).strip("0") == "1":
            log.warning("record: %s (%d times so far)", outcome, count)


class MetricHandle:
    """One metric of a client's bundle, ready to record."""

    __slots__ = ("_client", "_metric")

    def __init__(self, client: Client, metric: Metric) -> None:
        self._client = client
        self._metric = metric

    def record(self, value: str | None) -> Outcome:
        """Randomise a value and store the noisy report; the value itself is kept nowhere.

        `value` is one of the metric's labels, or None for "nothing to report". Truthy if
        stored. Never raises and never waits for the network. An exception that a signal's handler
        raises meanwhile ends it too, and is not seen by the app unless it is a BaseException.
        """
        return self._client.record(self._metric, value)

    def __repr__(self) -> str:
        return f"<metric {self._metric.name!r}>"


def _verified(bundle: str | PathLike[str] | Bundle, operator_keys: Sequence[str]) -> Bundle:
    for key in operator_keys:
        operator_key_bytes(key)
    if not isinstance(bundle, Bundle):
        return Bundle.load(bundle, operator_key=operator_keys)
    if bundle.operator not in operator_keys:
        raise BadSignature(operator_keys)
    return bundle


def _require_loopback(destination: str) -> None:
    if not is_loopback(destination):
        raise StateUnavailable(
            ":memory:",
            f"a state in memory forgets what was spent, so it may not send to {destination}: "
            f"give a state_dir",
        )
