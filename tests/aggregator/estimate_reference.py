"""Estimates again, from their definitions, in fractions and 50-digit decimals.

Shares no code with what it is there to check: no numpy, no scipy, no Hubbub; quantiles and
roots are found by bisection, ranks by comparing all pairs. Run it to write the vectors:

    python -m tests.aggregator.estimate_reference > tests/vectors/estimates.json
"""

import json
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cache
from itertools import count as count_from
from math import comb, floor
from typing import Any

getcontext().prec = 50
STEPS = 110  # halvings: 2^−110 of the first bracket is far below the 15 digits written
NEGLIGIBLE = Decimal("1e-45")

CASES: list[dict[str, Any]] = [
    {"mechanism": "randomised-response", "k": 2, "epsilon": "1", "counts": [620, 380]},
    {"mechanism": "randomised-response", "k": 4, "epsilon": "ln 3", "counts": [20, 0, 0, 0]},
    {
        "mechanism": "randomised-response",
        "k": 6,
        "epsilon": "2",
        "counts": [41_000, 9_000, 9_100, 11_900, 15_000, 14_000],
    },
    {"mechanism": "randomised-response", "k": 100, "epsilon": "4", "counts": [9] + [0] * 99},
    {
        "mechanism": "symmetric-unary",
        "k": 4,
        "epsilon": "1",
        "n": 600,
        "counts": [300, 227, 0, 600],
    },
    {"mechanism": "symmetric-unary", "k": 2, "epsilon": "0.000001", "n": 999, "counts": [500, 480]},
    {"mechanism": "symmetric-unary", "k": 2, "epsilon": "ln 9", "n": 1, "counts": [1, 0]},
    {
        "mechanism": "optimised-unary",
        "k": 5,
        "epsilon": "1",
        "n": 2_000,
        "counts": [0, 520, 538, 700, 1_000],
    },
    {"mechanism": "optimised-unary", "k": 3, "epsilon": "4", "n": 30, "counts": [30, 1, 0]},
    {"mechanism": "optimised-unary", "k": 3, "epsilon": "0.5", "n": 20, "counts": [20, 8, 7]},
    {
        "mechanism": "subset-selection",
        "k": 8,
        "parameters": {"size": 2},
        "epsilon": "1",
        "n": 1_500,
        "counts": [326, 420, 300, 380, 327, 350, 400, 497],
    },
    {
        "mechanism": "projective-geometry",
        "k": 4,
        "parameters": {"field": 3, "dimensions": 3},
        "epsilon": "2",
        "n": 900,
        "counts": [243, 400, 250, 300],
    },
    {
        "mechanism": "local-hashing",
        "k": 5,
        "parameters": {"buckets": 3, "prime": 65_537},
        "epsilon": "1",
        "n": 29,
        "counts": [9, 16, 10, 7, 29],
    },
]
LEVELS = {"respondents": ["0.95", "0.8"], "population": ["0.95", "0.999"]}


