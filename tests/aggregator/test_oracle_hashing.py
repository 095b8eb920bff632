"""Counting hashes: values stepped through, and texts modulo 2^61 − 1, against plain integers."""

from collections.abc import Iterable
from itertools import product, repeat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.domain import text_index
from hubbub.exact import Epsilon
from hubbub.mechanisms import LocalHashing
from hubbub.mechanisms.local_hashing import LISTED_PRIME, OPEN_PRIME
from hubbub.randomness import SYSTEM
from hubbub_aggregator.oracles import (
    ListedHashingOracle,
    OpenHashingOracle,
    Payloads,
    open_hashing,
    oracle_for,
)
from hubbub_aggregator.oracles.local_hashing import intervals

ONE = Epsilon.parse("1")


def hashing(k: int, buckets: int, prime: int) -> LocalHashing:
    return LocalHashing.calibrate(k, ONE, buckets, prime)


Seed = tuple[int, int, int]


def reports(mechanism: LocalHashing, seeds: Iterable[Seed], said: Iterable[int]) -> Payloads:
    """A report for each seed (a, b, c) and the bucket said under it."""
    prime, buckets = mechanism.prime, mechanism.buckets
    payloads = [
        (((a * prime + b) * prime + c) * buckets + bucket).to_bytes(mechanism.payload_size, "big")
        for (a, b, c), bucket in zip(seeds, said, strict=True)
    ]
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)


def bucket_of(mechanism: LocalHashing, seed: Seed, index: int) -> int:
    a, b, c = seed
    return mechanism.bucket((a * mechanism.prime + b) * mechanism.prime + c, index)


