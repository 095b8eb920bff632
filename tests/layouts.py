"""What payloads of more than one byte say: proved where tapes are too many to walk them all."""

from collections.abc import Callable
from itertools import product

from tests import payloads
from tests.core import Core, is_read


class Constant:
    """A source whose digits are all the same, and lots the first."""

    base = 256

    def __init__(self, digit: int) -> None:
        self._digit = digit

    def digits(self, count: int) -> bytes:
        return bytes([self._digit]) * count

    def below(self, n: int) -> int:
        return 0


def prove_layout(core: Core) -> None:
    """What payloads of more than one byte say, spare bits included."""
    for name, prove in _LAYOUTS.items():
        if name in core.names:
            prove(core)


def _unary_layout(name: str) -> Callable[[Core], None]:
    def prove(core: Core) -> None:
        for k in (9, 16, 20):
            # The highest digits flip no bit, raise no other, and leave the own bit 1.
            mechanism = core.shipped(name, k)
            for value in range(k):
                payload = mechanism.randomise(value, Constant(255))
                assert payload == payloads.vector(tuple(int(i == value) for i in range(k)))
                assert mechanism.supported(payload) == [value]

    return prove


def _response_layout(core: Core) -> None:
    # The lowest digits tell the truth.
    response = core.shipped("randomised-response", 300)
    for value in range(300):
        payload = response.randomise(value, Constant(0))
        assert payload == payloads.number(value, 300)
        assert response.supported(payload) == [value]


def _subset_layout(core: Core) -> None:
    k, size = 12, 4
    ranked = core.shipped("subset-selection", k, size)
    sets = payloads.subsets(k, size)
    for rank, members in enumerate(sets):
        assert ranked.supported(payloads.number(rank, len(sets))) == list(members)
    for value, digit in product(range(k), (0, 255)):
        payload = ranked.randomise(value, Constant(digit))
        assert is_read(ranked, payload)
        members = ranked.supported(payload)
        assert (value in members) == (digit == 0)
        with core.bit_vectors():
            same = ranked.randomise(value, Constant(digit))
            assert same == payloads.vector(tuple(int(v in members) for v in range(k)))
            assert ranked.supported(same) == members


def _projective_layout(core: Core) -> None:
    for field, dimensions in ((3, 6), (17, 3), (307, 2)):
        geometry = core.shipped("projective-geometry", 300, field, dimensions)
        space = payloads.points(field, dimensions)
        assert geometry.cells == len(space)
        for value in range(0, 300, 13):
            for digit in (0, 255):
                payload = geometry.randomise(value, Constant(digit))
                index = int.from_bytes(payload, "big")
                assert index < len(space)
                point = space[index]
                assert payloads.orthogonal(field, point, space[value]) == (digit == 0)
                assert geometry.supported(payload) == [
                    v for v in range(300) if payloads.orthogonal(field, point, space[v])
                ]


def _hashing_layout(core: Core) -> None:
    for k, buckets, prime in ((11, 3, 11), (300, 7, 65_537), (2**61 - 1, 5, 2**61 - 1)):
        hashing = core.shipped("local-hashing", k, buckets, prime)
        # The seed 0 puts every value into bucket 0, and the highest digits lie.
        assert hashing.randomise(1, Constant(255)) == payloads.number(1, prime**3 * buckets)
        for seed in ((0, 0, prime - 1), (0, 1, 2), (1, 2, 3), (prime - 1, prime // 2, 1)):
            a, b, c = seed
            number = (a * prime + b) * prime + c
            for value in (0, 1, k // 2, k - 1):
                assert hashing.bucket(number, value) == payloads.bucket(seed, value, buckets, prime)
            said = buckets - 1
            payload = payloads.number(number * buckets + said, prime**3 * buckets)
            assert hashing.read(payload) == (number, said)
            if k < 1_000:
                assert hashing.supported(payload) == [
                    v for v in range(k) if payloads.bucket(seed, v, buckets, prime) == said
                ]


_LAYOUTS: dict[str, Callable[[Core], None]] = {
    "randomised-response": _response_layout,
    "symmetric-unary": _unary_layout("symmetric-unary"),
    "optimised-unary": _unary_layout("optimised-unary"),
    "subset-selection": _subset_layout,
    "projective-geometry": _projective_layout,
    "local-hashing": _hashing_layout,
}