def support(
    mechanism: str, k: int, parameters: dict[str, int], epsilon: str
) -> tuple[Fraction, Fraction]:
    """p and q from 64-bit thresholds, rounded towards more noise."""
    e = Decimal(epsilon.removeprefix("ln ")) if "ln" in epsilon else Decimal(epsilon).exp()
    one = 2**64
    if mechanism == "randomised-response":
        keep = floor(one * e / (e + k - 1))
        return Fraction(keep, one), Fraction(one - keep, one * (k - 1))
    if mechanism == "symmetric-unary":
        faithful = floor(one * e.sqrt() / (e.sqrt() + 1))
        return Fraction(faithful, one), Fraction(one - faithful, one)
    if mechanism == "optimised-unary":
        return Fraction(1, 2), Fraction(one - floor(one * e / (e + 1)), one)
    if mechanism == "subset-selection":
        size = parameters["size"]
        included = Fraction(floor(one * size * e / (size * e + k - size)), one)
        # Of the others there are size − 1, or size.
        return included, (included * (size - 1) + (1 - included) * size) / (k - 1)
    if mechanism == "projective-geometry":
        field, dimensions = parameters["field"], parameters["dimensions"]
        cells, near, both = (sum(field**i for i in range(dimensions - j)) for j in range(3))
        within = Fraction(floor(one * near * e / (near * e + cells - near)), one)
        lies = (1 - within) / (cells - near)
        return within, within / near * both + lies * (near - both)
    buckets, prime = parameters["buckets"], parameters["prime"]
    keep = Fraction(floor(one * e / (e + buckets - 1)), one)
    sizes = Counter(x * buckets // prime for x in range(prime)).values()
    alike = Fraction(sum(size**2 for size in sizes), prime**2)
    return keep, keep * alike + (1 - keep) / (buckets - 1) * (1 - alike)


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def root(low: Decimal, high: Decimal, rises: Callable[[Decimal], Decimal]) -> Decimal:
    """Where an increasing function is 0 between low and high."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2


def normal_quantile(probability: Decimal) -> Decimal:
    """For probabilities above 1/2, by the series of the normal integral."""

    def above(z: Decimal) -> Decimal:
        term = total = z
        for i in count_from(1):
            term = -term * z * z / (2 * i)
            total += term / (2 * i + 1)
            if abs(term) < NEGLIGIBLE:
                break
        return Decimal("0.5") + total / (2 * PI).sqrt() - probability

    return root(Decimal(0), Decimal(10), above)


def arctangent(inverse: int) -> Decimal:
    x = 1 / Decimal(inverse)
    return sum(((-1) ** i * x ** (2 * i + 1) / (2 * i + 1) for i in range(45)), Decimal(0))


PI = 16 * arctangent(5) - 4 * arctangent(239)  # Machin


@cache
def choose(n: int, k: int) -> Decimal:
    return Decimal(comb(n, k))


def upper_tail(n: int, least: int, rate: Decimal) -> Decimal:
    """P(Bin(n, rate) ≥ least), for `least` above the mean."""
    term = total = choose(n, least) * rate**least * (1 - rate) ** (n - least)
    for i in range(least, n):
        term = term * (n - i) / (i + 1) * rate / (1 - rate)
        total += term
        if term < NEGLIGIBLE * total:
            break
    return total


def exact_low(n: int, count: int, tail: Decimal) -> Decimal:
    if count == 0:
        return Decimal(0)
    # Below count/n, where tails under 1/2 are, the terms fall from the first one on.
    return root(Decimal(0), Decimal(count) / n, lambda x: upper_tail(n, count, x) - tail)


def exact(n: int, count: int, tail: Decimal) -> tuple[Decimal, Decimal]:
    """Rates at which the count, or a more distant one, has probability `tail`."""
    return exact_low(n, count, tail), 1 - exact_low(n, n - count, tail)


def score(
    n: int, count: int, rates: tuple[Decimal, Decimal], z: Decimal, target: str
) -> tuple[Decimal, Decimal]:
    """Rates that lie exactly z standard deviations, taken there, from the count's."""
    observed, (p, q) = Decimal(count) / n, rates

    def excess(rate: Decimal) -> Decimal:
        if target == "population":
            variance = rate * (1 - rate)
        else:
            share = (rate - q) / (p - q)
            variance = share * p * (1 - p) + (1 - share) * q * (1 - q)
        return (observed - rate) ** 2 - z * z / n * variance

    far = 2 * z * z / n + 2 * z / Decimal(n).sqrt()
    return (
        root(observed - far, observed, lambda x: -excess(x)),
        root(observed, observed + far, excess),
    )


def figures(case: dict[str, Any], target: str, level: str) -> dict[str, Any]:
    """Everything about every value of a case, by the names of the JSON output."""
    parameters = case.get("parameters", {})
    p, q = support(case["mechanism"], case["k"], parameters, case["epsilon"])
    counts, k = case["counts"], len(case["counts"])
    n = case.get("n", sum(counts))
    dp, dq, span = decimal(p), decimal(q), decimal(p - q)
    one_tail = (1 - Decimal(level)) / 2
    each_tail = (1 - (Decimal(level).ln() / k).exp()) / 2
    z = normal_quantile(1 - one_tail)
    known: dict[int, dict[str, Any]] = {}
    for count in set(counts):
        share = (Decimal(count) / n - dq) / span
        variance = (count * (1 - dp - dq) + n * dp * dq) / (n * span) ** 2
        if target == "population" and 0 < share < 1:
            variance += share * (1 - share) / n
        if n * min(q, 1 - p) < 10:
            alone = exact(n, count, one_tail)
        else:
            alone = score(n, count, (dp, dq), z, target)
        together = exact(n, count, each_tail)
        known[count] = {
            "estimate": share,
            "std_error": variance.sqrt(),
            "low": (alone[0] - dq) / span,
            "high": (alone[1] - dq) / span,
            "simultaneous_low": (together[0] - dq) / span,
            "simultaneous_high": (together[1] - dq) / span,
            "distinguishable": together[0] > dq,
            "influence": 1 / (n * span),
        }
    values = [known[count] for count in counts]
    for value in known.values():
        above = sum(u["simultaneous_low"] > value["simultaneous_high"] for u in values)
        below = sum(u["simultaneous_high"] < value["simultaneous_low"] for u in values)
        value["rank_low"], value["rank_high"] = 1 + above, k - below
    return {
        "mechanism": case["mechanism"],
        "k": case["k"],
        "parameters": parameters,
        "epsilon": case["epsilon"],
        "p": str(p),
        "q": str(q),
        "n": n,
        "counts": counts,
        "target": target,
        "level": float(level),
        # By count: values with the same count have the same figures.
        "figures": {
            str(count): {name: written(x) for name, x in known[count].items()}
            for count in sorted(known)
        },
    }


def written(x: Decimal | int | bool) -> float | int | bool:
    return float(f"{x:.15g}") if isinstance(x, Decimal) else x


if __name__ == "__main__":
    vectors = [
        json.dumps(figures(case, target, level))
        for case in CASES
        for target, levels in LEVELS.items()
        for level in levels
    ]
    sys.stdout.write("[\n" + ",\n".join(vectors) + "\n]\n")
