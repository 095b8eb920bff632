"""An aggregator in process: real clients seal for it, and it opens what they send.

No network, no certificates, no store: what it counts is a list to look at.
"""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.bundle import SIGNATURE_CONTEXT, Bundle, SealingSuite, key_id
from hubbub.client import Client
from hubbub.contract import Metric
from hubbub.errors import UnknownMetric
from hubbub.limits import CLOCK_SKEW, REPORT_ID_BYTES
from hubbub.schedule import Periodic
from hubbub.sealing import SUITES, context
from hubbub.transport import Refused
from hubbub.v1 import contract_pb2, report_pb2

# Nobody listens there: what a client says goes through `submit`.
_ENDPOINT: Final = "localhost:7443"
_MOST: Final = "32"


class Report(NamedTuple):
    """A noisy report, opened and counted."""

    round: int
    id: bytes
    """16 random bytes, by which a report that is sent again is known."""
    payload: bytes
    supports: tuple[str, ...]
    """The values it speaks for. It was made with noise: none of them need be true."""


class Aggregator:
    """Counts what clients send, each report once, and refuses what a real one would.

    A Transport: hand it to a `hubbub.Client` with `bundle` and `operator_key`, or let `client`
    do that. Thread-safe. A forked child has a copy of its own.
    """

    destination = _ENDPOINT

    def __init__(self, *metrics: Metric) -> None:
        """`metrics`: by `hubbub.testing.metric`, or a real bundle's, `*bundle.metrics.values()`.

        Their contracts are signed, and reports sealed, with keys that end with this object.
        """
        self.now: float = max((metric.schedule.starts for metric in metrics), default=0)
        """Its clock, and that of the clients it makes; stands still until it is set."""
        self._opening_key = X25519PrivateKey.generate()
        self.bundle = _publish(metrics, self._opening_key.public_key().public_bytes_raw())
        self._by_digest = {metric.digest: metric for metric in self.bundle.metrics.values()}
        self._counted: dict[str, dict[bytes, Report]] = {name: {} for name in self.bundle.metrics}
        self._refusals = deque[Refused]()
        self._answers_to_drop = 0
        self._lock = threading.Lock()

    @property
    def operator_key(self) -> str:
        """What a client must pin."""
        return self.bundle.operator

    def client(
        self,
        state_dir: str | PathLike[str] | None = None,
        *,
        budgets: Mapping[str, str] | None = None,
        enabled: bool = True,
    ) -> Client:
        """A real client that sends here, by this clock.

        `budgets`: the most there may be, for every source, if none are given. With a `state_dir`
        it also sends by itself, in real time; without one by `flush` only.
        """

        class TimedClient(Client):
            _clock = staticmethod(lambda: self.now)

        sources = {metric.source for metric in self.bundle.metrics.values()}
        return TimedClient(
            self.bundle,
            operator_key=self.operator_key,
            state_dir=state_dir,
            budgets=dict.fromkeys(sources, _MOST) if budgets is None else budgets,
            enabled=enabled,
            transport=self,
        )

    def reports(self, metric: str) -> list[Report]:
        """What was counted, in the order it came. Raises UnknownMetric."""
        with self._lock:
            return list(self._counted[self._metric(metric).name].values())

    def begin_round(self, metric: str, number: int) -> None:
        """Set the clock to when devices begin to answer a round. Raises UnknownMetric."""
        self.now = self._metric(metric).schedule.window(number).opens + CLOCK_SKEW

    def end_round(self, metric: str, number: int) -> None:
        """Set the clock to when a round is over, its reports are due, and still taken.

        That is half-way through its grace. Raises UnknownMetric, or ValueError for a metric that
        is asked once.
        """
        schedule = self._metric(metric).schedule
        if not isinstance(schedule, Periodic):
            raise ValueError(f"{metric} is asked once; set `now` to when you need it")
        self.now = schedule.end(number) + schedule.grace // 2

    def refuse(self, reason: str, *, times: int = 1, pushback: float = 0.0) -> None:
        """Refuse so many sendings, after those that are to be refused already.

        `reason`: a RefusalReason of report.proto ("ROUND_CLOSED") or a gRPC status code
        ("UNAVAILABLE"). `pushback`: seconds for which the client is told to wait. Raises
        ValueError for a reason that is none.
        """
        if reason not in _reasons():
            raise ValueError(f"no aggregator refuses with {reason!r}")
        with self._lock:
            self._refusals.extend([Refused(reason, pushback)] * times)

    def drop_answers(self, times: int = 1) -> None:
        """Count what is sent, but lose so many answers on their way back."""
        with self._lock:
            self._answers_to_drop += times

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        """Count one sealed report; called by clients."""
        with self._lock:
            if self._refusals:
                raise self._refusals.popleft()
            status = self._count(self._taken(digest, round_number, key_id), round_number, sealed)
            if self._answers_to_drop:
                self._answers_to_drop -= 1
                raise Refused("UNAVAILABLE")
            return [status]

    def fetch_bundle(self, timeout: float) -> bytes:
        """The only bundle there is; called by clients."""
        return self.bundle.signed

    def close(self) -> None:
        """Nothing: there is no connection."""

    def _metric(self, name: str) -> Metric:
        metric = self.bundle.metrics.get(name)
        if metric is None:
            raise UnknownMetric(name, list(self.bundle.metrics))
        return metric

    def _taken(self, digest: bytes, number: int, key: bytes) -> Metric:
        """The metric, if reports for it are taken now. Raises Refused."""
        metric = self._by_digest.get(digest)
        if metric is None:
            raise Refused("UNKNOWN_DIGEST")
        if key != self.bundle.sealing_keys[0].key_id:
            raise Refused("UNKNOWN_KEY")
        if number >= metric.schedule.rounds:
            raise Refused("NO_SUCH_ROUND")
        opens, closes = metric.schedule.window(number)
        if self.now < opens:
            raise Refused("ROUND_NOT_OPEN")
        if closes is not None and self.now >= closes:
            raise Refused("ROUND_CLOSED")
        return metric

    def _count(self, metric: Metric, number: int, sealed: bytes) -> int:
        info = context(metric.digest, number, self.bundle.sealing_keys[0].key_id)
        try:
            report = SUITES[SealingSuite.X25519].decrypt(sealed, self._opening_key, info)
        except InvalidTag:
            return report_pb2.REPORT_STATUS_NOT_OPENED
        report_id, payload = report[:REPORT_ID_BYTES], report[REPORT_ID_BYTES:]
        counted = self._counted[metric.name]
        if report_id in counted:
            return report_pb2.REPORT_STATUS_DUPLICATE
        counted[report_id] = Report(number, report_id, payload, metric.supported(payload))
        return report_pb2.REPORT_STATUS_COUNTED


def _publish(metrics: Sequence[Metric], public_key: bytes) -> Bundle:
    """Sign the contracts with a key that nobody has any more when this returns."""
    operator = Ed25519PrivateKey.generate()
    bundle = contract_pb2.Bundle(
        revision=1,
        endpoint=_ENDPOINT,
        sealing_keys=[
            contract_pb2.SealingKey(
                key_id=key_id(public_key),
                suite=contract_pb2.SealingSuite.ValueType(SealingSuite.X25519),
                public_key=public_key,
            )
        ],
        metrics=[metric.contract for metric in metrics],
    ).SerializeToString(deterministic=True)
    envelope = contract_pb2.SignedBundle(
        bundle=bundle, signature=operator.sign(SIGNATURE_CONTEXT + bundle)
    )
    return Bundle.verify(
        envelope.SerializeToString(deterministic=True),
        operator_key=f"ed25519:{operator.public_key().public_bytes_raw().hex()}",
    )


def _reasons() -> set[str]:
    """Everything that a Refused may say."""
    import grpc

    refusals = report_pb2.RefusalReason.keys()
    return {name.removeprefix("REFUSAL_REASON_") for name in refusals} | {
        code.name for code in grpc.StatusCode
    }
