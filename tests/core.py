"""The privacy core, as shipped or changed, and small and impossible mechanisms of it."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from hubbub import exact, mechanisms, randomness

# Where any ε will do: with this one the thresholds of all mechanisms have ties to walk.
_EPSILON = "1"


class Core(NamedTuple):
    """The modules that make privacy: as shipped, or with one change."""

    exact: ModuleType
    randomness: ModuleType
    mechanisms: ModuleType
    names: Sequence[str]
    """The mechanisms to prove something about."""

    def calibrated(
        self, name: str, k: int, *parameters: int, epsilon: str = _EPSILON, base: int, width: int
    ) -> Any:
        resolution = self.mechanisms.coin.Resolution(base, width)
        kind = self.mechanisms.MECHANISMS[name]
        return kind.calibrate(
            k, self.exact.Epsilon.parse(epsilon), *parameters, resolution=resolution
        )

    def memoised(
        self,
        name: str,
        k: int,
        *,
        permanent: str = "2",
        epsilon: str = "1",
        cells: int = 2,
        base: int = 256,
        width: int = 8,
    ) -> Any:
        """A memoised mechanism of k values at its best; `cells` is for local hashing alone."""
        row, report = map(self.exact.Epsilon.parse, (permanent, epsilon))
        chain, rows, symbols = {
            "memoised-symmetric-unary": ("MemoisedUnary", "SymmetricUnary", k),
            "memoised-optimised-unary": ("MemoisedUnary", "OptimisedUnary", k),
            "memoised-randomised-response": ("MemoisedRandomisedResponse", "RandomisedResponse", k),
            "memoised-local-hashing": ("MemoisedLocalHashing", "RandomisedResponse", cells),
        }[name]
        resolution = self.mechanisms.coin.Resolution(base, width)
        rows = getattr(self.mechanisms, rows).calibrate(symbols, row, resolution=resolution)
        hashed = (k,) if name == "memoised-local-hashing" else ()
        return getattr(self.mechanisms, chain).calibrate(*hashed, rows, report)

    def of(self, name: str, *integers: int, base: int = 256, width: int = 8) -> Any:
        """A memoised mechanism of k and the integers that its contract holds, in their order."""
        make = {
            "memoised-symmetric-unary": self.mechanisms.MemoisedUnary.symmetric,
            "memoised-optimised-unary": self.mechanisms.MemoisedUnary.optimised,
            "memoised-randomised-response": self.mechanisms.MemoisedRandomisedResponse.of,
            "memoised-local-hashing": self.mechanisms.MemoisedLocalHashing.of,
        }[name]
        return make(*integers, resolution=self.mechanisms.coin.Resolution(base, width))

    def small(self, name: str) -> list[Any]:
        """The named mechanism in a few forms so small that every tape can be walked."""
        if name in MEMOISED_SMALL:
            return [
                self.of(name, *integers, base=base, width=width)
                for *integers, base, width in MEMOISED_SMALL[name]
            ]
        return [self.calibrated(name, *parameters, base=4, width=2) for parameters in SMALL[name]]

    def shipped(self, name: str, k: int, *parameters: int, epsilon: str = _EPSILON) -> Any:
        return self.calibrated(name, k, *parameters, epsilon=epsilon, base=256, width=8)

    @contextmanager
    def bit_vectors(self) -> Generator[None, None, None]:
        """Send every set as a bit vector, as if none had a rank of 8 bytes."""
        module = self.mechanisms.subset_selection
        ranks = module.MOST_RANKS
        module.MOST_RANKS = 0
        try:
            yield
        finally:
            module.MOST_RANKS = ranks

    @contextmanager
    def scales_told(self) -> Generator[None, None, None]:
        """Add to a reported point's number, for each unit of its vector's scale, all points."""
        space = self.mechanisms.projective_space
        index = space.index

        def telling(vector: list[int], field: int) -> int:
            scale = next(filter(None, reversed(vector)))
            return int(index(vector, field) + space.points(field, len(vector)) * scale)

        space.index = telling
        try:
            yield
        finally:
            space.index = index


SHIPPED = Core(exact, randomness, mechanisms, names=(*mechanisms.MECHANISMS, *mechanisms.MEMOISED))

# Of every mechanism k and its other parameters, so small that every tape can be walked.
SMALL: dict[str, list[tuple[int, ...]]] = {
    "randomised-response": [(2,), (3,)],
    "symmetric-unary": [(2,), (3,)],
    "optimised-unary": [(2,), (3,)],
    # Size.
    "subset-selection": [(3, 1), (3, 2), (4, 2)],
    # Field and dimensions: as many points as values, or more.
    "projective-geometry": [(3, 2, 2), (4, 3, 2), (6, 5, 2), (7, 2, 3), (5, 3, 3)],
    # Buckets and the prime, which leaves them unequal.
    "local-hashing": [(3, 2, 3), (3, 3, 3), (3, 2, 5)],
}

# k, the integers of the contract, and base and width of the thresholds: memo and round together
# have few enough tapes.
MEMOISED_SMALL: dict[str, list[tuple[int, ...]]] = {
    "memoised-symmetric-unary": [(2, 1, 1, 2, 2)],
    "memoised-optimised-unary": [(2, 1, 1, 2, 2)],
    "memoised-randomised-response": [(2, 11, 13, 4, 2), (3, 2, 3, 2, 2)],
    "memoised-local-hashing": [(3, 3, 3, 2, 2, 2, 2), (4, 1, 1, 3, 2, 2, 1)],
}

HUGE = (1 << 64) - 1

# Of every mechanism k and parameters that make none, although its threshold is in range.
NONSENSE: dict[str, list[tuple[int, ...]]] = {
    "randomised-response": [],
    "symmetric-unary": [],
    "optimised-unary": [],
    "subset-selection": [(4, 0), (4, 4), (4, 5), (4, HUGE), (65_536, HUGE)],
    "projective-geometry": [
        *((2, field, 2) for field in (0, 1, 4, 6, 9, 15, 25, 1 << 17, (1 << 18) + 3, HUGE)),
        *((2, 3, dimensions) for dimensions in (0, 1, 12, 1 << 63, HUGE)),
        *((8, 2, 3), (5, 3, 2), (65_536, 65_521, 2), (65_536, 2, 16)),  # too few points
        *((2, 262_147, 2), (2, 2, 19), (2, 509, 4), (2, HUGE, HUGE), (2, 0, 0)),  # too many
    ],
    "local-hashing": [
        *((2, buckets, 65_537) for buckets in (0, 1, 4_097, 1 << 63, HUGE)),
        *((2, buckets, 3) for buckets in (4, 5)),
        *((4, 2, prime) for prime in (0, 1, 2, 4, 9, 25, 65_536, 65_539, 2**31 - 1, HUGE)),
        *((4, 2, 3), (65_536, 2, 65_521)),  # too few hashes
        *((2, 2, 2**61 - 1), (2**61 - 1, 2, 65_537), (2**61 - 1, 2, 2**61 - 3)),
    ],
}

_THIRD, _HALF, _MOST = (1 << 64) // 3, 1 << 63, 3 << 62
_UNARY_NONSENSE = [
    *((4, flip, _THIRD) for flip in (0, _HALF, _MOST, HUGE)),
    *((4, _THIRD, permanent) for permanent in (0, _HALF, _MOST, HUGE)),
    (2_900, _THIRD, _THIRD),  # too large a memo
]
# Of every memoised mechanism k and integers that make none, by themselves or together.
MEMOISED_NONSENSE: dict[str, list[tuple[int, ...]]] = {
    "memoised-symmetric-unary": _UNARY_NONSENSE,
    "memoised-optimised-unary": _UNARY_NONSENSE,
    "memoised-randomised-response": [
        *((4, keep, _MOST) for keep in (0, 1 << 62, 1 << 64)),
        *((4, _MOST, permanent) for permanent in (0, 1 << 62, 1 << 64)),
        ((1 << 19) + 1, _MOST, _MOST),  # too large a memo
    ],
    "memoised-local-hashing": [
        *((2, keep, _MOST, 2, 2) for keep in (0, _HALF, 1 << 64)),
        *((2, _MOST, permanent, 2, 2) for permanent in (0, _HALF, 1 << 64)),
        *((2, _MOST, _MOST, cells, 2) for cells in (0, 1, 4, 9, HUGE)),
        *((2, _MOST, _MOST, 3, dimensions) for dimensions in (0, 1, HUGE)),
        *((2, _MOST, _MOST, 67, 2), (2, _MOST, _MOST, 2, 18)),  # too long a list
        *((4, _MOST, _MOST, 2, 2), (32, _MOST, _MOST, 5, 3)),  # too few points
    ],
}


def is_read(mechanism: Any, payload: bytes) -> bool:
    try:
        mechanism.supported(payload)
    except ValueError:
        return False
    return True
