"""A channel to the private listener, for everything that reads estimates."""

import ipaddress
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import grpc

from hubbub_aggregator.keys import KeysError
from hubbub_aggregator.mistakes import Mistake

DEFAULT_ADDRESS: Final = "localhost:7444"

# The slowest answer is an estimate of 65,536 values, well below. Seconds.
TIMEOUT: Final = 30.0

# Surrogates stand for what is typed and is no UTF-8; gRPC would raise what Python does.
_ADDRESS: Final = re.compile(
    r"(\[[^\]\ud800-\udfff]+\]|[^:/\[\]\ud800-\udfff]+):(?P<port>[0-9]{1,5})"
)
LAST_PORT: Final = 65_535

# With every refusal the aggregator sends this; what gRPC says by itself is without.
_REFUSAL: Final = "grpc-status-details-bin"

# How gRPC's core words what came of connecting: that it never came to a call is in the first two.
_OUT_OF_REACH: Final = ("failed to", "errors resolving")
_PLAINTEXT: Final = "WRONG_VERSION_NUMBER"
_OTHER_AUTHORITY: Final = "CERTIFICATE_VERIFY_FAILED"
_OTHER_NAME: Final = "Hostname Verification Check failed"
_NO_GRPC: Final = "Failed parsing HTTP/2"
_HUNG_UP: Final = ("Socket closed", "Connection reset by peer")

_OPTIONS: Final = (
    # Estimates of 65,536 values with long labels.
    ("grpc.max_receive_message_length", 64 << 20),
    # A proxy for the web, set in the environment, knows no way to this machine.
    ("grpc.enable_http_proxy", 0),
    # Else a page that outlives the aggregator would find it again only after minutes.
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


class CallFailed(Mistake):
    """A call that was refused or not answered; the message is one sentence that says why."""


class NoAnswer(CallFailed):
    """A call that was sent, it may be, and perhaps done, before the aggregator went away."""


class BadAddress(Mistake):
    """Where nobody can listen."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"an aggregator is at host:port, for example {DEFAULT_ADDRESS} or [::1]:7444, "
            f"not at {address!r}"
        )


@contextmanager
def private_listener(address: str, keys: Path | None) -> Generator[grpc.Channel]:
    """A channel for one command's calls; what goes wrong in the body becomes CallFailed."""
    with open_channel(address, keys) as channel, calling(address):
        yield channel


@contextmanager
def calling(address: str) -> Generator[None]:
    """Turn what gRPC raises in the body, about an aggregator at `address`, into CallFailed."""
    try:
        yield
    except grpc.RpcError as error:
        raise _failure(address, error) from None


def _failure(address: str, error: grpc.RpcError) -> CallFailed:
    code, details = error.code(), error.details() or ""
    if any(entry.key == _REFUSAL for entry in error.trailing_metadata() or ()):
        return CallFailed(details)
    if details.startswith(_OUT_OF_REACH):
        return CallFailed(_unreached(address, details))
    match code:
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return NoAnswer(
                f"the aggregator at {address} does not answer: it hangs, or something else "
                f"listens there"
            )
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return NoAnswer(f"the aggregator at {address} went away before it answered")
        case grpc.StatusCode.UNIMPLEMENTED:
            return CallFailed(
                f"what listens at {address} does not know this call: it is no private listener, or "
                f"that of another version"
            )
        case _:
            return NoAnswer(
                f"the aggregator at {address} answered {code.name}; its log may say why"
            )


def _unreached(address: str, details: str) -> str:
    """Why there is no connection, and what to do."""
    if _PLAINTEXT in details:
        return f"the listener at {address} speaks plaintext; leave out the keys folder"
    if _OTHER_AUTHORITY in details:
        return (
            f"the certificate of the listener at {address} is not of the keys folder's authority; "
            f"give --keys the folder of that aggregator"
        )
    if _OTHER_NAME in details:
        host = address.rpartition(":")[0].strip("[]")
        return (
            f"the certificate of the listener at {address} is for other names; use one of those, "
            f"or have one made for this: hubbub keygen KEYS --new-certificate --host {host}, with "
            f"every other --host again"
        )
    if _NO_GRPC in details:
        return f"what listens at {address} is no aggregator; give its private listener's address"
    if any(how in details for how in _HUNG_UP):
        return (
            f"what listens at {address} hangs up: it wants the --keys of its aggregator, is none, "
            f"or just ended"
        )
    return (
        f"no aggregator answers at {address}; is `hubbub serve` running, with its private "
        f"listener there, and does it want --keys?"
    )


def check_address(address: str) -> None:
    """Raises BadAddress if that is not where an aggregator could listen."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found["port"]) <= LAST_PORT:
        raise BadAddress(address)


def is_loopback(address: str) -> bool:
    """Whether host:port can be reached from this machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_channel(address: str, keys: Path | None = None) -> grpc.Channel:
    """Connect to a private listener at host:port, without waiting for it.

    With a keys folder: TLS, showing its client certificate. Raises BadAddress or KeysError.
    """
    check_address(address)
    if keys is None:
        return grpc.insecure_channel(address, _OPTIONS)
    return grpc.secure_channel(address, _client_credentials(keys), _OPTIONS)


def _client_credentials(keys: Path) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=read_pem(keys / "ca.crt"),
        private_key=read_pem(keys / "client.key"),
        certificate_chain=read_pem(keys / "client.crt"),
    )


def read_pem(path: Path) -> bytes:
    """Read a file of the keys folder. Raises KeysError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise KeysError(f"cannot read {path}: {error.strerror}") from None
