"""What a snapshot says, in the sentences that are read first. Pure; plain text, not markup."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from hubbub_dashboard import text
from hubbub_dashboard.reading.answers import Estimates, RoundState, Value
from hubbub_dashboard.reading.derived import derived

# So many values are named one by one.
_NAMED: Final = 3

# Normal quantile: what is really there is seen in 4 of 5 collections.
POWER: Final = 0.8416

# More than this many times the reports is out of reach, and so not said.
MOST_TIMES: Final = 1_000


@derived
def answer(estimates: Estimates) -> str:
    """Say which values are really there."""
    final = estimates.state is RoundState.CLOSED
    values = estimates.values
    found = [value for value in values if value.found]
    doubtful = [value for value in values if not value.found]
    yet = "" if final else " yet"
    if not found:
        return f"No value can be told from zero{yet}: all of it may be noise."
    if not doubtful:
        if len(values) <= _NAMED:
            return f"All {len(values)} values are really there: {_named(found)}."
        return f"All {text.count(len(values))} values are really there."
    there = (
        f"{text.count(len(found))} of {text.count(len(values))} values "
        f"{'is' if len(found) == 1 else 'are'} really there: {_named(found)}."
    )
    if len(doubtful) <= _NAMED:
        return f"{there} {_capital(_named(doubtful))} cannot be told from zero{yet}."
    return f"{there} The others cannot be told from zero{yet}."


def _named(values: Sequence[Value]) -> str:
    """The largest by name, and how many more there are."""
    largest = sorted(values, key=lambda value: -value.estimate)
    names = [text.quoted(value.label) for value in largest[:_NAMED]]
    if len(largest) > _NAMED:
        names.append(f"{text.count(len(largest) - _NAMED)} more")
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


@derived
def sureness(estimates: Estimates, places: int) -> str:
    """Say how sure the shares are, and what it takes to be twice as sure."""
    half = max(value.high - value.low for value in estimates.values) / 2
    n = estimates.n
    if estimates.state is RoundState.CLOSED:
        more = f"Half of that takes four times as many reports, {text.count(4 * n)} in a round."
    else:
        more = f"Half of that takes four times as many reports: {text.count(3 * n)} more."
    return (
        f"How sure: each share by itself is known to ±{text.points(half, places)} or better "
        f"({text.level(estimates.level)}). {more}"
    )


@derived
def more_reports(estimates: Estimates, places: int) -> str | None:
    """Say how many reports would show the largest value that is not found, if one is."""
    # Nothing can really have more than everybody.
    doubtful = [value for value in estimates.values if not value.found and 0 < value.estimate <= 1]
    if not doubtful:
        return None
    value = max(doubtful, key=lambda value: value.estimate)
    name = text.quoted(value.label)
    if value.simultaneous_low > 0:
        return (
            f"{name} would count as present if the round closed now; while it is open a stricter "
            f"rule decides."
        )
    needed = reports_to_find(value, estimates)
    if needed is None:
        return None
    when = "" if estimates.state is RoundState.CLOSED else ", once it is closed,"
    return (
        f"How many more: if {name} really has {text.percent(value.estimate, places)}, a round of "
        f"about {text.counted(needed, 'report')} would{when} show it, in 4 of 5 cases."
    )


def reports_to_find(value: Value, estimates: Estimates) -> int | None:
    """How many reports show a share in 4 of 5 closed rounds, if it is as estimated; two digits.

    By the arcsine of the rates of support, on which a count's spread is the same everywhere: of a
    value with this share, and of one that nobody has. None: out of reach, or no share at all.
    """
    n, share = estimates.n, value.estimate
    everybody, nobody = support(value, n)
    somebody = nobody + share * (everybody - nobody)
    if not 0 <= nobody < somebody <= 1:
        return None
    miss = -math.expm1(math.log(estimates.level) / len(estimates.values))
    z = NormalDist().inv_cdf(1 - miss / 2)
    distance = 2 * (math.asin(math.sqrt(somebody)) - math.asin(math.sqrt(nobody)))
    needed = ((z + POWER) / distance) ** 2
    return text.rounded_up(needed, 2) if needed <= MOST_TIMES * n else None


def support(value: Value, n: int) -> tuple[float, float]:
    """The mechanism's p and q: which share of n reports supports a value that everybody has, and
    one that nobody has."""
    apart = 1 / (n * value.influence)
    nobody = value.count / n - value.estimate * apart
    return nobody + apart, nobody
