"""The client: what an app holds. Construction may raise; after that nothing ever does."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike, fsdecode
from typing import Final, NamedTuple, Self, cast

from hubbub import forks, log, randomness
from hubbub.contract import Bundle, Metric, is_name, operator_key_bytes, read_metric
from hubbub.errors import (
    BadSignature,
    InvalidBudget,
    StateUnavailable,
    UndeclaredSource,
    UnknownMetric,
)
from hubbub.exact import Epsilon, charge_text
from hubbub.ledger import Answer, Charge, Entry, Ledger
from hubbub.limits import MAX_CHARGE_PER_SOURCE, REPORT_ID_BYTES
from hubbub.outcome import Outcome
from hubbub.transport import GrpcTransport, Transport, is_loopback
from hubbub.upload import Uploader

# How long closing may wait for a report that is under way.
_CLOSE_SECONDS: Final = 2.0

_NOT_CHARGED: Final = {
    Charge.ALREADY_ANSWERED: Outcome.ALREADY_ANSWERED,
    Charge.BUDGET_SPENT: Outcome.BUDGET_SPENT,
}

# Stands for any value that is not text: no label equals it.
_NO_LABEL: Final = ""
# The text of a subclass of str, whose own str() may differ: an enumeration's is its name.
_plain: Final = str.__str__


class WaitingReport(NamedTuple):
    """A report that is stored and has not been counted yet."""

    metric: str
    question: str
    round: int
    epsilon: str
    """What it was charged, as decimal text."""
    supports: tuple[str, ...]
    """The values it speaks for. It was made with noise: none of them need be true. Empty in an
    open domain, where it speaks for countless texts."""
    size: int
    """Bytes, before sealing."""


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
        self._budgets = {source: _budget(source, text) for source, text in budgets.items()}
        self._bundle = _verified(bundle, keys)
        if transport is None:
            self._transport: Transport = GrpcTransport(
                self._bundle.endpoint, self._bundle.certificate_authority
            )
        else:
            self._transport = transport
        self._owns_transport = transport is None
        if state_dir is None:
            _require_loopback(self._transport.destination)
        # For the counts; re-entrant for the sake of signal handlers.
        self._lock = threading.RLock()
        self._counts = dict.fromkeys(Outcome, 0)
        self._closed = False
        forks.watch(self, self._lock, Client._after_fork)
        self._ledger = Ledger.open(None if state_dir is None else fsdecode(state_dir))
        try:
            self._ledger.adopt(self._bundle, keys, self._budgets)
            waiting = bool(self._ledger.outbox())
        except BaseException:
            self._ledger.close()
            raise
        self._uploader = Uploader(
            self._ledger, self._bundle, self._transport, clock=self._clock, source=self._source
        )
        # A simulated crowd has no use for a thread in each of its devices.
        self._sends_by_itself = state_dir is not None
        if not enabled:
            self.enabled = False
        elif waiting:
            self._wake()

    def metric(self, name: str) -> "MetricHandle":
        """The handle for recording a metric.

        Raises UnknownMetric (a KeyError) or UndeclaredSource: call it at start-up.
        """
        metric = self._bundle.metrics.get(name)
        if metric is None:
            raise UnknownMetric(name, list(self._bundle.metrics))
        if metric.source not in self._budgets:
            raise UndeclaredSource(name, metric.source, list(self._budgets))
        return MetricHandle(self, metric)

    @property
    def enabled(self) -> bool:
        """Whether anything is recorded or sent.

        Turning it off empties the outbox. The account of what was spent stays, so that
        turning it on again gives no budget back. The app keeps the choice between starts.
        """
        return self._uploader.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        try:
            wanted = bool(enabled)
            if wanted and self._uploader.enabled:
                return
            # Emptied before turning on as well: it may have failed when it was turned off.
            self._uploader.enabled = False
            self._ledger.withdraw()
            self._uploader.enabled = wanted
        except Exception as error:
            self._uploader.enabled = False
            log.warning("collection is off, but not withdrawn: %s", type(error).__name__)

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
            return [self._waiting(entry) for entry in self._ledger.outbox()]
        except Exception as error:
            log.warning("the outbox could not be read: %s", type(error).__name__)
            return []

    def _waiting(self, entry: Entry) -> WaitingReport:
        metric = self._bundle.metrics.get(entry.metric)
        if metric is None:
            # The bundle no longer asks it, but what was answered is still sent.
            metric = read_metric(self._ledger.contracts()[entry.metric])
        report = entry.report or b""
        return WaitingReport(
            metric=entry.metric,
            question=metric.question,
            round=entry.round,
            epsilon=charge_text(entry.charge),
            supports=metric.supported(report[REPORT_ID_BYTES:]),
            size=len(report),
        )

    def flush(self, timeout: float = 5.0) -> bool:
        """Send what waits now, for up to `timeout` seconds.

        Returns whether nothing waits any more. Calling it is never needed, but with a state
        in memory: reports leave by themselves.
        """
        if self._closed or not self.enabled:
            return False
        try:
            return self._uploader.flush(timeout)
        except Exception as error:
            log.warning("flush failed: %s", type(error).__name__)
            return False

    def close(self) -> None:
        """Stop sending and close the state; what waits is sent after the next start.

        Sends nothing by itself: a program that ends soon after it recorded calls `flush`.
        """
        if self._closed:
            return
        self._closed = True
        steps: list[Callable[[], None]] = [
            partial(self._uploader.close, _CLOSE_SECONDS),
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
        if outcome:
            self._wake()
        self._count(outcome)
        return outcome

    def _after_fork(self) -> None:
        """Nothing: the child counts on from what its parent had."""

    def _wake(self) -> None:
        if not self._sends_by_itself:
            return
        try:
            self._uploader.wake()
        except Exception as error:
            # No thread to be had. What waits is safe, and the next report tries again.
            log.warning("the upload could not start: %s", type(error).__name__)

    def _try_to_record(self, metric: Metric, value: object) -> Outcome:
        if self._closed or not self.enabled:
            return self._off()
        now = self._clock()
        round_number = metric.schedule.round_at(now)
        if round_number is None:
            return Outcome.NOT_ASKED_NOW
        index, inside = self._index(metric, value)
        with self._ledger.transaction() as connection:
            answer = Answer(connection, metric, round_number, self._budgets[metric.source])
            # Asked again where turning it off has to wait: what comes after is not stored.
            if not self.enabled:
                return self._off()
            if answer.charge is not Charge.CHARGED:
                return _NOT_CHARGED[answer.charge]
            report_id = self._source.digits(REPORT_ID_BYTES)
            payload = metric.mechanism.randomise(index, self._source)
            answer.store(report_id + payload, int(now))
        return Outcome.STORED if inside else Outcome.STORED_OUTSIDE_DOMAIN

    def _off(self) -> Outcome:
        return Outcome.CLIENT_CLOSED if self._closed else Outcome.COLLECTION_OFF

    def _index(self, metric: Metric, value: object) -> tuple[int, bool]:
        """The value's index, or its stand-in's; and whether it was in the domain."""
        domain = metric.domain
        # Drawn for every value, so that a stand-in costs the same as any other.
        chance = self._source.below(domain.k)
        stand_in = chance if domain.other is None else domain.other
        # Of an object only the type is asked: anything else might run code of its own.
        label = _plain(cast(str, value)) if issubclass(type(value), str) else _NO_LABEL
        index = domain.index_of(None if value is None else label)
        return stand_in if index is None else index, index is not None

    def _count(self, outcome: Outcome) -> None:
        counted = Outcome.STORED if outcome else outcome
        with self._lock:
            self._counts[counted] += 1
            count = self._counts[counted]
        # The first, the tenth, the hundredth …: enough to notice, too few to fill a log.
        if not outcome and str(count).strip("0") == "1":
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
        stored. Never raises and never waits for the network.
        """
        return self._client.record(self._metric, value)

    def __repr__(self) -> str:
        return f"<metric {self._metric.name!r}>"


def _budget(source: str, text: str) -> int:
    if not is_name(source):
        raise InvalidBudget(source, "a source is named by 1 to 64 of a-z, 0-9, '.', '_', '-'")
    try:
        charge = Epsilon.parse(text).charge
    except TypeError:
        kind = type(text).__name__
        raise InvalidBudget(source, f'must be decimal text such as "4", not {kind}') from None
    except ValueError as error:
        raise InvalidBudget(source, str(error)) from None
    if charge > MAX_CHARGE_PER_SOURCE:
        raise InvalidBudget(source, f"{text} is above 32, the most a source may ever give away")
    return charge


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