def edges(prime: int) -> list[int]:
    """Numbers at the ends, and where limbs and words end."""
    near = (0, 1, 2, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, prime // 2, prime - 2)
    return sorted({number for number in near if number < prime} | {prime - 1})


def random_seeds(prime: int, n: int) -> list[Seed]:
    return [(SYSTEM.below(prime), SYSTEM.below(prime), SYSTEM.below(prime)) for _ in range(n)]


# -- Buckets ------------------------------------------------------------------------------


@pytest.mark.parametrize("prime", [2, 3, 5, 101, 251, 4_099])
def test_every_hash_is_in_the_interval_of_its_bucket_and_no_other(prime: int) -> None:
    for buckets in {2, 3, 4, 7, 64, prime} & set(range(2, prime + 1)):
        first, size = intervals(hashing(2, buckets, prime))
        hashes = np.arange(prime)
        expected = hashes * buckets // prime
        inside = (first[:, None] <= hashes) & (hashes < (first + size)[:, None])
        np.testing.assert_array_equal(inside, np.arange(buckets)[:, None] == expected)


@pytest.mark.parametrize("prime", [LISTED_PRIME, OPEN_PRIME])
@pytest.mark.parametrize("buckets", [2, 3, 4, 5, 12, 1_000, 4_095, 4_096])
def test_large_intervals_begin_and_end_where_the_bucket_changes(prime: int, buckets: int) -> None:
    mechanism = hashing(2, buckets, prime)
    first, size = intervals(mechanism)
    for bucket in range(buckets):
        begin, end = int(first[bucket]), int(first[bucket] + size[bucket])
        # A seed of (0, 0, c) hashes everything to c.
        assert mechanism.bucket(begin, 0) == mechanism.bucket(end - 1, 0) == bucket
    assert int(first[0]) == 0
    assert int(first[-1] + size[-1]) == prime


# -- Listed domains -----------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 361, 362, 363, 724, 725, 3_000])
def test_all_values_are_counted_as_the_mechanism_counts_them(k: int) -> None:
    """Around the ends of runs; of all reports under one seed, every value supports one."""
    mechanism = hashing(k, 5, LISTED_PRIME)
    seeds = random_seeds(LISTED_PRIME, 100)
    a, b, c = np.array(seeds).T[:, :, None]
    x = np.arange(k)
    fallen = ((a * x + b) * x + c) % LISTED_PRIME * 5 // LISTED_PRIME
    for said in range(5):
        counts = oracle_for(mechanism).fold(reports(mechanism, seeds, repeat(said, 100)))
        np.testing.assert_array_equal(counts, (fallen == said).sum(axis=0))


@pytest.mark.parametrize("k", [362, 363, 430])
@pytest.mark.parametrize("edge", ["first", "last"])
@pytest.mark.parametrize(("a", "b"), [(65_536, 65_536), (65_536, 0), (0, 65_536), (0, 0), (9, 1)])
def test_stepping_never_leaves_a_hash_on_the_wrong_side(a: int, b: int, edge: str, k: int) -> None:
    """The steps that wrap most often, in the longest run and around it, and each value in turn
    at an end of its bucket."""
    mechanism = hashing(k, 3, LISTED_PRIME)
    first, size = intervals(mechanism)
    at = int(first[1]) if edge == "first" else int(first[1] + size[1]) - 1
    x = np.arange(k)
    c = (at - (a * x + b) * x) % LISTED_PRIME
    fallen = ((a * x + b) * x + c[:, None]) % LISTED_PRIME * 3 // LISTED_PRIME
    seeds = [(a, b, int(constant)) for constant in c]
    counts = oracle_for(mechanism).fold(reports(mechanism, seeds, repeat(1, k)))
    np.testing.assert_array_equal(counts, (fallen == 1).sum(axis=0))


def test_the_last_of_the_most_values_is_counted() -> None:
    mechanism = hashing(65_536, 3, LISTED_PRIME)
    seeds = random_seeds(LISTED_PRIME, 5)
    counts = oracle_for(mechanism).fold(reports(mechanism, seeds, repeat(2, 5)))
    for value in (0, 1, 30_000, 65_534, 65_535):
        assert counts[value] == sum(bucket_of(mechanism, seed, value) == 2 for seed in seeds)


def test_chunks_of_reports_add_up() -> None:
    mechanism = hashing(400, 2, LISTED_PRIME)
    seeds = random_seeds(LISTED_PRIME, 40_000)
    oracle = oracle_for(mechanism)
    assert isinstance(oracle, ListedHashingOracle)
    one, other = (oracle.fold(reports(mechanism, seeds, repeat(b, 40_000))) for b in (0, 1))
    np.testing.assert_array_equal(one + other, np.full(400, 40_000))


# -- Open domains -------------------------------------------------------------------------


@pytest.mark.parametrize("buckets", [2, 3, 512, 513, 4_096])
def test_candidates_are_counted_as_the_mechanism_counts_them(buckets: int) -> None:
    mechanism = hashing(OPEN_PRIME, buckets, OPEN_PRIME)
    oracle = oracle_for(mechanism)
    assert isinstance(oracle, OpenHashingOracle)
    ends = edges(OPEN_PRIME)
    seeds = [
        *product(ends, (0, OPEN_PRIME - 1), (0, OPEN_PRIME - 1)),
        *((end, end, end) for end in ends),
    ]
    texts = ["", "a", "blue", "ü" * 100]
    for index in [*ends, *map(text_index, texts)]:
        true = [bucket_of(mechanism, seed, index) for seed in seeds]
        lies = [(bucket - 1) % buckets for bucket in true]
        for said, expected in ((true, len(seeds)), (lies, 0)):
            payloads = reports(mechanism, seeds, said)
            assert oracle.candidate_supports(payloads, [index]).tolist() == [expected]


residues = st.integers(0, OPEN_PRIME - 1)


@settings(max_examples=200, deadline=None)
@given(seed=st.tuples(residues, residues, residues), index=residues, said=st.integers(0, 3))
def test_any_report_and_any_candidate(seed: Seed, index: int, said: int) -> None:
    mechanism = hashing(OPEN_PRIME, 4, OPEN_PRIME)
    oracle = OpenHashingOracle(mechanism)
    payloads = reports(mechanism, [seed], [said])
    supported = bucket_of(mechanism, seed, index) == said
    assert oracle.canonical(payloads).tolist() == [True]
    assert oracle.candidate_supports(payloads, [index]).tolist() == [supported]


def test_hashes_are_exact_and_least() -> None:
    """Whatever the seed, also where the sum of products is largest."""
    mechanism = hashing(OPEN_PRIME, 2, OPEN_PRIME)
    ends = edges(OPEN_PRIME)
    seeds = [*product(ends, ends, (0, OPEN_PRIME - 1))]
    read, _ = open_hashing.read(reports(mechanism, seeds, repeat(1, len(seeds))), 2)
    for x in ends:
        expected = [((a * x + b) * x + c) % OPEN_PRIME for a, b, c in seeds]
        assert read.hashes(x).tolist() == expected


def test_an_open_domain_has_no_cells_and_candidates_add_over_chunks() -> None:
    mechanism = hashing(OPEN_PRIME, 2, OPEN_PRIME)
    oracle = OpenHashingOracle(mechanism)
    seeds = random_seeds(OPEN_PRIME, 20_000)
    one, other = (reports(mechanism, seeds, repeat(bucket, 20_000)) for bucket in (0, 1))
    indices = [text_index(text) for text in ("soup", "salad", "pasta")]
    assert oracle.cells == 0
    assert oracle.fold(one).shape == oracle.supports(oracle.fold(one)).shape == (0,)
    both = oracle.candidate_supports(one, indices) + oracle.candidate_supports(other, indices)
    assert both.tolist() == [20_000] * 3
    assert oracle.candidate_supports(one, []).shape == (0,)
    assert oracle.candidate_supports(one[:0], indices).tolist() == [0, 0, 0]
