"""The laws that the memoised mechanisms are specified to have, written once more.

A chain has two links: a row tells the value with the first one's probabilities, a round tells
the row with the second one's. Everything is exact, and nothing comes from the samplers.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeVar

from tests.payloads import cell, number, vector
from tests.tapes import Law

Outcome = TypeVar("Outcome")
HistoryLaw = dict[tuple[bytes, ...], Fraction]
"""The probability of every sequence of payloads, given a value for each round."""


class Link(NamedTuple):
    """How likely the own symbol (a bit that is 1, a number) is, and any one other."""

    own: Fraction
    other: Fraction

    def then(self, next_link: "Link") -> "Link":
        """Both links in a row. What is not the own symbol's is told apart by the second one."""
        own, other = (x * next_link.own + (1 - x) * next_link.other for x in self)
        return Link(own, other)


class Chain(NamedTuple):
    """A memoised mechanism's integers as probabilities."""

    row: Link
    round: Link
    k: int
    """Of its symbols: with hashing, cells."""

    @property
    def report(self) -> Link:
        """A round with the memo unknown."""
        return self.row.then(self.round)


def chain_of(mechanism: Any) -> Chain:
    resolution = resolution_of(mechanism)
    integers = mechanism.parameters
    k = integers.get("cells", mechanism.k)
    share = {
        name: Fraction(threshold, resolution.base**resolution.width)
        for name, threshold in integers.items()
    }
    if "permanent_keep" in share:
        row, instant = (
            Link(share[keep], (1 - share[keep]) / (k - 1)) for keep in ("permanent_keep", "keep")
        )
        return Chain(row, instant, k)
    instant = Link(1 - share["flip"], share["flip"])
    if "permanent_flip" in share:
        return Chain(Link(1 - share["permanent_flip"], share["permanent_flip"]), instant, k)
    return Chain(Link(Fraction(1, 2), share["permanent_raised"]), instant, k)


def resolution_of(mechanism: Any) -> Any:
    """Rows and rounds have the same."""
    return getattr(mechanism, "chain", mechanism).permanent.resolution


def is_unary(mechanism: Any) -> bool:
    return "flip" in mechanism.parameters


# -- A memo, and a round of it ------------------------------------------------------------


def memo_law(mechanism: Any) -> Law:
    """Every row by itself, one after the other; before them a seed, all alike."""
    chain = chain_of(mechanism)
    rows = [_symbols(mechanism, chain.row, value) for value in range(chain.k)]
    seeds = _seeds(mechanism)
    memos = {
        seed + b"".join(row): prod(
            (law[symbol] for law, symbol in zip(rows, row, strict=True)),
            start=Fraction(1, len(seeds)),
        )
        for seed in seeds
        for row in product(*rows)
    }
    return _possible(memos)


