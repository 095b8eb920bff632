"""Who sees everything that one device ever sent, and wants to know more than it tells."""

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, log
from typing import Any, NamedTuple

from hubbub.mechanisms import MemoisedLocalHashing, MemoisedUnary
from tests.laws import specified_law
from tests.memoised_laws import Chain, chain_of
from tests.payloads import cell
from tests.years import Answer, Secret

Run = Counter[bytes]
"""How often each payload came, on days of one value."""


def chance(seed: int) -> random.Random:
    """The simulated crowd's, and the attacker's: the same in every run."""
    return random.Random(seed)  # noqa: S311


class Attacker(NamedTuple):
    """Knows the mechanism, and that every secret is as likely; ties are decided by chance."""

    mechanism: Any
    secrets: Sequence[Secret]
    ties: random.Random
    fresh: bool
    """Whether every report was drawn afresh: without a memo, or with a new one every day."""

    def majority(self, sent: Sequence[Answer]) -> Secret:
        """The secret that most reports support."""

        def support(secret: Secret) -> int:
            return sum(
                times
                for value, run in zip(secret, self._runs(sent, len(secret)), strict=True)
                for payload, times in run.items()
                if value in _supported(self.mechanism, payload)
            )

        return self._best([support(secret) for secret in self.secrets])

    def likelihood(self, sent: Sequence[Answer]) -> Secret:
        """The likeliest secret: no attack finds it more often."""
        runs = self._runs(sent, len(self.secrets[0]))
        return self._best([round(self._log_likelihood(secret, runs), 9) for secret in self.secrets])

    def _best(self, scores: Sequence[float]) -> Secret:
        best = max(scores)
        return self.ties.choice(
            [secret for secret, score in zip(self.secrets, scores, strict=True) if score == best]
        )

    def _runs(self, sent: Sequence[Answer], cycle: int) -> list[Run]:
        runs = [Run() for _ in range(cycle)]
        for number, payload in sent:
            runs[number % cycle][payload] += 1
        return runs

    def _log_likelihood(self, secret: Secret, runs: Sequence[Run]) -> float:
        if self.fresh:
            pairs = zip(secret, runs, strict=True)
            return sum(_fresh_likelihood(self.mechanism, value, run) for value, run in pairs)
        merged: dict[int, Run] = {}
        for value, run in zip(secret, runs, strict=True):
            merged.setdefault(self._row(value, run), Run()).update(run)
        return sum(memo_likelihood(self.mechanism, row, run) for row, run in merged.items())

    def _row(self, value: int, run: Run) -> int:
        if not isinstance(self.mechanism, MemoisedLocalHashing):
            return value
        seed, _ = self.mechanism.read(next(iter(run)))
        return cell(seed, value, self.mechanism.cells, self.mechanism.dimensions)


@cache
def _supported(mechanism: Any, payload: bytes) -> list[int]:
    found: list[int] = mechanism.supported(payload)
    return found


@cache
def _chances(mechanism: Any, value: int) -> dict[bytes, float]:
    return {payload: log(p) for payload, p in specified_law(mechanism, value).items()}


@cache
def _chain(mechanism: Any) -> Chain:
    return chain_of(mechanism)


def _fresh_likelihood(mechanism: Any, value: int, run: Run) -> float:
    chances = _chances(mechanism, value)
    return sum(times * chances[payload] for payload, times in run.items())


def memo_likelihood(mechanism: Any, own: int, run: Run) -> float:
    """The logarithm of how likely a run of one row is, if the row tells the symbol `own`."""
    chain, n = _chain(mechanism), run.total()
    said = symbols(mechanism, run)
    rows = [chain.row.own if i == own else chain.row.other for i in range(chain.k)]
    right, wrong = log(chain.round.own), log(chain.round.other)
    if isinstance(mechanism, MemoisedUnary):
        return sum(
            _log_sum(
                log(one) + said[i] * right + (n - said[i]) * wrong,
                log(1 - one) + said[i] * wrong + (n - said[i]) * right,
            )
            for i, one in enumerate(rows)
        )
    return _log_sum(
        *(log(row) + said[i] * right + (n - said[i]) * wrong for i, row in enumerate(rows))
    )


def _log_sum(*terms: float) -> float:
    highest = max(terms)
    return highest + log(sum(exp(term - highest) for term in terms))


def symbols(mechanism: Any, run: Run) -> Counter[int]:
    """How often a run's reports said each of what rows are about: bits, numbers, cells."""
    said = Counter[int]()
    for payload, times in run.items():
        hashed = isinstance(mechanism, MemoisedLocalHashing)
        told = [mechanism.read(payload)[1]] if hashed else _supported(mechanism, payload)
        said.update(dict.fromkeys(told, times))
    return said


# Decode and compare: the attack of hubbub.exposure.

Guesses = dict[tuple[int, ...], Fraction]
"""How likely each guess of a row is: a number, or bits."""


def guesses(mechanism: Any, run: Run) -> Guesses:
    """The row behind a run, by majority; ties by chance."""
    said, k = symbols(mechanism, run), _chain(mechanism).k
    if not isinstance(mechanism, MemoisedUnary):
        most = max(said.values(), default=0)
        first = [symbol for symbol in range(k) if said[symbol] == most]
        return {(symbol,): Fraction(1, len(first)) for symbol in first}
    n = run.total()
    bits = [(0, 1) if 2 * said[i] == n else (int(2 * said[i] > n),) for i in range(k)]
    chosen = list(product(*bits))
    return {guess: Fraction(1, len(chosen)) for guess in chosen}


def places_apart(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """In how many places two guesses differ."""
    return sum(a != b for a, b in zip(one, other, strict=True))


def compare(mechanism: Any, first: Run, second: Run, ties: random.Random) -> int:
    """In how many places the rows behind two runs seem to differ."""
    one, other = (
        ties.choice(list(guesses(mechanism, run)))  # All are as likely.
        for run in (first, second)
    )
    return places_apart(one, other)
