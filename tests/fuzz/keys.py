"""Keys that are the same in every run, so that what is signed and sealed in a corpus stays good."""

import contextlib
from collections.abc import Generator

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey

from hubbub import bundle
from hubbub.bundle import SIGNATURE_CONTEXT, SealingSuite, key_id
from hubbub.v1 import contract_pb2
from hubbub_aggregator.keys import OpeningKey

_SIGNING = Ed25519PrivateKey.from_private_bytes(b"a fuzzer's signing key, not yours"[:32])
OPERATOR = f"ed25519:{_SIGNING.public_key().public_bytes_raw().hex()}"


def sign(content: bytes, *, really: bool = True) -> bytes:
    """A SignedBundle; checks nothing."""
    signature = _SIGNING.sign(SIGNATURE_CONTEXT + content) if really else b"not checked"
    envelope = contract_pb2.SignedBundle(bundle=content, signature=signature)
    return envelope.SerializeToString(deterministic=True)


@contextlib.contextmanager
def any_signature() -> Generator[None]:
    """While it lasts, any signature is good."""
    checked = bundle._verifies
    bundle._verifies = lambda operator_key, envelope: True
    try:
        yield
    finally:
        bundle._verifies = checked


def _opening_keys() -> list[OpeningKey]:
    classical = X25519PrivateKey.from_private_bytes(b"a fuzzer's sealing key, not yours"[:32])
    lattice = MLKEM768PrivateKey.from_seed_bytes(b"a fuzzer's " * 5 + b"lattice k")
    point = classical.public_key().public_bytes_raw()
    hybrid = lattice.public_key().public_bytes_raw() + point
    return [
        OpeningKey(key_id(point), SealingSuite.X25519, point, classical),
        OpeningKey(
            key_id(hybrid),
            SealingSuite.MLKEM768_X25519,
            hybrid,
            MLKEM768X25519PrivateKey(lattice, classical),
        ),
    ]


OPENING = _opening_keys()


def sealing_keys() -> list[contract_pb2.SealingKey]:
    """Their public halves, as a bundle lists them."""
    return [
        contract_pb2.SealingKey(
            key_id=key.key_id,
            suite=contract_pb2.SealingSuite.ValueType(key.suite),
            public_key=key.public_key,
        )
        for key in OPENING
    ]
