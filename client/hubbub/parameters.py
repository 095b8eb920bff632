"""Which mechanism a contract names, and its integers."""

from collections.abc import Callable
from typing import Final, NamedTuple

from hubbub.canonical import Reader
from hubbub.errors import InvalidContract
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    MemoisedRandomisedResponse,
    MemoisedUnary,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)


class _Message(NamedTuple):
    """What a mechanism's message holds, field by field: thresholds, and then other integers."""

    make: Callable[..., Mechanism]
    thresholds: int
    others: int


# By field number of Metric's oneof. The rest of Metric's fields lie between the two.
_ONE_TIME: Final = {
    7: _Message(RandomisedResponse, 1, 0),
    8: _Message(SymmetricUnary, 1, 0),
    9: _Message(OptimisedUnary, 1, 0),
    10: _Message(SubsetSelection, 1, 1),
    11: _Message(ProjectiveGeometry, 1, 2),
    12: _Message(LocalHashing, 1, 2),
}
_MEMOISED: Final = {
    15: _Message(MemoisedUnary.symmetric, 2, 0),
    16: _Message(MemoisedUnary.optimised, 2, 0),
    17: _Message(MemoisedRandomisedResponse.of, 2, 0),
    18: _Message(MemoisedLocalHashing.of, 2, 2),
}


def read_one_time(reader: Reader, k: int) -> list[Mechanism]:
    """The mechanisms without a memo that a metric of k values names."""
    return _read(reader, k, _ONE_TIME)


def read_memoised(reader: Reader, k: int) -> list[Mechanism]:
    """The memoised mechanisms that a metric of k values names."""
    return _read(reader, k, _MEMOISED)


def the_only(name: str, mechanisms: list[Mechanism]) -> Mechanism:
    """Raises InvalidContract, about the named metric, unless there is exactly one."""
    if not mechanisms:
        raise InvalidContract(name, "mechanism", "is missing or unknown to this version")
    if len(mechanisms) > 1:
        raise InvalidContract(name, "mechanism", "must be one only")
    return mechanisms[0]


def _read(reader: Reader, k: int, messages: dict[int, _Message]) -> list[Mechanism]:
    mechanisms: list[Mechanism] = []
    for number, message in messages.items():
        fields = reader.message(number)
        if fields is None:
            continue
        thresholds = [fields.fixed64(1 + place) for place in range(message.thresholds)]
        first = 1 + message.thresholds
        others = [fields.uint(first + place) for place in range(message.others)]
        fields.end()
        mechanisms.append(message.make(k, *thresholds, *others))
    return mechanisms
