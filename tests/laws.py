"""The laws that the mechanisms are specified to have, written once more.

From the papers' definitions, the contract's integers and the layout of payloads, and never
from the samplers. Everything is exact. Those with a memo are in memoised_laws.py.
"""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any

from tests import memoised_laws
from tests.payloads import Vector, bucket, number, orthogonal, points, subsets, vector
from tests.tapes import Law


def specified_law(mechanism: Any, value: int) -> Law:
    """What the mechanism's integers say about its reports of a value: whole payloads."""
    if mechanism.name.startswith("memoised"):
        return memoised_laws.report_law(mechanism, value)
    k, share, others = _parts(mechanism)
    law = {
        "randomised-response": lambda: _randomised_response(k, share, value),
        "symmetric-unary": lambda: _unary(k, 1 - share, share, value),
        "optimised-unary": lambda: _unary(k, Fraction(1, 2), share, value),
        "subset-selection": lambda: _subset(
            k, share, value, *others, ranked=mechanism.ranks is not None
        ),
        "projective-geometry": lambda: _projective(share, value, *others),
        "local-hashing": lambda: _hashing(share, value, *others),
    }[mechanism.name]()
    return {payload: p for payload, p in law.items() if p}


def pair_chance(mechanism: Any, value: int, first: int, second: int) -> Fraction:
    """The probability that a report of `value` supports two different values at once.

    The covariances of estimates rest on it.
    """
    if mechanism.name.startswith("memoised"):
        return memoised_laws.pair_chance(mechanism, value, first, second)
    k, share, others = _parts(mechanism)
    own = value in (first, second)
    return {
        "randomised-response": lambda: Fraction(0),
        "symmetric-unary": lambda: (1 - share if own else share) * share,
        "optimised-unary": lambda: (Fraction(1, 2) if own else share) * share,
        "subset-selection": lambda: _subset_pair(k, share, *others, own=own),
        "projective-geometry": lambda: _projective_pair(share, (value, first, second), *others),
        "local-hashing": lambda: _hashing_pair(share, *others, own=own),
    }[mechanism.name]()


def _parts(mechanism: Any) -> tuple[int, Fraction, list[int]]:
    """k, the threshold as a probability, and the other parameters."""
    threshold, *others = mechanism.parameters.values()
    one = mechanism.resolution.base**mechanism.resolution.width
    return mechanism.k, Fraction(threshold, one), others


def resolution_of(mechanism: Any) -> Any:
    """How finely its probabilities are cut."""
    if mechanism.name.startswith("memoised"):
        return memoised_laws.resolution_of(mechanism)
    return mechanism.resolution


# -- Laws ---------------------------------------------------------------------------------


def _randomised_response(k: int, keep: Fraction, value: int) -> Law:
    """All lies alike."""
    return {
        number(report, k): keep if report == value else (1 - keep) / (k - 1) for report in range(k)
    }


def _unary(k: int, own: Fraction, other: Fraction, value: int) -> Law:
    """Independent bits: the own is 1 with probability `own`, any other with `other`."""
    rises = [own if i == value else other for i in range(k)]
    law: Law = {}
    for bits in product((0, 1), repeat=k):
        chances = (p if bit else 1 - p for p, bit in zip(rises, bits, strict=True))
        law[vector(bits)] = prod(chances, start=Fraction(1))
    return law


def _subset(k: int, included: Fraction, value: int, size: int, *, ranked: bool) -> Law:
    """All sets with the value alike, and all without."""
    sets = subsets(k, size)
    holders = sum(value in members for members in sets)
    law: Law = {}
    for rank, members in enumerate(sets):
        bits = tuple(int(v in members) for v in range(k))
        payload = number(rank, len(sets)) if ranked else vector(bits)
        law[payload] = (
            included / holders if value in members else (1 - included) / (len(sets) - holders)
        )
    return law


def _subset_pair(k: int, included: Fraction, size: int, *, own: bool) -> Fraction:
    if own:
        return included * Fraction(size - 1, k - 1)
    pairs = included * (size - 1) * (size - 2) + (1 - included) * size * (size - 1)
    return pairs / ((k - 1) * (k - 2))


def _projective(within: Fraction, value: int, field: int, dimensions: int) -> Law:
    """All points orthogonal to the value's alike, and all others."""
    space = points(field, dimensions)
    near = [orthogonal(field, point, space[value]) for point in space]
    return {
        number(index, len(space)): within / sum(near)
        if near[index]
        else (1 - within) / (len(space) - sum(near))
        for index in range(len(space))
    }


def _projective_pair(
    within: Fraction, values: tuple[int, int, int], field: int, dimensions: int
) -> Fraction:
    """What is orthogonal to two points is so to all on the line through them."""

    def size(dimensions: int) -> int:
        return sum(field**place for place in range(dimensions))

    space = points(field, dimensions)
    inside = within / size(dimensions - 1)
    outside = (1 - within) / (size(dimensions) - size(dimensions - 1))
    both = size(dimensions - 2)
    if _on_line(field, *(space[v] for v in values)):
        return inside * both
    # There are three dimensions at least.
    all_three = size(dimensions - 3)
    return inside * all_three + outside * (both - all_three)


def _on_line(field: int, point: Vector, first: Vector, second: Vector) -> bool:
    return any(
        all((x * a + y * b - c) % field == 0 for a, b, c in zip(first, second, point, strict=True))
        for x in range(field)
        for y in range(field)
    )


def _hashing(keep: Fraction, value: int, buckets: int, prime: int) -> Law:
    """All seeds alike; the true bucket, or any other."""
    law: Law = {}
    for index, seed in enumerate(product(range(prime), repeat=3)):
        true = bucket(seed, value, buckets, prime)
        for said in range(buckets):
            share = keep if said == true else (1 - keep) / (buckets - 1)
            law[number(index * buckets + said, prime**3 * buckets)] = share / prime**3
    return law


@cache
def _alike(buckets: int, prime: int, values: int) -> Fraction:
    """The probability that so many independent hashes fall into one bucket."""
    sizes = Counter(hashed * buckets // prime for hashed in range(prime))
    return Fraction(sum(size**values for size in sizes.values()), prime**values)


def _hashing_pair(keep: Fraction, buckets: int, prime: int, *, own: bool) -> Fraction:
    two, three = (_alike(buckets, prime, values) for values in (2, 3))
    if own:
        return keep * two
    return keep * three + (1 - keep) / (buckets - 1) * (two - three)
