"""The privacy core, as shipped or changed, and small and impossible mechanisms of it."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

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


def is_read(mechanism: Any, payload: bytes) -> bool:
    try:
        mechanism.supported(payload)
    except ValueError:
        return False
    return True