def response_law(mechanism: Any, memo: bytes, value: int) -> Law:
    """A round's payloads, given the memo: the row of the value, or of its cell."""
    chain = chain_of(mechanism)
    seed_size = len(_seeds(mechanism)[0])
    seed, rows = memo[:seed_size], memo[seed_size:]
    place = _cell(mechanism, int.from_bytes(seed, "big"), value)
    size = len(rows) // chain.k
    row = rows[place * size : (place + 1) * size]
    if is_unary(mechanism):
        ones = [row[i // 8] >> i % 8 & 1 for i in range(chain.k)]
        return _possible(_vectors([chain.round.own if one else chain.round.other for one in ones]))
    law = _numbers(chain.k, chain.round, int.from_bytes(row, "big"))
    return _possible({_payload(mechanism, seed, symbol): p for symbol, p in law.items()})


def _possible(law: dict[Outcome, Fraction]) -> dict[Outcome, Fraction]:
    return {outcome: p for outcome, p in law.items() if p}


def _seeds(mechanism: Any) -> list[bytes]:
    """What memos begin with."""
    if "cells" not in mechanism.parameters:
        return [b""]
    count = mechanism.parameters["cells"] ** mechanism.parameters["dimensions"]
    return [number(seed, count) for seed in range(count)]


def _cell(mechanism: Any, seed: int, value: int) -> int:
    integers = mechanism.parameters
    if "cells" not in integers:
        return value
    return cell(seed, value, integers["cells"], integers["dimensions"])


def _payload(mechanism: Any, seed: bytes, symbol: bytes) -> bytes:
    """What is sent: with hashing, the seed and the cell as one number."""
    integers = mechanism.parameters
    if "cells" not in integers:
        return symbol
    cells, count = integers["cells"], len(_seeds(mechanism)) * integers["cells"]
    return number(int.from_bytes(seed, "big") * cells + int.from_bytes(symbol, "big"), count)


def _symbols(mechanism: Any, link: Link, own: int) -> Law:
    k = chain_of(mechanism).k
    if is_unary(mechanism):
        return _vectors([link.own if i == own else link.other for i in range(k)])
    return _numbers(k, link, own)


def _vectors(rises: Sequence[Fraction]) -> Law:
    """Independent bits that are 1 with these probabilities."""
    return {
        vector(bits): prod(
            (p if bit else 1 - p for p, bit in zip(rises, bits, strict=True)), start=Fraction(1)
        )
        for bits in product((0, 1), repeat=len(rises))
    }


def _numbers(k: int, link: Link, own: int) -> Law:
    return {number(x, k): link.own if x == own else link.other for x in range(k)}


# -- What leaves the device ---------------------------------------------------------------


def history_law(mechanism: Any, values: tuple[int, ...]) -> HistoryLaw:
    """All rounds of a device jointly, in closed form: rounds of one row share it, and no other.

    values[t]: its value in round t.
    """
    if is_unary(mechanism):
        return _possible(_unary_history(chain_of(mechanism), values))
    chain, seeds = chain_of(mechanism), _seeds(mechanism)
    law: HistoryLaw = {}
    for number_of_seed, seed in enumerate(seeds):
        places = tuple(_cell(mechanism, number_of_seed, value) for value in values)
        for symbols, p in _response_history(chain, places).items():
            payloads = tuple(_payload(mechanism, seed, symbol) for symbol in symbols)
            law[payloads] = p / len(seeds)
    return _possible(law)


def report_law(mechanism: Any, value: int) -> Law:
    """Of a single round."""
    return {payload: p for (payload,), p in history_law(mechanism, (value,)).items()}


def pair_chance(mechanism: Any, value: int, first: int, second: int) -> Fraction:
    """The probability that a report of `value` supports two different values at once."""
    chain = chain_of(mechanism)
    if is_unary(mechanism):
        own = value in (first, second)
        return (chain.report.own if own else chain.report.other) * chain.report.other
    if "cells" not in mechanism.parameters:
        return Fraction(0)
    seeds = range(len(_seeds(mechanism)))
    hashed = ([_cell(mechanism, seed, v) for v in (value, first, second)] for seed in seeds)
    told = (
        (chain.report.own if own == one else chain.report.other)
        for own, one, other in hashed
        if one == other
    )
    return sum(told, start=Fraction(0)) / len(seeds)


@cache
def _response_history(chain: Chain, places: tuple[int, ...]) -> HistoryLaw:
    """Of numbers: every row is some number, and its rounds are about that."""
    law: HistoryLaw = {}
    for told in product(range(chain.k), repeat=len(places)):
        p = Fraction(1)
        for place in set(places):
            rounds = [said for said, at in zip(told, places, strict=True) if at == place]
            p *= sum(
                (chain.row.own if row == place else chain.row.other)
                * prod(chain.round.own if said == row else chain.round.other for said in rounds)
                for row in range(chain.k)
            )
        law[tuple(number(said, chain.k) for said in told)] = p
    return law


def _unary_history(chain: Chain, values: tuple[int, ...]) -> HistoryLaw:
    """Of bits: every one is a chain of its own."""
    vectors = list(product((0, 1), repeat=chain.k))
    law: HistoryLaw = {}
    for told in product(vectors, repeat=len(values)):
        p = Fraction(1)
        for value, i in product(set(values), range(chain.k)):
            ones = [bits[i] for bits, at in zip(told, values, strict=True) if at == value]
            one = chain.row.own if i == value else chain.row.other
            p *= one * _bits(ones, chain.round.own) + (1 - one) * _bits(ones, chain.round.other)
        law[tuple(map(vector, told))] = p
    return law


def _bits(told: Sequence[int], rises: Fraction) -> Fraction:
    return prod((rises if one else 1 - rises for one in told), start=Fraction(1))
