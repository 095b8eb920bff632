"""The `hubbub serve` process: what is checked before anybody is answered, and its end."""

import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

import grpc
from google.protobuf.internal import api_implementation

from hubbub.bundle import Bundle
from hubbub_aggregator.archive.errors import require_libraries
from hubbub_aggregator.archive.writing import Archive
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.connection import is_loopback, read_pem
from hubbub_aggregator.counters import in_words
from hubbub_aggregator.exporter import Exporter, StatusCollector
from hubbub_aggregator.keys import (
    OpeningKey,
    load_opening_keys,
    read_certificate,
    read_operator_key,
)
from hubbub_aggregator.listeners import AddressTaken, Listeners
from hubbub_aggregator.logs import Speaker
from hubbub_aggregator.opening_pool import OpeningPool
from hubbub_aggregator.server import Aggregator
from hubbub_aggregator.services.status import ListenerInfo
from hubbub_aggregator.settings import Settings
from hubbub_aggregator.store import Store, StoreError
from hubbub_aggregator.tls import ServerCertificate
from hubbub_aggregator.troubles import WARNING_DAYS

# How long calls in hand may take after SIGTERM, seconds; a commit takes a fraction of one.
GRACE: Final = 10.0

# How often to look whether to stop, seconds.
_LOOK: Final = 0.5

# How long a thread that computes may keep the interpreter to itself when others want it, seconds.
# gRPC's thread wants it for a moment with every event of every call, some six times even for one
# that is turned away; at Python's 5 ms each, under load, calls would wait in front of it, where
# nobody sees them.
_SWITCH: Final = 0.0002


def run(
    path: Path, settings: Settings, *, insecure_loopback: bool, clock: Callable[[], float]
) -> None:
    """Serve the bundle at `path` until SIGTERM or SIGINT.

    Raises CommandError, BundleError or KeysError if anything is not as it must be.
    """
    _require_upb()
    sys.setswitchinterval(_SWITCH)
    bundle = Bundle.load(path, operator_key=read_operator_key(settings.keys))
    keys = opening_keys(bundle, settings.keys)
    certificate = _certificate(settings, insecure_loopback, clock)
    speaker = Speaker(settings.log_format)
    try:
        with ExitStack() as stack:
            # The addresses before the store: a second aggregator, started by mistake, must not
            # put its bundle in force under the one that runs.
            exporter = _exporter(settings, stack)
            listeners = _take_addresses(settings, certificate, insecure_loopback)
            archive = _archive(settings)
            step = settings.publish.step
            store = stack.enter_context(
                closing(Store(settings.store, writer=secrets.randbits(63), publish_step=step))
            )
            store.adopt(bundle, now=clock())
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
                certificate=certificate,
                take_plain=settings.take_plain,
                pool=pool,
                archive=archive,
            )
            if exporter is not None:
                _export(exporter, aggregator)
                # Before the store is closed, which a scrape would open again.
                stack.callback(exporter.close)
            _introduce(bundle, aggregator, store, speaker)
            if archive is not None:
                where = str(archive.folder)
                speaker.say("archive", f"archive  {where}", location=where)
            if certificate is not None:
                _say_expiry(certificate.expires(), clock(), settings.keys, speaker)
            _serve_until_told(aggregator, settings, certificate, speaker)
    except (AddressTaken, StoreError) as error:
        raise CommandError(str(error)) from None


def _serve_until_told(
    aggregator: Aggregator,
    settings: Settings,
    certificate: ServerCertificate | None,
    speaker: Speaker,
) -> None:
    stop = _obey_signals(certificate)
    aggregator.start()
    speaker.say("ready", "ready")
    # Not for ever at once: where the system hands the signal to another thread, or just before
    # this one sleeps, nothing would wake it to look.
    while not stop.asked.wait(_LOOK):
        pass
    aggregator.drain(GRACE, lame_duck=settings.lame_duck, at_once=stop.at_once)
    totals = aggregator.counters.totals()
    speaker.say("stopped", f"stopped; in this run: {in_words(totals)}", totals=totals)


def _take_addresses(
    settings: Settings, certificate: ServerCertificate | None, insecure_loopback: bool
) -> Listeners:
    return Listeners.take(
        settings.listen,
        settings.private_listen,
        public_credentials=_public_credentials(certificate, insecure_loopback),
        private_credentials=_private_credentials(settings, certificate),
        threads=settings.threads,
    )


def _archive(settings: Settings) -> Archive | None:
    """Raises ArchiveError: not when the first round closes."""
    if settings.archive is None:
        return None
    require_libraries()
    return Archive(settings.archive)


def _exporter(settings: Settings, stack: ExitStack) -> Exporter | None:
    """Takes its address, if it has one, until the `stack` ends at the latest."""
    if settings.metrics_listen is None:
        return None
    return stack.enter_context(closing(Exporter(settings.metrics_listen)))


