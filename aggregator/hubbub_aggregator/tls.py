"""The listeners' certificate, which may be renewed while they listen.

Files are looked at when somebody connects, and by the ticker, so that a renewal is told and a
fault in one is logged though nobody comes. What does not fit together changes nothing.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from hubbub_aggregator.connection import read_pem
from hubbub_aggregator.keys import KeysError

_log = logging.getLogger(__name__)

# Key and certificate are two files, and are never renewed at the same instant. Seconds.
_PATIENCE: Final = 2.0

_Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class ServerPair:
    """A private key and its certificate, which belong together."""

    key: bytes
    certificate: bytes
    expires: float
    """Seconds since 1970-01-01 UTC."""

    @classmethod
    def read(cls, folder: Path) -> "ServerPair":
        """From server.key and server.crt. Raises KeysError."""
        key, certificate = read_pem(folder / "server.key"), read_pem(folder / "server.crt")
        try:
            parsed = x509.load_pem_x509_certificate(certificate)
            public = load_pem_private_key(key, password=None).public_key()
            fit = _bytes(public) == _bytes(parsed.public_key())
        except (ValueError, TypeError, AttributeError, UnsupportedAlgorithm):
            raise KeysError(
                f"{folder}/server.key or server.crt is not whole; "
                f"`hubbub keygen {folder} --new-certificate` makes both"
            ) from None
        if not fit:
            raise KeysError(
                f"{folder}/server.crt is not the certificate of server.key; "
                f"`hubbub keygen {folder} --new-certificate` makes both"
            )
        return cls(key, certificate, parsed.not_valid_after_utc.timestamp())


class ServerCertificate:
    """The newest pair that fits together. Safe to use from many threads."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        """Raises KeysError if there is no such pair."""
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._seen = self._stamp()
        self._pair = ServerPair.read(folder)
        self._faulty_since: float | None = None
        self._told: str | None = None
        self._again = False

    def expires(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        return self._pair.expires

    def read_again(self) -> None:
        """At the next look, whatever the files' times say. For signal handlers."""
        self._again = True

    def look(self) -> ServerPair:
        """Read the files if they changed; the pair in force."""
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen or self._again:
                self._again = False
                self._read(stamp)
            return self._pair

    def _read(self, stamp: _Stamp) -> None:
        try:
            pair = ServerPair.read(self._folder)
            if pair.expires <= self._clock():
                raise KeysError(
                    f"{self._folder}/server.crt has expired already; "
                    f"`hubbub keygen {self._folder} --new-certificate` renews it"
                )
        except KeysError as error:
            self._keep(str(error))
            return
        renewed = pair != self._pair
        self._seen, self._pair, self._faulty_since, self._told = stamp, pair, None, None
        if renewed:
            _log.info(
                "new connections get the new certificate, until %s",
                time.strftime("%Y-%m-%d", time.gmtime(pair.expires)),
                extra={"event": "certificate_renewed"},
            )

    def _keep(self, fault: str) -> None:
        """What was seen is not remembered: the next look reads again, and it may be whole then."""
        now = time.monotonic()
        self._faulty_since = self._faulty_since or now
        if now - self._faulty_since >= _PATIENCE and fault != self._told:
            self._told = fault
            _log.error(
                "the old certificate stays in use: %s", fault, extra={"event": "certificate_kept"}
            )

    def _stamp(self) -> _Stamp:
        return tuple(_stamp(self._folder / name) for name in ("server.key", "server.crt"))

    def credentials(self, *, client_authority: bytes | None = None) -> grpc.ServerCredentials:
        """For one listener: every new connection gets the newest pair.

        With an authority's certificate, clients must show one that it signed.
        """
        given = self.look()

        def configuration(pair: ServerPair) -> grpc.ServerCertificateConfiguration:
            return grpc.ssl_server_certificate_configuration(
                [(pair.key, pair.certificate)], client_authority
            )

        def newest() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            pair = self.look()
            if pair is given:
                return None
            given = pair
            return configuration(pair)

        # None means that the last one holds, which the types of grpc do not say.
        return grpc.dynamic_ssl_server_credentials(
            configuration(given),
            cast(Any, newest),
            require_client_authentication=client_authority is not None,
        )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes with a file's content; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _bytes(public: Any) -> bytes:
    """Raises AttributeError for what has no such form."""
    form: bytes = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return form
