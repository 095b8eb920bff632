"""Digests, which name a contract everywhere but to people."""


def sha256(data: bytes) -> bytes:
    """The SHA-256 of data: 32 bytes."""
    # Not hashlib, which would bring a second OpenSSL, 4 MB, into the device's memory.
    from cryptography.hazmat.primitives.hashes import SHA256, Hash

    digest = Hash(SHA256())
    digest.update(data)
    return digest.finalize()
