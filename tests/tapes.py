"""Walk every tape of random digits that a sampler can see, with each tape's exact weight.

The sampler runs as shipped; only its source is replaced, by one that plays a tape. Where the
tape ends the source goes on with zeros, and notes how many outcomes were possible there; the
next tape is the one after it in that tree. So a tape is exactly as long as the sampler asks,
ties included, and the weights of all of them add up to 1.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

Call = tuple[str, int]
"""One request to the source: ("digits", how many) or ("below", n)."""

# Far more than any sampler asks for at the resolutions walked here.
_LONGEST = 64


class TapeSource:
    """Plays a tape of choices, then zeros; remembers what was asked."""

    def __init__(self, base: int, tape: list[int]) -> None:
        self.base = base
        self.calls: list[Call] = []
        self.choices: list[int] = []
        self.sizes: list[int] = []
        self._tape = tape

    def digits(self, count: int) -> bytes:
        self.calls.append(("digits", count))
        return bytes([self._choose(self.base) for _ in range(count)])

    def below(self, n: int) -> int:
        self.calls.append(("below", n))
        return self._choose(n)

    def _choose(self, size: int) -> int:
        place = len(self.choices)
        assert place < _LONGEST, "the sampler does not stop asking"
        choice = self._tape[place] if place < len(self._tape) else 0
        self.choices.append(choice)
        self.sizes.append(size)
        return choice


class Walk(NamedTuple):
    """What a sampler did with one tape."""

    tape: tuple[int, ...]
    odds: int
    """The probability of this tape is one in so many."""
    calls: tuple[Call, ...]
    payload: bytes


def walk(
    base: int,
    sample: Callable[[TapeSource], bytes],
    source: Callable[[int, list[int]], TapeSource] = TapeSource,
) -> Iterator[Walk]:
    """Run `sample` on every tape of digits below `base`, in lexicographic order."""
    tape: list[int] = []
    while True:
        player = source(base, tape)
        payload = sample(player)
        choices, sizes = player.choices, player.sizes
        yield Walk(tuple(choices), prod(sizes), tuple(player.calls), payload)
        while choices and choices[-1] + 1 == sizes[len(choices) - 1]:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1
        tape = choices


Law = dict[bytes, Fraction]
"""The probability of every payload, given one value."""


def law_of(walks: list[Walk], seen: Callable[[Walk], Any] = attrgetter("payload")) -> Any:
    """Add up the weights of the tapes that gave the same payload, or looked the same."""
    law: dict[Any, Fraction] = {}
    for (what, odds), times in Counter((seen(one), one.odds) for one in walks).items():
        law[what] = law.get(what, Fraction(0)) + Fraction(times, odds)
    return law
