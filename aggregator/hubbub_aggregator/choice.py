"""Which mechanism, with which parameters, is the most accurate for a domain and an ε.

All of this is decided before a contract is signed, and none of it is about privacy: whatever
is chosen here, the contract's integers are rounded towards more noise and proved on their own.
So parameters are compared in floating point, with e^ε as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cmp_to_key, partial
from itertools import count
from math import isclose
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.limits import MAX_BUCKETS, MAX_CELLS, MAX_VALUES
from hubbub.mechanisms import MECHANISMS, Mechanism
from hubbub.mechanisms.local_hashing import LISTED_PRIME, OPEN_PRIME
from hubbub.mechanisms.primes import is_prime
from hubbub.mechanisms.projective_geometry import points

Floats = NDArray[np.float64]

# Variances closer than this, relatively, are the same law in two forms: subset selection with
# one value is randomised response. The first in MECHANISMS, which is the simpler, is taken.
_SAME: Final = 1e-9

_SUBSET_SELECTION: Final = "subset-selection"
# The one mechanism whose reports say something about values that nobody listed.
OPEN_MECHANISM: Final = "local-hashing"


@dataclass(frozen=True, slots=True)
class Aim:
    """What the most accurate mechanism is chosen for."""

    share: float = 0.0
    """The share whose estimate should be accurate, in [0, 1]; 0: a value that nobody has."""
    max_bytes: int | None = None
    """The most bytes that a payload may have, at least 1; None: any number."""


# A value that nobody has, and payloads of any size.
ANY: Final = Aim()


class NothingFits(Exception):
    """No mechanism that may be chosen keeps the payload's limit."""

    def __init__(self, names: Sequence[str], max_bytes: int, least: int) -> None:
        self.least = least
        """The bytes of the smallest payload there is."""
        whose = f"a payload of {names[0]}" if len(names) == 1 else "every mechanism's payload"
        super().__init__(f"{whose} has at least {_byte_count(least)} here, more than {max_bytes}")


class Candidates(NamedTuple):
    """Every choice of a mechanism's parameters that may be the best; a row for each."""

    parameters: NDArray[Any]
    """Integers: shape (rows, parameters)."""
    q: Floats
    """q*: shape (rows,)."""
    span: Floats
    """p* − q*: shape (rows,). Not subtracted, which would lose its digits at a small ε."""

    def variances(self, share: float) -> Floats:
        """As `variance_at`, of every row: shape (rows,)."""
        noise: Floats = self.q * (1 - self.q) / self.span**2
        return noise + share * (1 - 2 * self.q - self.span) / self.span


def best(name: str, k: int, epsilon: Epsilon, aim: Aim = ANY) -> Mechanism:
    """The named mechanism, with the parameters of the smallest variance at the aim.

    `k`: values in [2, 65,536], or for local hashing 2^61 − 1, an open domain; ε at most 8.
    Raises NothingFits.
    """
    kind: Any = MECHANISMS[name]
    candidates = _candidates(name, k, epsilon)
    sizes: list[int] = []
    for row in np.argsort(candidates.variances(aim.share), kind="stable"):
        parameters = [int(x) for x in candidates.parameters[row]]
        # A payload's size does not depend on the threshold.
        sizes.append(kind(k, 0, *parameters).payload_size)
        if aim.max_bytes is None or sizes[-1] <= aim.max_bytes:
            return MECHANISMS[name].calibrate(k, epsilon, *parameters)
    raise NothingFits([name], aim.max_bytes or 0, min(sizes))


def most_accurate(k: int, epsilon: Epsilon, aim: Aim = ANY) -> Mechanism:
    """The mechanism ("auto") with the smallest variance at the aim; see `ranked`."""
    return ranked(k, epsilon, aim)[0]


def ranked(k: int, epsilon: Epsilon, aim: Aim = ANY) -> list[Mechanism]:
    """Every mechanism that fits, each at its best for the aim, the most accurate first.

    Of two with the same law the simpler comes first. `k` and ε as for `best`. Raises NothingFits.
    """
    names = list(MECHANISMS) if k <= MAX_VALUES else [OPEN_MECHANISM]
    found: list[Mechanism] = []
    too_large: list[int] = []
    for name in names:
        try:
            found.append(best(name, k, epsilon, aim))
        except NothingFits as refusal:
            too_large.append(refusal.least)
    if not found:
        raise NothingFits(names, aim.max_bytes or 0, min(too_large))
    return sorted(found, key=cmp_to_key(partial(_order, share=aim.share)))


