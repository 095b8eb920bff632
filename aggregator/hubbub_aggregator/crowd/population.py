"""Who a simulated crowd is: how many devices have each value."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.domain import Domain
from hubbub_aggregator.crowd.base import Values
from hubbub_aggregator.crowd.chance import Chance

# Stands for every answer that has no index, and no `other` to become.
_OUTSIDE: Final = -1


@dataclass(frozen=True, eq=False)
class Population:
    """Devices by value. Who comes first makes no difference, so they stand in order."""

    k: int
    devices: Mapping[int, int]
    """How many have each index in [0, k), and how many, under -1, an answer outside the domain."""

    @classmethod
    def answering(cls, domain: Domain, answers: Mapping[str | None, int]) -> "Population":
        """As many devices as stated for each answer, None standing for "nothing to report"."""
        devices: dict[int, int] = {}
        for answer, count in answers.items():
            index = domain.index_of(answer)
            if index is None:
                index = _OUTSIDE if domain.other is None else domain.other
            devices[index] = devices.get(index, 0) + count
        return cls(domain.k, devices)

    @property
    def n(self) -> int:
        """How many devices there are."""
        return sum(self.devices.values())

    @property
    def outside(self) -> int:
        """How many of them will report on a uniformly random value in place of their own."""
        return self.devices.get(_OUTSIDE, 0)

    def share(self, index: int) -> float:
        """Which share of the devices has a value."""
        return self.devices.get(index, 0) / self.n

    def values(self, start: int, end: int, chance: Chance) -> Values:
        """What devices number `start` to `end` − 1 randomise, stand-ins drawn afresh."""
        places = np.searchsorted(self._ends, np.arange(start, end), side="right")
        own = self._indices[places]
        values = own.astype(np.uint64)
        outside = own == _OUTSIDE
        values[outside] = chance.below(self.k, int(np.count_nonzero(outside)))
        return values

    @cached_property
    def _indices(self) -> NDArray[np.int64]:
        return np.array([*self.devices], np.int64)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Where the devices with each index end."""
        return np.cumsum([*self.devices.values()], dtype=np.int64)
