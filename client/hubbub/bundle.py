"""The bundle as a device checks it: signature, canonical bytes, keys, and every contract in it.

Every function here takes bytes that a stranger may have written and returns an immutable
object, or raises a BundleError that says what breaks which rule.
"""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from os import PathLike
from types import MappingProxyType
from typing import Final, NamedTuple

from hubbub import forks
from hubbub.canonical import NotCanonical, Reader
from hubbub.contract import Metric, parse_metric
from hubbub.digest import sha256
from hubbub.errors import BadSignature, InvalidContract, InvalidOperatorKey, MalformedBundle
from hubbub.limits import MAX_BUNDLE_BYTES

# What a bundle's signature covers begins with this, so that it can mean nothing else.
SIGNATURE_CONTEXT: Final = b"hubbub/v1/bundle\0"

_ENDPOINT: Final = re.compile(
    r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([1-9][0-9]{0,4})"
)
_OPERATOR_KEY: Final = re.compile(r"ed25519:[0-9a-f]{64}", re.ASCII)


class SealingSuite(IntEnum):
    """HPKE suites, by their numbers on the wire; both with HKDF-SHA256 and AES-128-GCM."""

    X25519 = 1
    MLKEM768_X25519 = 2


# X25519's public key is 32 bytes, ML-KEM-768's 1,184.
_PUBLIC_KEY_BYTES: Final = {SealingSuite.X25519: 32, SealingSuite.MLKEM768_X25519: 1_184 + 32}


class SealingKey(NamedTuple):
    """A public key that reports are sealed to."""

    key_id: bytes
    suite: SealingSuite
    public_key: bytes


class Bundle(NamedTuple):
    """A verified bundle; may be shared by any number of clients."""

    operator: str
    """The operator key whose signature it bears."""
    revision: int
    endpoint: str
    certificate_authority: bytes
    """PEM, or empty for the system's authorities."""
    sealing_keys: tuple[SealingKey, ...]
    metrics: Mapping[str, Metric]
    """By name, in the bundle's order."""
    signed: bytes
    """The SignedBundle, as received."""

    def __repr__(self) -> str:
        return f"<bundle of {self.operator[:24]}…, revision {self.revision}>"

    @classmethod
    def load(cls, path: str | PathLike[str], *, operator_key: str | Sequence[str]) -> "Bundle":
        """Read and verify a bundle file. Raises BundleError or OSError."""
        with open(path, "rb") as file:
            return cls.verify(file.read(MAX_BUNDLE_BYTES + 1), operator_key=operator_key)

    @classmethod
    def verify(cls, signed: bytes, *, operator_key: str | Sequence[str]) -> "Bundle":
        """Check signature, form, limits and every metric's privacy.

        `operator_key` is "ed25519:" and 64 hexadecimal digits, as in operator.pub; of
        several, any one may have signed. Raises BundleError.
        """
        keys = (operator_key,) if isinstance(operator_key, str) else tuple(operator_key)
        envelope = open_envelope(signed)
        operator = _signer(envelope, keys)
        content = read_bundle(envelope.bundle)
        metrics: dict[str, Metric] = {}
        for contract in content.contracts:
            metric = parse_metric(contract)
            if metric.name in metrics:
                raise InvalidContract(metric.name, "name", "is defined twice")
            metrics[metric.name] = metric
        return cls(
            operator=operator,
            revision=content.revision,
            endpoint=content.endpoint,
            certificate_authority=content.certificate_authority,
            sealing_keys=content.sealing_keys,
            metrics=MappingProxyType(metrics),
            signed=signed,
        )


class Envelope(NamedTuple):
    """A signed bundle, taken apart; nothing about it is checked yet."""

    bundle: bytes
    signature: bytes


class BundleContent(NamedTuple):
    """A bundle's fields, checked for form; its contracts are still bytes."""

    revision: int
    endpoint: str
    certificate_authority: bytes
    sealing_keys: tuple[SealingKey, ...]
    contracts: tuple[bytes, ...]


def open_envelope(signed: bytes) -> Envelope:
    """Take a SignedBundle apart. Raises MalformedBundle."""
    if len(signed) > MAX_BUNDLE_BYTES:
        raise MalformedBundle(f"larger than {MAX_BUNDLE_BYTES:,} bytes")
    try:
        reader = Reader(signed)
        envelope = Envelope(reader.octets(1), reader.octets(2))
        reader.end()
    except NotCanonical:
        raise MalformedBundle("it is not a signed bundle in its canonical form") from None
    return envelope


def read_bundle(bundle: bytes) -> BundleContent:
    """Check everything about a bundle's bytes but its metrics. Raises MalformedBundle."""
    try:
        reader = Reader(bundle)
        content = BundleContent(
            revision=reader.uint(1),
            endpoint=reader.text(2),
            certificate_authority=reader.octets(3),
            sealing_keys=tuple(_sealing_key(Reader(key)) for key in reader.each(4)),
            contracts=tuple(reader.each(5)),
        )
        reader.end()
    except NotCanonical:
        raise MalformedBundle("a bundle is not in its canonical form") from None
    if not 0 < content.revision < 1 << 63:
        raise MalformedBundle(f"revision {content.revision} is out of range")
    endpoint = _ENDPOINT.fullmatch(content.endpoint)
    if endpoint is None or int(endpoint[1]) > 65_535:
        raise MalformedBundle(f"the endpoint {content.endpoint[:80]!r} is not host:port")
    if not content.sealing_keys:
        raise MalformedBundle("it lists no sealing key, and reports are never sent unsealed")
    if len({key.key_id for key in content.sealing_keys}) < len(content.sealing_keys):
        raise MalformedBundle("it lists a sealing key twice")
    return content


def operator_key_bytes(text: str) -> bytes:
    """Return the 32 bytes of "ed25519:<64 hex digits>"; raises InvalidOperatorKey."""
    if not _OPERATOR_KEY.fullmatch(text):
        raise InvalidOperatorKey(text)
    return bytes.fromhex(text.removeprefix("ed25519:"))


def _signer(envelope: Envelope, operator_keys: Sequence[str]) -> str:
    for text in operator_keys:
        # The library loads parts of itself when they are first used, perhaps in the upload's
        # thread.
        with forks.forbidden():
            if _verifies(operator_key_bytes(text), envelope):
                return text
    raise BadSignature(operator_keys)


def _verifies(operator_key: bytes, envelope: Envelope) -> bool:
    # Imported here: an app that is handed a verified bundle never loads it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(operator_key)
    try:
        key.verify(envelope.signature, SIGNATURE_CONTEXT + envelope.bundle)
    except InvalidSignature:
        return False
    return True


def _sealing_key(reader: Reader) -> SealingKey:
    identity, suite, public_key = reader.octets(1), reader.uint(2), reader.octets(3)
    reader.end()
    if suite not in _PUBLIC_KEY_BYTES:
        raise MalformedBundle(f"sealing suite {suite} is unknown to this version")
    key = SealingKey(identity, SealingSuite(suite), public_key)
    if len(public_key) != _PUBLIC_KEY_BYTES[key.suite]:
        raise MalformedBundle("a sealing key is not of its suite's length")
    if identity != key_id(public_key):
        raise MalformedBundle("a sealing key's id does not belong to it")
    return key


def key_id(public_key: bytes) -> bytes:
    """The first 8 bytes of the SHA-256 of a sealing key."""
    return sha256(public_key)[:8]
