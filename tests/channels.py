"""A small mechanism as a whole: every payload, and how likely it is under every value."""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    MemoisedMechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub_aggregator.tally import Tally
from tests.calibrated import memoised
from tests.laws import specified_law


class Channel(NamedTuple):
    """N payloads of a mechanism."""

    mechanism: Mechanism
    cells: NDArray[np.int64]
    """What each adds to the cells, shape (N, cells)."""
    supports: NDArray[np.int64]
    """Which of the k values each supports, shape (N, k): 0 or 1."""
    law: NDArray[np.float64]
    """How likely each is under each value, shape (k, N)."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """What each adds to n times the estimated shares, shape (N, k)."""
        p, q = self.mechanism.support
        return np.asarray((self.supports - float(q)) / float(p - q), np.float64)

    def tally(self, holders: NDArray[np.int64], rng: np.random.Generator) -> Tally:
        """The reports of a crowd, of which holders[v] have value v."""
        made = rng.multinomial(holders, self.law).sum(axis=0)
        return Tally(int(holders.sum()), made @ self.cells)


def small_mechanisms(epsilon: str) -> list[Mechanism]:
    """Every kind, with few enough payloads to list, and at least two values."""
    declared = Epsilon.parse(epsilon)
    return [
        *(RandomisedResponse.calibrate(k, declared) for k in (2, 3, 6)),
        *(kind.calibrate(k, declared) for kind in (SymmetricUnary, OptimisedUnary) for k in (2, 5)),
        *(SubsetSelection.calibrate(k, declared, s) for k, s in ((2, 1), (3, 2), (7, 1), (7, 3))),
        *(
            ProjectiveGeometry.calibrate(k, declared, field, dimensions)
            for k, field, dimensions in ((3, 2, 2), (4, 5, 2), (7, 2, 3), (9, 3, 3), (15, 2, 4))
        ),
        *(
            LocalHashing.calibrate(k, declared, buckets, prime)
            for k, buckets, prime in ((2, 2, 3), (3, 3, 5), (7, 3, 7), (6, 4, 11))
        ),
    ]


def small_memoised(permanent: str = "2", epsilon: str = "1") -> list[MemoisedMechanism]:
    """The same of those with a memo."""
    return [
        *(
            memoised(f"memoised-{name}", k, permanent=permanent, epsilon=epsilon)
            for name, k in (
                ("symmetric-unary", 4),
                ("optimised-unary", 4),
                ("randomised-response", 2),
                ("randomised-response", 5),
            )
        ),
        *(
            memoised("memoised-local-hashing", k, permanent=permanent, epsilon=epsilon, cells=cells)
            for k, cells in ((3, 2), (7, 2), (13, 3), (20, 5))
        ),
    ]


def channel(mechanism: Mechanism) -> Channel:
    """The channel of a mechanism with few enough payloads to list them."""
    laws = [specified_law(mechanism, value) for value in range(mechanism.k)]
    # Every value makes every payload.
    payloads = sorted(laws[0])
    supports = np.zeros((len(payloads), mechanism.k), np.int64)
    for row, payload in zip(supports, payloads, strict=True):
        row[mechanism.supported(payload)] = 1
    by_payload = isinstance(mechanism, ProjectiveGeometry | MemoisedLocalHashing)
    return Channel(
        mechanism,
        cells=np.eye(len(payloads), dtype=np.int64) if by_payload else supports,
        supports=supports,
        law=np.array([[float(law[payload]) for payload in payloads] for law in laws]),
    )


def crowd_sizes(mechanism: Mechanism, x: float) -> list[int]:
    """A few n with x or little more reports of the rarer kind."""
    least = ceil(x / min(mechanism.support.q, 1 - mechanism.support.p))
    return [least, least + least // 7]


def pair_law(made: Channel, holders: NDArray[np.int64]) -> NDArray[np.float64]:
    """The law of the counts of values 0 and 1, where holders[v] devices have value v.

    Shape (n + 1, n + 1). The generating function of what one report supports of the two,
    multiplied over the devices on the unit circle.
    """
    n = int(holders.sum())
    turns = np.exp(-2j * np.pi * np.arange(n + 1) / (n + 1))
    one, other = turns[:, None], turns[None, :]
    transformed = np.ones((n + 1, n + 1), np.complex128)
    for law, count in zip(made.law, holders, strict=True):
        neither, second, first, both = np.bincount(
            made.supports[:, 0] * 2 + made.supports[:, 1], law, minlength=4
        )
        factor = neither + first * one + second * other + both * one * other
        transformed *= factor**count
    return np.maximum(np.fft.ifft2(transformed).real, 0)
