"""What is proved about the memoised mechanisms beside what holds of a single round.

Memo and round are walked one by one: since a round sees nothing of a memo's making but the memo,
the laws of both give that of any number of rounds. Every check raises AssertionError if it fails.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

from tests import memoised_laws, payloads
from tests.core import HUGE, MEMOISED_NONSENSE, MEMOISED_SMALL, Core
from tests.layouts import Constant
from tests.memoised_laws import HistoryLaw, resolution_of
from tests.proofs import every_tape, has_ratio
from tests.tapes import Law, Walk, law_of


class Walked(NamedTuple):
    """What a mechanism does with every tape."""

    mechanism: Any
    memos: list[Walk]
    rounds: dict[tuple[bytes, int], list[Walk]]
    """By memo and value."""

    @property
    def memo_law(self) -> Law:
        law: Law = law_of(self.memos)
        return law

    def history_law(self, values: tuple[int, ...]) -> HistoryLaw:
        """All rounds of a device jointly; values[t]: its value in round t."""
        law: HistoryLaw = {}
        laws = {key: law_of(walks) for key, walks in self.rounds.items()}
        for memo, chance in self.memo_law.items():
            rounds = [laws[memo, value].items() for value in values]
            for told in product(*rounds):
                sequence = tuple(payload for payload, _ in told)
                p = prod((p for _, p in told), start=chance)
                law[sequence] = law.get(sequence, Fraction(0)) + p
        return law


def walked(mechanism: Any) -> Walked:
    base = resolution_of(mechanism).base
    memos = every_tape(base, mechanism.memorise)
    distinct = {one.payload for one in memos}
    rounds = {
        (memo, value): every_tape(
            base, lambda source, at=(memo, value): mechanism.respond(*at, source)
        )
        for memo, value in product(distinct, range(mechanism.k))
    }
    return Walked(mechanism, memos, rounds)


def check_memo(seen: Walked) -> None:
    """All rows have the specified law, jointly, and a memo takes one amount of randomness."""
    assert seen.memo_law == memoised_laws.memo_law(seen.mechanism)
    assert {len(one.payload) for one in seen.memos} == {seen.mechanism.memo_size}
    assert len({one.calls for one in seen.memos}) == 1


def check_response(seen: Walked) -> None:
    """Given the memo a round tells the value's row and no more, not even by what it draws."""
    for (memo, value), walks in seen.rounds.items():
        assert law_of(walks) == memoised_laws.response_law(seen.mechanism, memo, value)
    first, *others = ([(one.tape, one.calls) for one in walks] for walks in seen.rounds.values())
    assert len({calls for _, calls in first}) == 1
    for other in others:
        assert other == first


def check_histories(seen: Walked) -> None:
    """Two rounds have the specified joint law, whatever the two values."""
    for history in product(range(seen.mechanism.k), repeat=2):
        assert seen.history_law(history) == memoised_laws.history_law(seen.mechanism, history)


def check_row_ratio(seen: Walked) -> None:
    """Rows of two values are as far apart as is certified, and no further."""
    mechanism, law = seen.mechanism, seen.memo_law
    size = len(next(iter(law))) // mechanism.rows
    rows: list[Law] = [{} for _ in range(mechanism.rows)]
    for memo, p in law.items():
        symbols = memo[len(memo) - size * mechanism.rows :]
        for place, row in enumerate(rows):
            symbol = symbols[place * size : (place + 1) * size]
            row[symbol] = row.get(symbol, Fraction(0)) + p
    worst = max(
        max(one[symbol] / other[symbol], other[symbol] / one[symbol])
        for one, other in combinations(rows, 2)
        for symbol in one
    )
    assert worst == mechanism.row_ratio


def check_carried(seen: Walked) -> None:
    """How often two rounds both support a value is what pooled estimates take for granted."""
    mechanism = seen.mechanism
    for value in range(mechanism.k):
        law = seen.history_law((value, value))
        for other in range(mechanism.k):
            both = sum(
                p
                for told, p in law.items()
                if all(other in mechanism.supported(payload) for payload in told)
            )
            assert both == mechanism.carried[other != value]


CHECKS: dict[str, Callable[[Walked], None]] = {
    "memo": check_memo,
    "response": check_response,
    "histories": check_histories,
    "row-ratio": check_row_ratio,
    "carried": check_carried,
}


@lru_cache(maxsize=8)
def _small(core: Core, name: str) -> list[Walked]:
    return [walked(mechanism) for mechanism in core.small(name)]


def _names(core: Core) -> list[str]:
    return [name for name in core.names if name in MEMOISED_SMALL]


