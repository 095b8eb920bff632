"""The ports: free, or an aggregator's, which is then asked how it is."""

import errno
import http.client
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.connection import CallFailed, calling, open_channel, read_pem
from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.status_record import instant, status_record
from hubbub_aggregator.troubles import Trouble, of_archive, of_store

_TIMEOUT: Final = 5.0

_REASONS: Final = {
    errno.EADDRNOTAVAIL: "is no address of this machine; give one that is",
    errno.EACCES: "needs a right that this user does not have; give a port from 1024 up",
}


_AGGREGATOR: Final = "aggregator"
_aggregator: Final = About(_AGGREGATOR)

_Told = Callable[[estimate_pb2.GetStatusResponse], Iterator[Finding]]
"""What there is to say of a running aggregator's status."""


class Listener(NamedTuple):
    """Where `hubbub serve` would listen."""

    name: str
    address: str
    keys: Path | None
    """For TLS; None: plaintext."""


def look_at_ports(
    listeners: list[Listener], bundle: Bundle | None, store: Path | None, archive: Path | None
) -> Iterator[Finding]:
    """And at what the aggregator that has them says of itself."""

    def told(status: estimate_pb2.GetStatusResponse) -> Iterator[Finding]:
        yield from _status(status, bundle, store)
        yield from _archive(status, archive)

    for listener in listeners:
        about = About(f"{listener.name} port")
        yield from about.looking(lambda: _look(listener, about, told))  # noqa: B023


def _look(listener: Listener, about: About, told: _Told) -> Iterator[Finding]:
    host, port = _host_and_port(listener.address)
    taken = _taken(host, port)
    if taken is None:
        yield about.ok(f"{listener.address} is free, so no aggregator runs there")
    elif taken != errno.EADDRINUSE:
        reason = _REASONS.get(taken, f"cannot be listened on ({errno.errorcode.get(taken)})")
        yield about.problem(f"{listener.address} {reason}")
    else:
        reachable = f"{_here(host)}:{port}"
        if listener.name == "metrics":
            yield _scraped(about, reachable)
        else:
            yield from _asked(listener, about, reachable, told)


def _taken(host: str, port: int) -> int | None:
    """Why the port cannot be had; it is let go again at once."""
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104  as gRPC does
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror:
        return errno.EADDRNOTAVAIL
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        # As servers do: a connection that ended a moment ago keeps no one else from the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(address)
        except OSError as error:
            return error.errno
    return None


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return ("127.0.0.1" if host == "localhost" else host.strip("[]")), int(port)


def _here(host: str) -> str:
    """Where this machine reaches a listener on `host`."""
    if host in ("::", "0.0.0.0"):  # noqa: S104
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _asked(listener: Listener, about: About, address: str, told: _Told) -> Iterator[Finding]:
    with _channel(listener, address) as channel:
        try:
            with calling(address):
                health: Any = health_pb2_grpc.HealthStub(channel)
                answer = health.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT)
        except CallFailed:
            yield about.problem(
                f"{address} is taken, and by no aggregator of this keys folder that answers; end "
                f"what runs there, or give another port"
            )
            return
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            yield about.ok(f"an aggregator serves at {address}")
        else:
            yield about.warning(
                f"the aggregator at {address} is stopping; start it again if need be"
            )
        if listener.name == "private":
            with calling(address):
                stub = estimate_pb2_grpc.AdminServiceStub(channel)
                status = stub.GetStatus(estimate_pb2.GetStatusRequest(), timeout=_TIMEOUT)
            yield from told(status)


def _channel(listener: Listener, address: str) -> grpc.Channel:
    if listener.name == "public" and listener.keys is not None:
        # The certificate is for localhost whatever else it is for.
        authority = grpc.ssl_channel_credentials(read_pem(listener.keys / "ca.crt"))
        return grpc.secure_channel(
            address, authority, (("grpc.ssl_target_name_override", "localhost"),)
        )
    return open_channel(address, listener.keys)


def _status(
    status: estimate_pb2.GetStatusResponse, bundle: Bundle | None, asked_about: Path | None
) -> Iterator[Finding]:
    """What the running aggregator says of itself that somebody has to act on."""
    store = status.store
    wrong = [_found(trouble) for trouble in of_store(status_record(status))]
    yield from wrong
    if asked_about is not None and Path(store.location) != asked_about:
        yield _aggregator.warning(
            f"it keeps reports in {store.location}, and not in {asked_about}, which was looked at; "
            f"give the same --store to both"
        )
    if bundle is not None and status.bundle.revision != bundle.revision:
        yield _aggregator.warning(
            f"revision {status.bundle.revision} is in force there, and the bundle has "
            f"{bundle.revision}; restart it with the newer one"
        )
    if not wrong:
        last = instant(store.last_commit) if store.HasField("last_commit") else "none yet"
        yield _aggregator.ok(
            f"version {status.version}, up since {instant(status.started)}, "
            f"{status.requests_waiting:,} requests waiting, last commit: {last}"
        )


def _archive(status: estimate_pb2.GetStatusResponse, asked_about: Path | None) -> Iterator[Finding]:
    """The same of its archive; of an older version's there is nothing to say."""
    archive = status.archive
    yield from map(_found, of_archive(status_record(status)))
    wanted = "" if asked_about is None else str(asked_about.absolute())
    if not status.HasField("archive") or archive.folder == wanted:
        return
    if not archive.folder:
        yield _aggregator.problem(
            f"it archives nothing, and a round that closes now cannot be archived later; restart "
            f"it with --archive {wanted}"
        )
    else:
        where = f"and not in {wanted}, which" if wanted else "which"
        yield _aggregator.warning(
            f"it archives rounds in {archive.folder}, {where} was "
            f"{'' if wanted else 'not '}looked at; give the same --archive to both"
        )


def _found(trouble: Trouble) -> Finding:
    """As findings are written: a part of a line, not a sentence of its own."""
    said = f"{trouble.what}{trouble.more}"
    return Finding(trouble.level, _AGGREGATOR, f"{said[0].lower()}{said[1:].removesuffix('.')}")


def _scraped(about: About, address: str) -> Finding:
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/metrics")
        ours = b"hubbub_build_info" in connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        ours = False
    finally:
        connection.close()
    if ours:
        return about.ok(f"an aggregator's metrics are at {address}")
    return about.problem(
        f"{address} is taken, and not by an aggregator; end what runs there, or give another port"
    )
