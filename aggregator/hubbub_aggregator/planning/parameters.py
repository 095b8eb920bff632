"""Every choice of a mechanism's parameters that may be the best, and what each comes to."""

from collections.abc import Callable, Iterator
from itertools import count
from math import isqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.limits import MAX_BUCKETS, MAX_CELLS, MAX_VALUES
from hubbub.mechanisms.local_hashing import LISTED_PRIME, OPEN_PRIME
from hubbub.mechanisms.primes import is_prime
from hubbub.mechanisms.projective_space import points

Floats = NDArray[np.float64]


class Choices(NamedTuple):
    """Choices of one mechanism's parameters; a row for each."""

    parameters: NDArray[Any]
    """Integers: shape (rows, parameters)."""
    q: Floats
    """q*: shape (rows,)."""
    span: Floats
    """p* − q*: shape (rows,). Not subtracted, which would lose its digits at a small ε."""

    def variances(self, share: float) -> Floats:
        """As `choice.variance_at`, of every row: shape (rows,)."""
        noise: Floats = self.q * (1 - self.q) / self.span**2
        return noise + share * (1 - 2 * self.q - self.span) / self.span


def choices(name: str, k: int, epsilon: Epsilon) -> Choices:
    """Every choice that may be the best for the named mechanism.

    `k` and ε as for `choice.best`; in floating point, with e^ε as it is.
    """
    gain = float(epsilon.exponential(128).low - 1)
    return _CHOICES[name](k, gain)


# Below, gain is e^ε − 1; and to be the same for every mechanism, probabilities are weights over
# a total, in which what a report is likelier to say weighs e^ε = 1 + gain, and all else 1.


def _randomised_response(k: int, gain: float) -> Choices:
    total = np.array([k + gain])
    return Choices(np.empty((1, 0)), 1 / total, gain / total)


def _symmetric_unary(_k: int, gain: float) -> Choices:
    total = np.array([1 + (1 + gain) ** 0.5])
    return Choices(np.empty((1, 0)), 1 / total, gain / total**2)


def _optimised_unary(_k: int, gain: float) -> Choices:
    total = np.array([2 + gain])
    return Choices(np.empty((1, 0)), 1 / total, gain / (2 * total))


def _subset_selection(k: int, gain: float) -> Choices:
    """Every size."""
    size = np.arange(1.0, k)
    total = k + size * gain
    # The size, less the true value if it is in, is shared by the k − 1 others.
    q = size * (1 - (1 + gain) / total) / (k - 1)
    return Choices(size[:, None], q, size * (k - size) * gain / (total * (k - 1)))


def _projective_geometry(k: int, gain: float) -> Choices:
    """Every field and dimension with enough points and not too many."""
    spaces = list(_spaces(k))
    cells, orthogonal, both = (
        np.array([points(field, dimensions - less) for field, dimensions in spaces], np.float64)
        for less in range(3)
    )
    total = cells + orthogonal * gain
    q = (orthogonal + both * gain) / total
    return Choices(np.array(spaces, np.float64), q, (orthogonal - both) * gain / total)


def _spaces(k: int) -> Iterator[tuple[int, int]]:
    """(field, dimensions) with k ≤ points ≤ MAX_CELLS."""
    # On a line (t = 2) every point is orthogonal to one only, so this is randomised response
    # over the q + 1 points, whose variance grows with their number at every share: the least
    # prime with room for k is the best, and its payload the smallest.
    yield next(field for field in count(max(2, k - 1)) if is_prime(field)), 2
    for dimensions in count(3):
        if points(2, dimensions) > MAX_CELLS:
            return
        for field in count(2):
            cells = points(field, dimensions)
            if cells > MAX_CELLS:
                break
            if cells >= k and is_prime(field):
                yield field, dimensions


def _local_hashing(k: int, gain: float) -> Choices:
    """Every number of buckets that may be best; the prime that has room for k."""
    prime = LISTED_PRIME if k <= MAX_VALUES else OPEN_PRIME
    # The best for a value that nobody has is about e^ε + 1, and fewer for a larger share.
    # Twice as many leave room for buckets that are not quite equal.
    buckets = np.arange(2.0, min(MAX_BUCKETS, 2 * int(2 + gain)) + 1)
    least, larger = prime // buckets, prime % buckets
    alike = (larger * (least + 1) ** 2 + (buckets - larger) * least**2) / float(prime) ** 2
    total = buckets + gain
    # 2^61 − 1 has no float64 of its own.
    grid = np.column_stack([buckets.astype(np.int64), np.full(len(buckets), prime)])
    return Choices(grid, (1 + alike * gain) / total, (1 - alike) * gain / total)


def _memoised_local_hashing(k: int, gain: float) -> Choices:
    """Every prime number of cells for which the list of hashes is not too long.

    Two values share a cell under one hash in so many, exactly.
    """
    cells = np.array([n for n in range(2, isqrt(MAX_CELLS)) if _can_be_hashed(k, n)], float)
    return Choices(cells[:, None], 1 / cells, (cells - 1) * gain / (cells * (cells + gain)))


def _can_be_hashed(k: int, cells: int) -> bool:
    return is_prime(cells) and any(
        cells ** (dimensions + 1) <= MAX_CELLS and points(cells, dimensions) >= k
        for dimensions in range(2, MAX_CELLS.bit_length())
    )


_CHOICES: Final[dict[str, Callable[[int, float], Choices]]] = {
    "randomised-response": _randomised_response,
    "symmetric-unary": _symmetric_unary,
    "optimised-unary": _optimised_unary,
    "subset-selection": _subset_selection,
    "projective-geometry": _projective_geometry,
    "local-hashing": _local_hashing,
    "memoised-local-hashing": _memoised_local_hashing,
}
