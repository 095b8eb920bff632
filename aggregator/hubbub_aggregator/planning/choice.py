"""Which mechanism, with which parameters, is the most accurate for a domain and an ε.

All of this is decided before a contract is signed, and none of it is about privacy: whatever
is chosen here, the contract's integers are rounded towards more noise and proved on their own.
So parameters are compared in floating point, with e^ε as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key, partial
from math import isclose
from typing import Any, Final, TypeVar

import numpy as np

from hubbub.exact import Epsilon
from hubbub.limits import MAX_VALUES
from hubbub.mechanisms import MECHANISMS, MEMOISED, Mechanism
from hubbub_aggregator.planning.parameters import choices

Ranked = TypeVar("Ranked", bound=Mechanism)

# Variances closer than this, relatively, are the same law in two forms: subset selection with
# one value is randomised response. The first in MECHANISMS, which is the simpler, is taken.
_SAME: Final = 1e-9

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


def best(name: str, k: int, epsilon: Epsilon, aim: Aim = ANY) -> Mechanism:
    """The named mechanism, with the parameters of the smallest variance at the aim.

    `k`: values in [2, 65,536], or for local hashing 2^61 − 1, an open domain; ε at most 8.
    Raises NothingFits.
    """
    kind: Any = MECHANISMS[name]
    possible = choices(name, k, epsilon)
    sizes: list[int] = []
    for row in np.argsort(possible.variances(aim.share), kind="stable"):
        parameters = [int(x) for x in possible.parameters[row]]
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
    return by_variance(found, aim.share)


def by_variance(found: Sequence[Ranked], share: float) -> list[Ranked]:
    """Mechanisms, the simpler before the other, by what they come to at a share: least first."""
    return sorted(found, key=cmp_to_key(partial(_order, share=share)))


def _order(one: Mechanism, other: Mechanism, share: float) -> int:
    a, b = variance_at(one, share), variance_at(other, share)
    return 0 if isclose(a, b, rel_tol=_SAME) else 1 if a > b else -1


def explain(ranking: Sequence[Mechanism], aim: Aim = ANY) -> str:
    """Why the first of `ranked` is the first, for a person: a sentence without its full stop."""
    first, *others = ranking
    if first.k > MAX_VALUES:
        reason = "the only one for an open domain"
    elif not others:
        reason = "nothing else fits"
    elif _order(first, others[0], aim.share) == 0:
        reason = f"as accurate as {others[0].name}, and simpler"
    else:
        less = 100 * (1 - variance_at(first, aim.share) / variance_at(others[0], aim.share))
        reason = f"{_percent(less)} less variance than the next, {others[0].name}"
    return f"{first.name}: {reason}"


def chosen(mechanism: Mechanism) -> dict[str, int]:
    """The parameters that were a choice: all but the thresholds, which follow from ε."""
    thresholds = 2 if mechanism.name in MEMOISED else 1
    return dict(list(mechanism.parameters.items())[thresholds:])


def size_of(mechanism: Mechanism) -> str:
    """What was chosen for a mechanism and how large its reports are: "size 34, 16 bytes"."""
    parameters = [f"{name} {number}" for name, number in chosen(mechanism).items()]
    return ", ".join([*parameters, _byte_count(mechanism.payload_size)])


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
    """The smallest `variance_at`, over all values alike, of any ε-locally private mechanism.

    One that asks about a single value alone can do better for that one. For k in [2, 65,536]
    values. It is subset selection's at its best size, with e^ε itself in
    place of an integer threshold ("Strict Optimality of Frequency and Distribution Estimation
    Under Local Differential Privacy", arXiv 2603.11523).
    """
    return float(choices("subset-selection", k, epsilon).variances(share).min())