def _order(one: Mechanism, other: Mechanism, share: float) -> int:
    a, b = variance_at(one, share), variance_at(other, share)
    return 0 if isclose(a, b, rel_tol=_SAME) else 1 if a > b else -1


def explain(ranking: Sequence[Mechanism], aim: Aim = ANY) -> str:
    """Why the first of `ranked` is the first, for a person: a sentence without its full stop."""
    first = ranking[0]
    rival = next((other for other in ranking if _order(first, other, aim.share)), None)
    if first.k > MAX_VALUES:
        reason = "the only one for an open domain"
    elif rival is not None:
        less = 100 * (1 - variance_at(first, aim.share) / variance_at(rival, aim.share))
        reason = f"{_percent(less)} less variance than the next, {rival.name}"
    else:
        reason = "nothing else that fits is more accurate"
    return f"{first.name}: {reason}; {_byte_count(first.payload_size)} a report"


def _percent(figure: float) -> str:
    if figure < 0.01:
        return "under 0.01 %"
    return f"{figure:.2g} %" if figure < 99 else "over 99 %"


def _byte_count(number: int) -> str:
    return f"{number:,} byte{'s' if number != 1 else ''}"


def variance_at(mechanism: Mechanism, share: float) -> float:
    """n · Var of the estimated share of a value that this share of devices has; over the noise.

    For shares that sum to 1, the average over k values is this at the average share, 1/k.
    """
    p, q = mechanism.support
    return float(mechanism.support.variance) + share * float((1 - p - q) / (p - q))


def least_variance(k: int, epsilon: Epsilon, share: float = 0.0) -> float:
    """The smallest `variance_at` that any ε-locally private mechanism can have.

    For k in [2, 65,536] values. It is subset selection's at its best size, with e^ε itself in
    place of an integer threshold ("Strict Optimality of Frequency and Distribution Estimation
    Under Local Differential Privacy", arXiv 2603.11523).
    """
    return float(_candidates(_SUBSET_SELECTION, k, epsilon).variances(share).min())


def _candidates(name: str, k: int, epsilon: Epsilon) -> Candidates:
    gain = float(epsilon.exponential(128).low - 1)
    return _CANDIDATES[name](k, gain)


# Below, gain is e^ε − 1; and to be the same for every mechanism, probabilities are weights over
# a total, in which what a report is likelier to say weighs e^ε = 1 + gain, and all else 1.


def _randomised_response(k: int, gain: float) -> Candidates:
    total = np.array([k + gain])
    return Candidates(np.empty((1, 0)), 1 / total, gain / total)


def _symmetric_unary(_k: int, gain: float) -> Candidates:
    total = np.array([1 + (1 + gain) ** 0.5])
    return Candidates(np.empty((1, 0)), 1 / total, gain / total**2)


def _optimised_unary(_k: int, gain: float) -> Candidates:
    total = np.array([2 + gain])
    return Candidates(np.empty((1, 0)), 1 / total, gain / (2 * total))


def _subset_selection(k: int, gain: float) -> Candidates:
    """Every size."""
    size = np.arange(1.0, k)
    total = k + size * gain
    # The size, less the true value if it is in, is shared by the k − 1 others.
    q = size * (1 - (1 + gain) / total) / (k - 1)
    return Candidates(size[:, None], q, size * (k - size) * gain / (total * (k - 1)))


def _projective_geometry(k: int, gain: float) -> Candidates:
    """Every field and dimension with enough points and not too many."""
    spaces = list(_spaces(k))
    cells, orthogonal, both = (
        np.array([points(field, dimensions - less) for field, dimensions in spaces], np.float64)
        for less in range(3)
    )
    total = cells + orthogonal * gain
    q = (orthogonal + both * gain) / total
    return Candidates(np.array(spaces, np.float64), q, (orthogonal - both) * gain / total)


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


def _local_hashing(k: int, gain: float) -> Candidates:
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
    return Candidates(grid, (1 + alike * gain) / total, (1 - alike) * gain / total)


_CANDIDATES: Final[dict[str, Callable[[int, float], Candidates]]] = {
    "randomised-response": _randomised_response,
    "symmetric-unary": _symmetric_unary,
    "optimised-unary": _optimised_unary,
    _SUBSET_SELECTION: _subset_selection,
    "projective-geometry": _projective_geometry,
    OPEN_MECHANISM: _local_hashing,
}