def _export(exporter: Exporter, aggregator: Aggregator) -> None:
    board = aggregator.board
    board.listeners = [*board.listeners, ListenerInfo("metrics", exporter.address, tls=False)]
    exporter.show(StatusCollector(board.status, aggregator.observations))


def _introduce(bundle: Bundle, aggregator: Aggregator, store: Store, speaker: Speaker) -> None:
    for known in aggregator.board.listeners:
        speaker.say(
            "listening",
            f"{known.name:8} {known.address}",
            listener=known.name,
            address=known.address,
            tls=known.tls,
        )
    for metric in bundle.metrics.values():
        digest, epsilon = metric.digest.hex(), metric.epsilon.text
        speaker.say(
            "metric",
            f"metric   {metric.name}  digest {digest[:16]}…  ε = {epsilon}",
            metric=metric.name,
            digest=digest,
            epsilon=epsilon,
        )
    speaker.say("store", f"store    {store.location}", location=store.location)


def _say_expiry(timestamp: float, now: float, keys: Path, speaker: Speaker) -> None:
    expires = datetime.fromtimestamp(timestamp, UTC)
    days = (expires - datetime.fromtimestamp(now, UTC)).days
    line = f"certificate  until {expires:%Y-%m-%d} ({days} days)"
    if days < WARNING_DAYS:
        line += f"; renew it soon: hubbub keygen {keys} --new-certificate"
    speaker.say("certificate", line, expires=f"{expires:%Y-%m-%dT%H:%M:%SZ}", days=days)


@dataclass(frozen=True, slots=True)
class _Stop:
    """What signals have asked for."""

    asked: threading.Event = field(default_factory=threading.Event)
    at_once: threading.Event = field(default_factory=threading.Event)
    """Without a lame duck's time."""


def _obey_signals(certificate: ServerCertificate | None) -> _Stop:
    """SIGTERM asks for the end, a second one hurries it, and so does SIGINT; SIGHUP reads again.

    But a terminal that closes sends SIGHUP too, and then nobody would know of what runs on.
    Handlers only set flags: they run in whatever the main thread is doing.
    """
    stop = _Stop()

    def end(number: int, _frame: FrameType | None) -> None:
        # Ctrl-C comes from a terminal, behind which there is no load balancer.
        if stop.asked.is_set() or number != signal.SIGTERM:
            stop.at_once.set()
        stop.asked.set()

    def read_again(_number: int, _frame: FrameType | None) -> None:
        if certificate is not None:
            certificate.read_again()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    # nohup has it ignored, and so it stays.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, end if os.isatty(0) else read_again)
    return stop


def _require_upb() -> None:
    # The pure-Python parser can be driven into endless recursion by a few bytes.
    if api_implementation.Type() != "upb":
        raise CommandError(
            "protobuf runs without its compiled parser here, which is not safe to face strangers "
            "with; unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION or install a protobuf wheel"
        )


def opening_keys(bundle: Bundle, folder: Path) -> dict[bytes, OpeningKey]:
    """The folder's sealing keys, which must be exactly those that the bundle lists.

    Raises CommandError or KeysError.
    """
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


def _certificate(
    settings: Settings, insecure_loopback: bool, clock: Callable[[], float]
) -> ServerCertificate | None:
    """What the listeners that speak TLS show; None: none does. Raises CommandError or KeysError."""
    require_loopback_where_plaintext(settings, insecure_loopback)
    if insecure_loopback and not settings.private_tls:
        return None
    require_valid(settings.keys / "server.crt", clock())
    return ServerCertificate(settings.keys, clock)


def require_loopback_where_plaintext(settings: Settings, insecure_loopback: bool) -> None:
    if insecure_loopback and not is_loopback(settings.listen):
        raise CommandError(
            f"--insecure-loopback needs a loopback address to listen on, "
            f"not {settings.listen}; try --listen 127.0.0.1:7443"
        )
    if not settings.private_tls and not is_loopback(settings.private_listen):
        raise CommandError(
            f"the private listener on {settings.private_listen} would let anybody read "
            f"estimates and close rounds; add --private-tls or use a loopback address"
        )


def _public_credentials(
    certificate: ServerCertificate | None, insecure_loopback: bool
) -> grpc.ServerCredentials | None:
    if certificate is None or insecure_loopback:
        return None
    return certificate.credentials()


def _private_credentials(
    settings: Settings, certificate: ServerCertificate | None
) -> grpc.ServerCredentials | None:
    if certificate is None or not settings.private_tls:
        return None
    return certificate.credentials(client_authority=read_pem(settings.keys / "ca.crt"))


def require_valid(path: Path, now: float) -> None:
    """Raises CommandError for a certificate that has expired, KeysError for none."""
    expires = read_certificate(path).not_valid_after_utc
    if expires.timestamp() <= now:
        raise CommandError(
            f"{path} expired on {expires:%Y-%m-%d}; "
            f"`hubbub keygen {path.parent} --new-certificate` renews it"
        )
