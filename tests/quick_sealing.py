"""Sealing by the thousand: one encapsulation for all reports of a round, which no device may do.

To open them takes as long as to open any. It is HPKE (RFC 9180, base mode) up to its first
message, taken again and again, so that who sends a flood is not busier than who receives it.
"""

import hmac
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hubbub.bundle import Bundle
from hubbub.sealing import context

_KEM: Final = b"KEM\x00\x20"
_SUITE: Final = b"HPKE\x00\x20\x00\x01\x00\x01"
_BASE_MODE: Final = b"\0"


class QuickSealer:
    """Seals reports of one metric and round to a bundle's first key, an X25519 one."""

    def __init__(self, bundle: Bundle, metric: str, round_number: int) -> None:
        key = bundle.sealing_keys[0]
        ephemeral = X25519PrivateKey.generate()
        self._encapsulated = ephemeral.public_key().public_bytes_raw()
        shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(key.public_key))
        both = self._encapsulated + key.public_key
        secret = _expand(_KEM, _extract(_KEM, b"", b"eae_prk", shared), b"shared_secret", both, 32)
        info = context(bundle.metrics[metric].digest, round_number, key.key_id)
        scheduled = (
            _BASE_MODE
            + _extract(_SUITE, b"", b"psk_id_hash", b"")
            + _extract(_SUITE, b"", b"info_hash", info)
        )
        secret = _extract(_SUITE, secret, b"secret", b"")
        self._cipher = AESGCM(_expand(_SUITE, secret, b"key", scheduled, 16))
        self._nonce = _expand(_SUITE, secret, b"base_nonce", scheduled, 12)

    def seal(self, report: bytes) -> bytes:
        """Seal report id ‖ payload."""
        return self._encapsulated + self._cipher.encrypt(self._nonce, report, None)


def _extract(suite: bytes, salt: bytes, label: bytes, key: bytes) -> bytes:
    return hmac.digest(salt, b"HPKE-v1" + suite + label + key, "sha256")


def _expand(suite: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    """One block of HKDF: `size` is at most 32."""
    labelled = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(secret, labelled + b"\x01", "sha256")[:size]
