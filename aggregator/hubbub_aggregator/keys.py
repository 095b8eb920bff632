"""The keys folder: an operator's signing key, sealing keys, a private CA and certificates.

    operator.key   Ed25519, signs bundles; only `hubbub sign` reads it
    operator.pub   one line, "ed25519:<hex>": what a device pins
    sealing-<UTC time>-<key id>.key   opens reports; the newest is what devices seal to
    ca.key ca.crt  the CA whose certificate travels in the bundle
    server.key server.crt             the listeners' certificate
    client.key client.crt             for reading a private listener that is not on loopback

Every private file is created with mode 0600; none but those of certificates is ever replaced.
"""

import datetime
import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hubbub.bundle import SealingKey, SealingSuite, key_id, operator_key_bytes
from hubbub.sealing import SUITES
from hubbub_aggregator.mistakes import Mistake
from hubbub_aggregator.whole_file import write_whole

# The CA lives as long as devices pin it; what it signs is renewed yearly, with a month to spare.
_CA_DAYS: Final = 3650
_CERTIFICATE_DAYS: Final = 397
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z)(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

_PEM_END: Final = b"-----END PRIVATE KEY-----\n"


class KeysError(Mistake):
    """A keys folder that cannot be used; the message says which file and what to do."""


@dataclass(frozen=True, slots=True)
class OpeningKey:
    """The private half of a sealing key."""

    key_id: bytes
    suite: SealingSuite
    public_key: bytes
    private: X25519PrivateKey | MLKEM768X25519PrivateKey = field(repr=False)

    def open(self, info: bytes, sealed: bytes) -> bytes | None:
        """Return the report, or None if it was not sealed to this key and context."""
        try:
            return SUITES[self.suite].decrypt(sealed, self.private, info)
        except (InvalidTag, ValueError):
            return None

    @property
    def sealing_key(self) -> SealingKey:
        """The public half, as a bundle lists it."""
        return SealingKey(self.key_id, self.suite, self.public_key)


def create_keys(folder: Path, hosts: Sequence[str], *, hybrid: bool, now: float) -> None:
    """Fill a new folder. Raises KeysError if it holds an operator's keys already."""
    _general_names(hosts)  # before anything is written
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if (folder / "operator.key").exists():
        raise KeysError(
            f"{folder} already holds an operator's keys, and devices pin them; to replace a part "
            f"use --new-sealing-key or --new-certificate"
        )
    operator = Ed25519PrivateKey.generate()
    authority = ec.generate_private_key(ec.SECP256R1())
    _write_private(folder / "operator.key", _pem(operator))
    (folder / "operator.pub").write_text(
        f"ed25519:{operator.public_key().public_bytes_raw().hex()}\n"
    )
    add_sealing_key(folder, hybrid=hybrid, now=now)
    _write_private(folder / "ca.key", _pem(authority))
    (folder / "ca.crt").write_bytes(_authority_certificate(authority, now))
    add_certificates(folder, hosts, now=now)


def add_sealing_key(folder: Path, *, hybrid: bool, now: float) -> OpeningKey:
    """Create another sealing key; from the next signing on devices seal to it."""
    pem = _pem(X25519PrivateKey.generate())
    if hybrid:
        pem = _pem(MLKEM768PrivateKey.generate()) + pem  # the order _opening_key expects
    key = _opening_key(pem)
    stamp = datetime.datetime.fromtimestamp(now, datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
    _write_private(folder / f"sealing-{stamp}-{key.key_id.hex()}.key", pem)
    return key


def add_certificates(folder: Path, hosts: Sequence[str], *, now: float) -> None:
    """Issue server.crt for these hosts and localhost, and client.crt; replaces older ones."""
    authority = _load_authority_key(folder)
    issuer = read_certificate(folder / "ca.crt").subject
    for name, sans, usage in (
        ("server", [*hosts, *_LOCAL_HOSTS], ExtendedKeyUsageOID.SERVER_AUTH),
        ("client", [], ExtendedKeyUsageOID.CLIENT_AUTH),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _certificate(f"Hubbub {name}", issuer, key, authority, now=now, days=_CERTIFICATE_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if sans:
            names = x509.SubjectAlternativeName(_general_names(dict.fromkeys(sans)))
            certificate = certificate.add_extension(names, critical=False)
        signed = certificate.sign(authority, hashes.SHA256())
        # Each whole or as it was: an aggregator that runs looks at them again and again.
        write_whole(folder / f"{name}.key", _pem(key), mode=0o600)
        write_whole(folder / f"{name}.crt", signed.public_bytes(Encoding.PEM))


def read_operator_key(folder: Path) -> str:
    """Return the line of operator.pub, "ed25519:<hex>"."""
    path = folder / "operator.pub"
    text = _read(path).decode(errors="replace").strip()
    try:
        operator_key_bytes(text)
    except ValueError as error:
        raise KeysError(f"{path}: {error}") from None
    return text


def load_signing_key(folder: Path) -> Ed25519PrivateKey:
    """Read operator.key. Only signing calls this."""
    path = folder / "operator.key"
    key = _load_private(path, _read(path))
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysError(f"{path} is not an Ed25519 private key")
    return key


def load_opening_keys(folder: Path) -> dict[bytes, OpeningKey]:
    """Read every sealing key in the folder, newest first, by key id."""
    if not folder.is_dir():
        raise KeysError(f"there is no keys folder {folder}; `hubbub keygen {folder}` makes one")
    paths = sorted(folder.glob("sealing-*.key"), reverse=True)
    if not paths:
        raise KeysError(f"{folder} holds no sealing-*.key; `hubbub keygen` makes one")
    keys = (_opening_key(_read(path), path) for path in paths)
    return {key.key_id: key for key in keys}


def read_certificate(path: Path) -> x509.Certificate:
    """Read a PEM certificate."""
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError:
        raise KeysError(f"{path} is not a PEM certificate") from None


def _opening_key(pem: bytes, path: Path = Path("sealing key")) -> OpeningKey:
    parts = [part + _PEM_END for part in pem.split(_PEM_END) if part.strip()]
    match [_load_private(path, part) for part in parts]:
        case [X25519PrivateKey() as classical]:
            public = classical.public_key().public_bytes_raw()
            return OpeningKey(key_id(public), SealingSuite.X25519, public, classical)
        case [MLKEM768PrivateKey() as lattice, X25519PrivateKey() as classical]:
            public = (
                lattice.public_key().public_bytes_raw() + classical.public_key().public_bytes_raw()
            )
            private = MLKEM768X25519PrivateKey(lattice, classical)
            return OpeningKey(key_id(public), SealingSuite.MLKEM768_X25519, public, private)
        case _:
            raise KeysError(f"{path} is not a sealing key")


def _load_private(path: Path, pem: bytes) -> object:
    try:
        return load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        raise KeysError(f"{path} is not an unencrypted PEM private key") from None


def _load_authority_key(folder: Path) -> ec.EllipticCurvePrivateKey:
    path = folder / "ca.key"
    key = _load_private(path, _read(path))
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeysError(f"{path} is not an elliptic-curve private key")
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KeysError(f"cannot read {path}: {error.strerror}") from None


def _pem(
    key: Ed25519PrivateKey | X25519PrivateKey | MLKEM768PrivateKey | ec.EllipticCurvePrivateKey,
) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _general_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            if not _HOST_NAME.fullmatch(host):
                raise KeysError(f"{host!r} is neither a host name nor an IP address") from None
            names.append(x509.DNSName(host))
    return names


def _authority_certificate(key: ec.EllipticCurvePrivateKey, now: float) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Hubbub private CA")])
    certificate = (
        _certificate("Hubbub private CA", subject, key, key, now=now, days=_CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(key_cert_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(Encoding.PEM)


def _certificate(
    name: str,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    authority: ec.EllipticCurvePrivateKey,
    *,
    now: float,
    days: int,
) -> x509.CertificateBuilder:
    """What all certificates have. Strict readers (RFC 5280) ask for both keys' identifiers."""
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    begins = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .add_extension(own, critical=False)
        .add_extension(signer, critical=False)
        .serial_number(x509.random_serial_number())
        # Devices whose clock is a little behind must not find it "not yet valid".
        .not_valid_before(begins - datetime.timedelta(days=1))
        .not_valid_after(begins + datetime.timedelta(days=days))
    )


def _key_usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
