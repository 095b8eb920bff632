"""What payloads say, written once more: from the contract's layout, never from the samplers."""

from functools import cache
from itertools import combinations, product

Vector = tuple[int, ...]


def number(index: int, count: int) -> bytes:
    """One of `count` numbers: big-endian in as few bytes as hold them all."""
    size = 0
    while 256**size < count:
        size += 1
    return index.to_bytes(size, "big")


def vector(bits: Vector) -> bytes:
    """Value i is bit i mod 8, least significant first, of byte i div 8."""
    payload = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        payload[i // 8] |= bit << i % 8
    return bytes(payload)


@cache
def subsets(k: int, size: int) -> list[Vector]:
    """All sets in the order of their ranks: by the largest member, then the next, …"""
    return sorted(combinations(range(k), size), key=lambda members: members[::-1])


@cache
def points(field: int, dimensions: int) -> list[Vector]:
    """All points in order: the vectors whose first coordinate that is not 0 is 1."""
    return [
        vector
        for vector in product(range(field), repeat=dimensions)
        if next(filter(None, vector), 0) == 1
    ]


def orthogonal(field: int, first: Vector, second: Vector) -> bool:
    return scalar_product(field, first, second) == 0


def scalar_product(field: int, first: Vector, second: Vector) -> int:
    return sum(a * b for a, b in zip(first, second, strict=True)) % field


def bucket(seed: Vector, value: int, buckets: int, prime: int) -> int:
    """Where the polynomial of coefficients a, b, c puts a value."""
    a, b, c = seed
    return (a * value**2 + b * value + c) % prime * buckets // prime


def cell(seed: int, value: int, cells: int, dimensions: int) -> int:
    """Where memoised local hashing puts a value: the product of its point and a vector.

    Seeds are the vectors in order, which is that of the numbers they write.
    """
    vectors = _vectors(cells, dimensions)
    return scalar_product(cells, vectors[seed], points(cells, dimensions)[value])


@cache
def _vectors(field: int, dimensions: int) -> list[Vector]:
    return list(product(range(field), repeat=dimensions))
