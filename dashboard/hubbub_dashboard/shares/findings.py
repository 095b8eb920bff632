"""What a snapshot says, in the sentences that are read first. Pure; plain text, not markup."""

import math
from collections.abc import Sequence
from typing import Final

from hubbub_dashboard import text
from hubbub_dashboard.few_reports import WIDEST, quantile_at_once, widest
from hubbub_dashboard.reading.answers import Estimates, RoundState, Value
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares.selection import Selection

# So many values are named one by one, and as many others would take no less room than they do.
_NAMED: Final = 3
_MOST_NAMED: Final = 5

# Shares to be seen, where no estimate says which.
_USUAL_SHARES: Final = (0.1, 0.01, 0.001)

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
        if len(values) <= _MOST_NAMED:
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
    named = len(largest) if len(largest) <= _MOST_NAMED else _NAMED
    names = [text.quoted(value.label) for value in largest[:named]]
    if named < len(largest):
        names.append(f"{text.count(len(largest) - named)} more")
    return text.listed(names)


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


@derived
def sureness(estimates: Estimates, places: int) -> str:
    """Say how sure the shares are, and what it takes to be twice as sure."""
    one = max(value.high - value.low for value in estimates.values) / 2
    every = max(value.simultaneous_high - value.simultaneous_low for value in estimates.values) / 2
    n = estimates.n
    if estimates.state is RoundState.CLOSED:
        more = f"Half of that takes four times as many reports, {text.count(4 * n)} in a round."
    else:
        more = f"Half of that takes four times as many reports: {text.count(3 * n)} more."
    return (
        f"How sure: the share of a value chosen beforehand is known to "
        f"±{text.points(one, places)} or better, all of them at once to "
        f"±{text.points(every, places)} ({text.level(estimates.level)}). {more}"
    )


@derived
def more_reports(estimates: Estimates, places: int) -> str | None:
    """Say how many reports would show the largest value that is not found, if one is."""
    doubtful = [value for value in estimates.values if not value.found]
    if not doubtful:
        return None
    value = max(doubtful, key=lambda value: value.estimate)
    name = text.quoted(value.label)
    if value.simultaneous_low > 0:
        return (
            f"{name} would count as present if the round closed now; while it is open a stricter "
            f"rule decides."
        )
    closed = estimates.state is RoundState.CLOSED
    when = "" if closed else ", once it is closed,"
    needed = reports_to_find(value, estimates, value.estimate)
    if needed is not None:
        so_many = f"a round of about {text.counted(needed, 'report')}"
        if not closed and needed > estimates.n:
            more = text.rounded_up(needed - estimates.n, 2)
            so_many = f"about {text.count(more)} more in this round"
        return (
            f"How many more: if {name} really has the {text.percent(value.estimate, places)} that "
            f"it looks like, {so_many} would{when} show it, in 4 of 5 cases."
        )
    for share in _USUAL_SHARES:
        needed = reports_to_find(value, estimates, share)
        if needed is not None and needed > estimates.n:
            return (
                f"How many more: if a value has {text.percent(share, 0 if share > 0.001 else 1)}, "
                f"a round of about {text.counted(needed, 'report')} would{when} show it, in 4 of 5 "
                f"cases. The page Plan has a field for any share."
            )
    return None


@derived
def few_reports(estimates: Estimates) -> str | None:
    """Warn of a round that says next to nothing, if it does."""
    influence = max(value.influence for value in estimates.values)
    wide = widest(estimates.n, len(estimates.values), influence, estimates.level)
    if wide <= WIDEST:
        return None
    return (
        f"Too few reports to say much: a share may be off by more than "
        f"{text.points(WIDEST / 2, 0)}, and the page Over time leaves this round out."
    )


def of_match(selection: Selection, find: str) -> str | None:
    """Say of a value that was searched for, if it is one, whether it is there."""
    if not find or len(selection.values) != 1 or selection.matches != 1:
        return None
    (value,) = selection.values
    name = text.quoted(value.label)
    low, high = value.simultaneous_low, value.simultaneous_high
    if value.found:
        share = text.percent(value.estimate, selection.places)
        between = text.interval(low, high, selection.places)
        return f"{name} is really there: {share} ({between}, with all values at once)."
    most = text.percent(max(0.0, text.visible(high, selection.places)), selection.places)
    return (
        f"{name} is {selection.doubt}. If it is there, {most} have it at most (by the interval "
        f"that holds for all values at once)."
    )


def reports_to_find(value: Value, estimates: Estimates, share: float) -> int | None:
    """How many reports show such a share of a value in 4 of 5 closed rounds; two digits.

    By the arcsine of the rates of support, on which a count's spread is the same everywhere: of a
    value with this share, and of one that nobody has. None: out of reach, or no share at all.
    """
    n = estimates.n
    everybody, nobody = support(value, n)
    somebody = nobody + share * (everybody - nobody)
    if not 0 <= nobody < somebody <= 1:
        return None
    z = quantile_at_once(len(estimates.values), estimates.level)
    distance = 2 * (math.asin(math.sqrt(somebody)) - math.asin(math.sqrt(nobody)))
    needed = ((z + POWER) / distance) ** 2
    return text.rounded_up(needed, 2) if needed <= MOST_TIMES * n else None


def support(value: Value, n: int) -> tuple[float, float]:
    """The mechanism's p and q: which share of n reports supports a value that everybody has, and
    one that nobody has."""
    apart = 1 / (n * value.influence)
    nobody = value.count / n - value.estimate * apart
    return nobody + apart, nobody
