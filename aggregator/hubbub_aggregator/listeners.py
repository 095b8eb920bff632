"""The two listeners: addresses, sizes and patience, before anything is served on them.

The public one faces strangers, so whatever they can make large or long has a limit here.
"""

import resource
from concurrent import futures
from dataclasses import dataclass
from typing import Any, Final

import grpc

from hubbub.limits import MAX_MESSAGE_BYTES
from hubbub_aggregator.backlog import Backlog
from hubbub_aggregator.door import Door, Line

# A message of the largest size, with digest, round, key id and framing around it.
LARGEST_MESSAGE: Final = MAX_MESSAGE_BYTES + (64 << 10)
# What is larger than that is still read, up to here, so that whoever sent it learns why it is
# refused. gRPC refuses what is larger still, with a status that looks like an overload's.
_LARGEST_READ: Final = 8 << 20

_COMMON_OPTIONS: Final = (
    # Two aggregators that share a port by accident would each count half.
    ("grpc.so_reuseport", 0),
    ("grpc.max_metadata_size", 8 << 10),
    # Identity alone: a small compressed request must not unfold into a large one.
    ("grpc.compression_enabled_algorithms_bitset", 1),
)
PUBLIC_OPTIONS: Final = (
    *_COMMON_OPTIONS,
    ("grpc.max_receive_message_length", _LARGEST_READ),
    ("grpc.max_concurrent_streams", 100),
    # Calls that gRPC has read and not told us of yet: beyond these it cancels some, and beyond
    # those all, for next to nothing. Single reports can come faster than Python can even refuse
    # them; without this they would wait here for seconds, where nobody sees them.
    ("grpc.server.max_pending_requests", 128),
    ("grpc.server.max_pending_requests_hard_limit", 256),
    # A device connects, uploads and leaves; who stays makes room after five minutes.
    ("grpc.max_connection_age_ms", 300_000),
    ("grpc.max_connection_age_grace_ms", 30_000),
    ("grpc.max_connection_idle_ms", 60_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 300_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.server_handshake_timeout_ms", 10_000),
)
_PRIVATE_OPTIONS: Final = (
    *_COMMON_OPTIONS,
    # Weights of 65,536 values, or a thousand candidates.
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
)

# Calls that may wait for each handler thread, or be on it, before more are turned away.
CALLS_PER_THREAD: Final = 16
# The bundle and health are a moment's work, and must not stand behind reports.
SUBMIT: Final = "/hubbub.v1.ReportService/SubmitReports"
_OTHER_THREADS: Final = 4

# Connections at once, of a process that may open enough files; one more is closed as it comes. A
# device's takes about 50 kB, and ends when it has nothing more to send.
MOST_CONNECTIONS: Final = 4_096
# Files that are kept for the store, the private listener and whatever else is opened.
_OTHER_FILES: Final = 200
_FEWEST_CONNECTIONS: Final = 50

# Half of them may be taken by those who watch a metric, and a few by those who watch health; the
# rest answer everybody else.
PRIVATE_THREADS: Final = 32


class AddressTaken(Exception):
    """A port that cannot be listened on."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"cannot listen on {address}: another program does, or it is no address of this machine"
        )
        self.address = address


@dataclass(frozen=True)
class Listeners:
    """Addresses that are taken, and the servers that will answer there."""

    public: grpc.Server
    door: Door
    """Of the public one."""
    private: grpc.Server
    public_address: str
    """host:port, with the real port where 0 was asked for."""
    private_address: str
    public_tls: bool
    private_tls: bool

    @classmethod
    def take(
        cls,
        public: str,
        private: str,
        *,
        public_credentials: grpc.ServerCredentials | None,
        private_credentials: grpc.ServerCredentials | None,
        threads: int,
    ) -> "Listeners":
        """Take both addresses, and answer nobody yet. Raises AddressTaken.

        Without credentials a listener speaks plaintext. `threads` work on public calls.
        """
        door = _door(threads)
        most = ("grpc.max_allowed_incoming_connections", most_connections())
        public_server = _server(_OTHER_THREADS, (*PUBLIC_OPTIONS, most), door)
        private_server = _server(PRIVATE_THREADS, _PRIVATE_OPTIONS)
        return cls(
            public_server,
            door,
            private_server,
            _listen(public_server, public, public_credentials),
            _listen(private_server, private, private_credentials),
            public_tls=public_credentials is not None,
            private_tls=private_credentials is not None,
        )


def most_connections() -> int:
    """How many devices may be connected at once: with no file left, nobody would be served."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(_FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, files - _OTHER_FILES))


def _door(threads: int) -> Door:
    most = threads * CALLS_PER_THREAD
    reports = Line(futures.ThreadPoolExecutor(threads), Backlog(most), Backlog(most))
    backlog = Backlog(_OTHER_THREADS * CALLS_PER_THREAD)
    others = Line(futures.ThreadPoolExecutor(_OTHER_THREADS), backlog, backlog)
    return Door(lambda method: reports if method == SUBMIT else others, LARGEST_MESSAGE)


def _server(
    threads: int, options: tuple[tuple[str, Any], ...], door: Door | None = None
) -> grpc.Server:
    """Without a door, as many calls as may wait are let in, and others have no word of when."""
    return grpc.server(
        futures.ThreadPoolExecutor(threads),
        interceptors=[] if door is None else [door],
        options=options,
        maximum_concurrent_rpcs=threads * CALLS_PER_THREAD if door is None else None,
        compression=grpc.Compression.NoCompression,
    )


def _listen(server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None) -> str:
    host, _, port = address.rpartition(":")
    if host == "localhost":
        # The name has two addresses, and gRPC is content if one of them is free: the other
        # may be another aggregator's.
        host = "127.0.0.1"
    try:
        if credentials is None:
            real = server.add_insecure_port(f"{host}:{port}")
        else:
            real = server.add_secure_port(f"{host}:{port}", credentials)
    except RuntimeError:
        raise AddressTaken(address) from None
    return f"{host}:{real}"
