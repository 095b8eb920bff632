"""A small mechanism as a whole: every payload, and how likely it is under every value.

From the papers, not from the samplers: unary encodings raise bits on their own; in all other
mechanisms a report supports the device's value with a certain probability, and is uniform
among those that do, or among those that do not.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub_aggregator.tally import Tally


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


def channel(mechanism: Mechanism) -> Channel:
    """The channel of a mechanism with few enough payloads to list them."""
    supports = _supports(mechanism)
    p, q = map(float, mechanism.support)
    if isinstance(mechanism, SymmetricUnary | OptimisedUnary):
        rises = q + (p - q) * np.eye(mechanism.k)[:, None, :]
        law = np.where(supports, rises, 1 - rises).prod(axis=-1)
    else:
        own = supports.T
        law = own * p / own.sum(axis=1, keepdims=True)
        law += (1 - own) * (1 - p) / (1 - own).sum(axis=1, keepdims=True)
    cells = np.eye(len(supports), dtype=np.int64) if _by_payload(mechanism) else supports
    return Channel(mechanism, cells, supports, law)


def _by_payload(mechanism: Mechanism) -> bool:
    """Whether reports are counted by what they are, not by what they support."""
    return isinstance(mechanism, ProjectiveGeometry)


def _supports(mechanism: Mechanism) -> NDArray[np.int64]:
    match mechanism:
        case RandomisedResponse():
            last = mechanism.k
        case SymmetricUnary() | OptimisedUnary():
            last = 2**mechanism.k
        case SubsetSelection():
            last = mechanism.ranks or 0
        case ProjectiveGeometry():
            last = mechanism.cells
        case LocalHashing():
            last = mechanism.reports
        case _:
            raise TypeError(mechanism.name)
    order: Literal["little", "big"] = (
        "little" if isinstance(mechanism, SymmetricUnary | OptimisedUnary) else "big"
    )
    supports = np.zeros((last, mechanism.k), np.int64)
    for number in range(last):
        payload = number.to_bytes(mechanism.payload_size, order)
        supports[number, mechanism.supported(payload)] = 1
    return supports