def _by_enumeration(check: Callable[[Walked], None]) -> Callable[[Core], None]:
    def prove(core: Core) -> None:
        for name in _names(core):
            for seen in _small(core, name):
                check(seen)

    return prove


def prove_chain(core: Core) -> None:
    """Calibrated rounds and rows keep their ε, and a step more telling a round would not."""
    for name, (permanent, epsilon) in product(_names(core), (("1", "0.5"), ("2", "1"))):
        for k in (2, 7):
            mechanism = core.memoised(name, k, permanent=permanent, epsilon=epsilon)
            row, report = map(core.exact.Epsilon.parse, (permanent, epsilon))
            assert has_ratio(mechanism)
            assert core.exact.Certificate(row, mechanism.row_ratio).holds
            assert core.exact.Certificate(report, mechanism.ratio).holds
            assert not core.exact.Certificate(report, _nudged(mechanism).ratio).holds


def _nudged(mechanism: Any) -> Any:
    """The same mechanism, its rounds one step more telling."""
    if "cells" in mechanism.parameters:
        return mechanism._replace(chain=_nudged(mechanism.chain))
    if "flip" in mechanism.parameters:
        return mechanism._replace(flip=mechanism.flip - 1)
    return mechanism._replace(keep=mechanism.keep + 1)


def prove_refusals(core: Core) -> None:
    """Parameters that make no mechanism have no ratio."""
    for name in _names(core):
        for integers in MEMOISED_NONSENSE[name]:
            mechanism = core.of(name, *integers)
            assert not has_ratio(mechanism), mechanism


def prove_hashes(core: Core) -> None:
    """Any two values fall into the same cell under exactly one in `cells` of the hashes."""
    if "memoised-local-hashing" not in core.names:
        return
    for cells, dimensions in ((2, 2), (2, 4), (3, 2), (3, 3), (5, 2), (7, 2)):
        k = len(payloads.points(cells, dimensions))
        hashing = core.of("memoised-local-hashing", k, HUGE // 4 * 3, HUGE, cells, dimensions)
        seeds = range(hashing.seeds)
        fallen = [[hashing.cell(seed, value) for seed in seeds] for value in range(k)]
        assert fallen == [
            [payloads.cell(seed, value, cells, dimensions) for seed in seeds] for value in range(k)
        ]
        for one, other in combinations(fallen, 2):
            alike = sum(a == b for a, b in zip(one, other, strict=True))
            assert alike * cells == hashing.seeds


def prove_layout(core: Core) -> None:
    """What memos and payloads of more than one byte say: digits that lie nowhere are drawn."""
    for name in _names(core):
        if "unary" in name:
            for k in (9, 16, 20):
                vectors = [payloads.vector(tuple(int(i == v) for i in range(k))) for v in range(k)]
                _check_layout(core.memoised(name, k), Constant(255), vectors)
        elif name == "memoised-randomised-response":
            numbers = [payloads.number(value, 300) for value in range(300)]
            _check_layout(core.memoised(name, 300), Constant(0), numbers)
        else:
            _check_hashing_layout(core.memoised(name, 300, cells=5))


def _check_layout(mechanism: Any, honest: Constant, symbols: list[bytes]) -> None:
    memo = mechanism.memorise(honest)
    assert memo == b"".join(symbols)
    for value, symbol in enumerate(symbols):
        assert mechanism.respond(memo, value, honest) == symbol
        assert mechanism.supported(symbol) == [value]


def _check_hashing_layout(hashing: Any) -> None:
    honest, cells, seeds = Constant(0), hashing.cells, hashing.cells**hashing.dimensions
    rows = b"".join(payloads.number(cell, cells) for cell in range(cells))
    assert hashing.memorise(honest) == payloads.number(0, seeds) + rows
    for seed in (0, 1, seeds // 3, seeds - 1):
        memo = payloads.number(seed, seeds) + rows
        fallen = [payloads.cell(seed, v, cells, hashing.dimensions) for v in range(hashing.k)]
        for value, cell in enumerate(fallen):
            payload = payloads.number(seed * cells + cell, seeds * cells)
            assert hashing.respond(memo, value, honest) == payload
            assert hashing.read(payload) == (seed, cell)
        for cell in range(cells):
            payload = payloads.number(seed * cells + cell, seeds * cells)
            assert hashing.supported(payload) == [
                value for value, at in enumerate(fallen) if at == cell
            ]


MEMOISED_PROOFS: dict[str, Callable[[Core], None]] = {
    **{name: _by_enumeration(check) for name, check in CHECKS.items()},
    "chain": prove_chain,
    "memoised-refusals": prove_refusals,
    "hashes": prove_hashes,
    "memoised-layout": prove_layout,
}
