"""Sealing: HPKE (RFC 9180, base mode) of a report to the aggregator's key.

The context names metric, round and key, so a sealed report opens nowhere else. The library
does the cryptography; this file only says what is bound to what.
"""

from typing import Final

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PublicKey,
    Suite,
)

from hubbub import forks
from hubbub.bundle import SealingKey, SealingSuite

_CONTEXT: Final = b"hubbub/v1/report\0"
_VERSION: Final = b"\x01"
_AEAD_TAG_BYTES: Final = 16
_MLKEM768_BYTES: Final = 1_184

SUITES: Final[dict[SealingSuite, Suite]] = {
    SealingSuite.X25519: Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM),
    SealingSuite.MLKEM768_X25519: Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM),
}
# What each suite puts before the ciphertext: an X25519 point, an ML-KEM-768 ciphertext.
_ENCAPSULATION_BYTES: Final[dict[SealingSuite, int]] = {
    SealingSuite.X25519: 32,
    SealingSuite.MLKEM768_X25519: 1_088 + 32,
}


def context(digest: bytes, round_number: int, key_id: bytes) -> bytes:
    """HPKE's `info`: what a sealed report is for. `digest` is 32 bytes, `key_id` 8."""
    return _CONTEXT + _VERSION + digest + round_number.to_bytes(8, "big") + key_id


def overhead(suite: SealingSuite) -> int:
    """How many bytes longer a sealed report is than its plaintext."""
    return _ENCAPSULATION_BYTES[suite] + _AEAD_TAG_BYTES


def seal(key: SealingKey, digest: bytes, round_number: int, report: bytes) -> bytes:
    """Seal report id ‖ payload. Two calls never give the same bytes."""
    info = context(digest, round_number, key.key_id)
    # The library loads parts of itself when they are first used.
    with forks.forbidden():
        return SUITES[key.suite].encrypt(report, _public_key(key), info)


def _public_key(key: SealingKey) -> X25519PublicKey | MLKEM768X25519PublicKey:
    if key.suite == SealingSuite.X25519:
        return X25519PublicKey.from_public_bytes(key.public_key)
    return MLKEM768X25519PublicKey(
        MLKEM768PublicKey.from_public_bytes(key.public_key[:_MLKEM768_BYTES]),
        X25519PublicKey.from_public_bytes(key.public_key[_MLKEM768_BYTES:]),
    )
