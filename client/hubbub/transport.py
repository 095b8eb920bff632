"""The way to the aggregator: one gRPC channel, TLS only. May be shared by many clients.

gRPC is loaded when the first report leaves, never before.
"""

import os
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from hubbub import background, forks
from hubbub.canonical import NotCanonical, Reader

if TYPE_CHECKING:
    import grpc

_OPTIONS: Final = (
    # The ledger is what retries: a second, hidden retry would only blur its account.
    ("grpc.enable_retries", 0),
    # A channel of our own, so that a host program's other channels never share our socket.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.primary_user_agent", "hubbub"),
)

# Seconds that a fork waits at most for a call that was given up, and for gRPC's threads to end,
# each; milliseconds, as a rule.
_FORK_PATIENCE: Final = 0.5

# Trailing metadata with an encoded google.rpc.Status, and which of its details we read.
_DETAILS_KEY: Final = "grpc-status-details-bin"
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"
_REASON_LETTERS: Final = 63
_REASON_PREFIX: Final = "REFUSAL_REASON_"


def is_loopback(destination: str) -> bool:
    """Whether host:port names this very machine."""
    return destination.rpartition(":")[0] in ("localhost", "127.0.0.1", "[::1]")


class Refused(Exception):
    """The aggregator, or the way to it, did not take a report."""

    def __init__(self, reason: str, pushback: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        """A RefusalReason's name ("ROUND_CLOSED") or a gRPC status code's ("UNAVAILABLE")."""
        self.pushback = pushback
        """Seconds to wait at least before trying again."""


class Transport(Protocol):
    """Whatever can carry a sealed report to an aggregator."""

    @property
    def destination(self) -> str:
        """host:port, for the ledger's account of where reports went."""
        ...

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        """Send sealed reports; return a ReportStatus for each. Raises Refused."""
        ...

    def fetch_bundle(self, timeout: float) -> bytes:
        """The SignedBundle that the aggregator has in force. Raises Refused."""
        ...

    def close(self) -> None:
        """Give up what is under way, and the connection."""
        ...


class GrpcTransport:
    """A TLS channel to the public listener, connected at the first use."""

    def __init__(self, endpoint: str, certificate_authority: bytes = b"") -> None:
        """`certificate_authority` is PEM; empty: the system's authorities."""
        self.destination = endpoint
        self._certificate_authority = certificate_authority
        # For the channel; re-entrant for the sake of signal handlers.
        self._lock = threading.RLock()
        self._closed = False
        self._channel: grpc.Channel | None = None
        # Threads that were neither Python's nor gRPC's, when gRPC had not been used yet.
        self._others: set[str] | None = None
        self._calls = 0
        self._call_ended = threading.Condition(self._lock)
        forks.watch(self, self._lock, GrpcTransport._after_fork, GrpcTransport._before_fork)

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        with forks.forbidden():
            from hubbub.v1 import report_pb2, report_pb2_grpc

        request = report_pb2.SubmitReportsRequest(
            digest=digest, round=round_number, key_id=key_id, sealed=sealed
        )
        with self._call() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            return stub.SubmitReports(request, timeout=timeout).statuses

    def fetch_bundle(self, timeout: float) -> bytes:
        with forks.forbidden():
            from hubbub.v1 import report_pb2, report_pb2_grpc

        with self._call() as channel:
            stub = report_pb2_grpc.CatalogServiceStub(channel)
            answer = stub.GetBundle(report_pb2.GetBundleRequest(), timeout=timeout)
        return answer.signed_bundle.SerializeToString(deterministic=True)

    def move(self, endpoint: str, certificate_authority: bytes) -> None:
        """Go on at another endpoint, with another authority."""
        with self._lock:
            self.destination = endpoint
            self._certificate_authority = certificate_authority
        self.disconnect()

    def disconnect(self) -> None:
        """Give up what is under way, and the connection; the next report connects anew."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()
                self._channel = None

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.disconnect()

    def _before_fork(self) -> None:
        """Give up what is under way, and gRPC with it: a copy of it at work aborts, or hangs."""
        if self._others is None:
            return
        self.disconnect()
        # Not for ever: the call may be this very thread's, if a signal's handler forks.
        self._call_ended.wait_for(lambda: not self._calls, _FORK_PATIENCE)
        # Its threads end a little after its last channel.
        deadline = time.monotonic() + _FORK_PATIENCE
        while not native_threads() <= self._others and time.monotonic() < deadline:
            time.sleep(0.001)

    def _after_fork(self) -> None:
        """The channel's threads, and its calls, stayed in the parent."""
        self._channel = None
        self._calls = 0

    @contextmanager
    def _call(self) -> Generator["grpc.Channel"]:
        """The channel, for one call in the body. Raises Refused."""
        # No call begins while the process is being copied.
        with forks.forbidden(), self._lock:
            channel = self._connected()
            self._calls += 1
        try:
            with _refusals():
                yield channel
        finally:
            with self._lock:
                self._calls -= 1
                self._call_ended.notify_all()

    def _connected(self) -> "grpc.Channel":
        import grpc

        with self._lock:
            if self._closed:
                raise Refused("CLOSED")
            if self._channel is None:
                credentials = grpc.ssl_channel_credentials(self._certificate_authority or None)
                # A proxy for the web, set in the environment, knows no way to this machine.
                proxy = ("grpc.enable_http_proxy", int(not is_loopback(self.destination)))
                options = (*_OPTIONS, proxy)
                if self._others is None:
                    self._others = native_threads()
                # It starts threads of its own.
                with background.without_signals():
                    self._channel = grpc.secure_channel(self.destination, credentials, options)
            return self._channel


def native_threads() -> set[str]:
    """The threads that Python did not start, by number; none where the system lists none."""
    try:
        threads = set(os.listdir("/proc/self/task"))
    except OSError:
        return set()
    return threads - {str(thread.native_id) for thread in threading.enumerate()}


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what gRPC raises in the body into a Refused."""
    import grpc

    try:
        yield
    except grpc.RpcError as error:
        raise _refused(error) from None
    except ValueError:
        raise Refused("CLOSED") from None


def _refused(error: "grpc.RpcError") -> Refused:
    """What the aggregator said about its refusal; else what gRPC says."""
    metadata = {item.key: item.value for item in error.trailing_metadata() or ()}
    try:
        # gRPC gives keys that end in "-bin" as bytes.
        reason, pushback = _details(metadata.get(_DETAILS_KEY, b""))
    except NotCanonical:
        reason, pushback = "", 0.0
    return Refused(reason or error.code().name, pushback)


def _known(reason: str) -> str:
    """A name as ErrorInfo has it; "" for what is none, and might be meant for the app's log."""
    letters = reason.replace("_", "")
    named = letters.isascii() and letters.isalnum() and reason.isupper()
    return reason if named and len(reason) <= _REASON_LETTERS else ""


def _details(status: bytes) -> tuple[str, float]:
    """Reason ("" if there is none) and seconds to wait, from an encoded google.rpc.Status.

    Its messages are in no package that a device has, and five of their fields are all we need.
    """
    reader = Reader(status)
    reader.uint(1)
    reader.text(2)
    reason, pushback = "", 0.0
    for packed in reader.each(3):
        detail = Reader(packed)
        kind, content = detail.text(1), Reader(detail.octets(2))
        if kind == _ERROR_INFO:
            reason = _known(content.text(1).removeprefix(_REASON_PREFIX))
        elif kind == _RETRY_INFO:
            delay = content.message(1)
            pushback = 0.0 if delay is None else delay.uint(1) + delay.uint(2) / 1e9
    return reason, pushback
