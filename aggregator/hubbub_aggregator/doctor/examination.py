"""Everything that is looked at, in the order in which one would mend it."""

from collections.abc import Callable, Iterator
from pathlib import Path

from hubbub.bundle import Bundle
from hubbub_aggregator.doctor.archive_folder import look_at_archive
from hubbub_aggregator.doctor.bundle_file import load_bundle, look_at_bundle
from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.doctor.keys_folder import look_at_certificate, look_at_keys
from hubbub_aggregator.doctor.machine import look_at_clock, look_at_limits, look_at_python
from hubbub_aggregator.doctor.ports import Listener, look_at_ports
from hubbub_aggregator.doctor.store_file import look_at_store, store_path
from hubbub_aggregator.keys import KeysError, read_operator_key
from hubbub_aggregator.listeners import CALLS_PER_THREAD
from hubbub_aggregator.process import require_loopback_where_plaintext
from hubbub_aggregator.settings import Settings


def examine(
    path: Path | None,
    settings: Settings,
    *,
    insecure_loopback: bool,
    clock: Callable[[], float],
) -> Iterator[Finding]:
    """What `hubbub serve` would meet with the bundle at `path` and these settings."""
    yield from look_at_python()
    files = [*settings.keys.glob("*"), *([path] if path is not None else [])]
    yield from look_at_clock(clock(), files)
    yield from look_at_keys(settings.keys)
    bundle: Bundle | None = None
    if path is not None:
        loaded = load_bundle(path, settings.keys)
        if isinstance(loaded, Finding):
            yield loaded
        else:
            bundle = loaded
            yield from look_at_bundle(bundle, settings.keys, clock)
    public_tls = not insecure_loopback
    if public_tls or settings.private_tls:
        yield from look_at_certificate(settings.keys, bundle if public_tls else None, clock)
    yield from look_at_store(settings.store, _operator(settings.keys), bundle)
    yield from look_at_archive(settings.archive, store_path(settings.store))
    yield from look_at_limits(settings.threads, CALLS_PER_THREAD)
    yield from About("settings").looking(lambda: _plaintext(settings, insecure_loopback))
    yield from look_at_ports(
        _listeners(settings, public_tls=public_tls),
        bundle,
        store_path(settings.store),
        settings.archive,
    )


def _plaintext(settings: Settings, insecure_loopback: bool) -> Iterator[Finding]:
    require_loopback_where_plaintext(settings, insecure_loopback)
    yield from ()


def _listeners(settings: Settings, *, public_tls: bool) -> list[Listener]:
    listeners = [
        Listener("public", settings.listen, settings.keys if public_tls else None),
        Listener(
            "private", settings.private_listen, settings.keys if settings.private_tls else None
        ),
    ]
    if settings.metrics_listen is not None:
        listeners.append(Listener("metrics", settings.metrics_listen, None))
    return listeners


def _operator(folder: Path) -> str | None:
    try:
        return read_operator_key(folder)
    except KeysError:
        return None  # told already, of the keys
