"""Sealed reports open with their key, in their context, and nowhere else."""

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey

from hubbub.bundle import SealingKey, SealingSuite, key_id
from hubbub.sealing import SUITES, context, overhead, seal
from tests.golden import read

DIGEST = bytes(range(32))
REPORT = bytes(16) + b"\x05"

PRIVATE = X25519PrivateKey.generate()
LATTICE = MLKEM768PrivateKey.generate()
_classical = PRIVATE.public_key().public_bytes_raw()
_hybrid = LATTICE.public_key().public_bytes_raw() + _classical
KEYS: dict[SealingSuite, tuple[SealingKey, X25519PrivateKey | MLKEM768X25519PrivateKey]] = {
    SealingSuite.X25519: (
        SealingKey(key_id(_classical), SealingSuite.X25519, _classical),
        PRIVATE,
    ),
    SealingSuite.MLKEM768_X25519: (
        SealingKey(key_id(_hybrid), SealingSuite.MLKEM768_X25519, _hybrid),
        MLKEM768X25519PrivateKey(LATTICE, PRIVATE),
    ),
}
each_suite = pytest.mark.parametrize("suite", SealingSuite)


@pytest.mark.parametrize("vector", read("sealing")["contexts"], ids=lambda v: v["round"])
def test_the_context_is_that_of_the_golden_vectors(vector: dict[str, str]) -> None:
    digest, key = bytes.fromhex(vector["digest"]), bytes.fromhex(vector["key_id"])
    assert context(digest, int(vector["round"]), key).hex() == vector["context"]


def test_the_golden_report_opens() -> None:
    vector = read("sealing")["sealed"]
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["private_key"]))
    sealed, info = bytes.fromhex(vector["sealed"]), bytes.fromhex(vector["context"])
    assert SUITES[SealingSuite.X25519].decrypt(sealed, private, info).hex() == vector["report"]


@each_suite
def test_a_sealed_report_opens_in_its_context(suite: SealingSuite) -> None:
    key, private = KEYS[suite]
    sealed = seal(key, DIGEST, 3, REPORT)
    assert SUITES[suite].decrypt(sealed, private, context(DIGEST, 3, key.key_id)) == REPORT


@each_suite
def test_every_sealed_report_of_a_metric_has_one_size(suite: SealingSuite) -> None:
    key, _ = KEYS[suite]
    for size in (17, 24, 16 + 8_192):
        sealed = {len(seal(key, DIGEST, r, bytes([r]) * size)) for r in (0, 1, 255)}
        assert sealed == {size + overhead(suite)}


@each_suite
def test_sealing_twice_gives_other_bytes(suite: SealingSuite) -> None:
    key, _ = KEYS[suite]
    assert seal(key, DIGEST, 3, REPORT) != seal(key, DIGEST, 3, REPORT)


@each_suite
@pytest.mark.parametrize("change", ["digest", "round", "key id"])
def test_it_does_not_open_in_another_context(suite: SealingSuite, change: str) -> None:
    key, private = KEYS[suite]
    sealed = seal(key, DIGEST, 3, REPORT)
    info = {
        "digest": context(bytes(32), 3, key.key_id),
        "round": context(DIGEST, 4, key.key_id),
        "key id": context(DIGEST, 3, bytes(8)),
    }[change]
    with pytest.raises(InvalidTag):
        SUITES[suite].decrypt(sealed, private, info)


@each_suite
def test_it_does_not_open_with_one_bit_changed(suite: SealingSuite) -> None:
    key, private = KEYS[suite]
    info = context(DIGEST, 3, key.key_id)
    sealed = seal(key, DIGEST, 3, REPORT)
    for at in {0, 40, len(sealed) - 17, len(sealed) - 1}:
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(InvalidTag):
            SUITES[suite].decrypt(bytes(changed), private, info)


def test_it_does_not_open_with_another_key() -> None:
    key, _ = KEYS[SealingSuite.X25519]
    sealed = seal(key, DIGEST, 3, REPORT)
    with pytest.raises(InvalidTag):
        SUITES[key.suite].decrypt(
            sealed, X25519PrivateKey.generate(), context(DIGEST, 3, key.key_id)
        )
