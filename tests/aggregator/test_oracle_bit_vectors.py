"""Bits counted where they are, against bits unpacked one by one."""

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import SubsetSelection
from hubbub_aggregator.oracles import Payloads, bit_vector, oracle_for
from hubbub_aggregator.tally import Counts

SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 1_000, 1_024, 1_025, 16_384, 65_536)
# Either side of what makes a word, a line, a plane, and another weight.
NUMBERS = (0, 1, 2, 3, 7, 8, 9, *(2**j + d for j in range(4, 13) for d in (-1, 0, 1)), 3_000)
MOST_BITS = 1 << 22


def random_vectors(n: int, k: int) -> Payloads:
    return np.random.default_rng([n, k]).integers(0, 256, (n, (k + 7) // 8), np.uint8)


def one_by_one(payloads: Payloads, k: int) -> Counts:
    bits = np.unpackbits(payloads, axis=1, count=k, bitorder="little")
    return bits.sum(axis=0, dtype=np.int64)


@pytest.mark.parametrize("k", SIZES)
def test_every_shape_is_counted_exactly(k: int) -> None:
    for n in NUMBERS:
        if n * k <= MOST_BITS:
            payloads = random_vectors(n, k)
            counts = bit_vector.fold(payloads, k)
            assert counts.dtype == np.int64
            np.testing.assert_array_equal(counts, one_by_one(payloads, k), f"{n} vectors")


@pytest.mark.parametrize(("n", "k"), [(600_000, 5), (100_000, 64), (40_001, 200)])
def test_many_planes_are_counted_exactly(n: int, k: int) -> None:
    payloads = random_vectors(n, k)
    np.testing.assert_array_equal(bit_vector.fold(payloads, k), one_by_one(payloads, k))


@pytest.mark.parametrize("n", [255, 256, 4_097, 70_000])
def test_nothing_flows_over_where_every_bit_is_set(n: int) -> None:
    payloads = np.full((n, 3), 0xFF, np.uint8)
    np.testing.assert_array_equal(bit_vector.fold(payloads, 24), np.full(24, n))


def test_what_is_counted_may_lie_anywhere_and_stays_as_it_was() -> None:
    """Payloads as intake holds them: columns of a wider table that nobody may write to."""
    reports = random_vectors(5_000, 8 * (16 + 13))
    reports.flags.writeable = False
    payloads = reports[:, 16:]
    np.testing.assert_array_equal(bit_vector.fold(payloads, 100), one_by_one(payloads, 100))
    np.testing.assert_array_equal(reports, random_vectors(5_000, 8 * (16 + 13)))


def test_a_set_with_a_member_too_many_or_beyond_the_last_value_is_not_canonical() -> None:
    mechanism = SubsetSelection.calibrate(100, Epsilon.parse("1"), 40)
    assert mechanism.ranks is None
    members = {
        "right": range(40),
        "one too few": range(39),
        "one too many": range(41),
        "one that is no value": [*range(39), 100],
        "one that is the last spare bit": [*range(39), 103],
    }
    payloads = np.zeros((len(members), 104), np.uint8)
    for row, values in zip(payloads, members.values(), strict=True):
        row[[*values]] = 1
    packed = np.packbits(payloads, axis=1, bitorder="little")
    canonical = oracle_for(mechanism).canonical(packed)
    assert dict(zip(members, canonical.tolist(), strict=True)) == {
        name: name == "right" for name in members
    }
