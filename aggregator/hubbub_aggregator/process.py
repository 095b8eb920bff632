"""The `hubbub serve` process: what is checked before anybody is answered, and its end."""

import secrets
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

import grpc
from google.protobuf.internal import api_implementation

from hubbub.bundle import Bundle
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.connection import is_loopback, read_pem
from hubbub_aggregator.counters import in_words
from hubbub_aggregator.keys import (
    OpeningKey,
    load_opening_keys,
    read_certificate,
    read_operator_key,
)
from hubbub_aggregator.listeners import AddressTaken, Listeners
from hubbub_aggregator.opening import OpeningPool
from hubbub_aggregator.server import Aggregator
from hubbub_aggregator.settings import Settings
from hubbub_aggregator.store import Store, StoreError

# How long calls in hand may take after SIGTERM, seconds; a commit takes a fraction of one.
_GRACE: Final = 10.0

# How often to look whether to stop, seconds.
_LOOK: Final = 0.5

_EXPIRY_WARNING_DAYS: Final = 30


def run(
    path: Path, settings: Settings, *, insecure_loopback: bool, clock: Callable[[], float]
) -> None:
    """Serve the bundle at `path` until SIGTERM or SIGINT.

    Raises CommandError, BundleError or KeysError if anything is not as it must be.
    """
    _require_upb()
    bundle = Bundle.load(path, operator_key=read_operator_key(settings.keys))
    keys = _opening_keys(bundle, settings.keys)
    try:
        # The addresses before the store: a second aggregator, started by mistake, must not
        # put its bundle in force under the one that runs.
        listeners = _take_addresses(settings, insecure_loopback, clock())
        step = settings.publish.step
        with (
            closing(Store(settings.store, writer=secrets.randbits(63), publish_step=step)) as store,
            ExitStack() as stack,
        ):
            store.adopt(bundle)
            store.load_open_rounds()
            pool = None
            if settings.workers:
                pool = stack.enter_context(closing(OpeningPool(settings.keys, settings.workers)))
            aggregator = Aggregator(
                bundle,
                keys,
                store,
                listeners,
                clock=clock,
                publish_step=step,
                take_plain=settings.take_plain,
                pool=pool,
            )
            _introduce(bundle, listeners, store)
            if not insecure_loopback or settings.private_tls:
                _say(_expiry(settings.keys, clock()))
            _serve_until_told(aggregator)
    except (AddressTaken, StoreError) as error:
        raise CommandError(str(error)) from None


def _serve_until_told(aggregator: Aggregator) -> None:
    stop = _stop_signal()
    aggregator.start()
    _say("ready")
    # Not for ever at once: where the system hands the signal to another thread, or just before
    # this one sleeps, nothing would wake it to look.
    while not stop.wait(_LOOK):
        pass
    aggregator.drain(_GRACE)
    _say(f"stopped; in this run: {in_words(aggregator.counters.totals())}")


def _take_addresses(settings: Settings, insecure_loopback: bool, now: float) -> Listeners:
    return Listeners.take(
        settings.listen,
        settings.private_listen,
        public_credentials=_public_credentials(settings, now, insecure_loopback),
        private_credentials=_private_credentials(settings, now),
        threads=settings.threads,
    )


def _introduce(bundle: Bundle, listeners: Listeners, store: Store) -> None:
    _say(f"public   {listeners.public_address}")
    _say(f"private  {listeners.private_address}")
    for metric in bundle.metrics.values():
        digest = metric.digest.hex()[:16]
        _say(f"metric   {metric.name}  digest {digest}…  ε = {metric.epsilon.text}")
    _say(f"store    {store.location}")


def _say(line: str) -> None:
    # Flushed, so that whoever started this process can read its ports and wait for "ready".
    print(line, flush=True)


def _stop_signal() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()

    def set_it(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, set_it)
    signal.signal(signal.SIGINT, set_it)
    return stop


def _require_upb() -> None:
    # The pure-Python parser can be driven into endless recursion by a few bytes.
    if api_implementation.Type() != "upb":
        raise CommandError(
            "protobuf runs without its compiled parser here, which is not safe to face strangers "
            "with; unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION or install a protobuf wheel"
        )


def _opening_keys(bundle: Bundle, folder: Path) -> dict[bytes, OpeningKey]:
    """The folder's sealing keys, which must be exactly those that the bundle lists."""
    held = load_opening_keys(folder)
    listed = {key.key_id for key in bundle.sealing_keys}
    for key_id in listed - held.keys():
        raise CommandError(
            f"the bundle lists sealing key {key_id.hex()}, but {folder} does not hold it, so its "
            f"reports could not be opened; put it there or sign again without it"
        )
    for key_id in held.keys() - listed:
        raise CommandError(
            f"{folder} holds sealing key {key_id.hex()}, which the bundle does not list; sign "
            f"again to list it, or move its file away"
        )
    return held


def _public_credentials(
    settings: Settings, now: float, insecure_loopback: bool
) -> grpc.ServerCredentials | None:
    if insecure_loopback:
        if not is_loopback(settings.listen):
            raise CommandError(
                f"--insecure-loopback needs a loopback address to listen on, "
                f"not {settings.listen}; try --listen 127.0.0.1:7443"
            )
        return None
    _require_valid(settings.keys / "server.crt", now)
    return grpc.ssl_server_credentials([_server_pair(settings.keys)])


def _private_credentials(settings: Settings, now: float) -> grpc.ServerCredentials | None:
    if not settings.private_tls:
        if not is_loopback(settings.private_listen):
            raise CommandError(
                f"the private listener on {settings.private_listen} would let anybody read "
                f"estimates and close rounds; add --private-tls or use a loopback address"
            )
        return None
    _require_valid(settings.keys / "server.crt", now)
    return grpc.ssl_server_credentials(
        [_server_pair(settings.keys)],
        root_certificates=read_pem(settings.keys / "ca.crt"),
        require_client_auth=True,
    )


def _server_pair(keys: Path) -> tuple[bytes, bytes]:
    return read_pem(keys / "server.key"), read_pem(keys / "server.crt")


def _require_valid(path: Path, now: float) -> None:
    expires = read_certificate(path).not_valid_after_utc
    if expires.timestamp() <= now:
        raise CommandError(
            f"{path} expired on {expires:%Y-%m-%d}; "
            f"`hubbub keygen {path.parent} --new-certificate` renews it"
        )


def _expiry(keys: Path, now: float) -> str:
    expires = read_certificate(keys / "server.crt").not_valid_after_utc
    days = (expires - datetime.fromtimestamp(now, UTC)).days
    line = f"certificate  until {expires:%Y-%m-%d} ({days} days)"
    if days < _EXPIRY_WARNING_DAYS:
        line += f"; renew it soon: hubbub keygen {keys} --new-certificate"
    return line
