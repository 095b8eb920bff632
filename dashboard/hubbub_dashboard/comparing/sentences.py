"""What differs, in words. Pure; everything is plain text, not markup."""

from collections.abc import Iterable
from typing import Final

from hubbub_dashboard import text
from hubbub_dashboard.comparing.more_reports import reports_needed
from hubbub_dashboard.comparing.shown import Kind, Shown, kind_of
from hubbub_dashboard.reading.answers import Comparison, Difference, Estimates, Side

PURPOSE: Final = (
    "Two values, two rounds, or two metrics with the same values: what differs, and how surely."
)

# So many differences are told one by one.
_TOLD: Final = 3


def answer(comparison: Comparison, shown: Shown) -> str:
    """Say what differs: the sentence that is read first."""
    if not shown.final:
        return _preliminary(comparison, shown)
    if kind_of(comparison) is Kind.VALUES:
        return _of_two(comparison, shown)
    found = _largest(each for each in comparison.differences if each.distinguishable)
    if not found:
        return (
            f"{_capital(_name(comparison, comparison.left))} and "
            f"{_name(comparison, comparison.right)} cannot be told apart: no value's difference "
            f"stands out of the noise."
        )
    told = [_clause(comparison, each, shown.places) for each in found[:_TOLD]]
    more = len(found) - len(told)
    rest = len(comparison.differences) - len(found)
    return " ".join(
        (
            *told,
            *([f"{_more(more)} marked below."] if more else []),
            *([_others(rest)] if rest else []),
        )
    )


def _more(more: int) -> str:
    return "1 more differs, and is" if more == 1 else f"{text.count(more)} more differ, and are"


def _others(rest: int) -> str:
    if rest == 1:
        return "The other value cannot be told from no difference."
    return f"The other {text.count(rest)} values cannot be told from no difference."


def _preliminary(comparison: Comparison, shown: Shown) -> str:
    if kind_of(comparison) is Kind.VALUES:
        return f"Preliminary: {_of_two(comparison, shown)}"
    largest = _largest(comparison.differences)[0]
    if any(each.distinguishable for each in comparison.differences):
        return f"Preliminary: {_clause(comparison, largest, shown.places)}"
    one, other = (_name(comparison, side) for side in (comparison.left, comparison.right))
    return (
        f"Preliminary: {one} and {other} cannot be told apart so far. The largest difference is "
        f"that of {text.quoted(largest.left)}, which looks "
        f"{text.points(abs(largest.estimate), shown.places)} "
        f"{'higher' if largest.estimate >= 0 else 'lower'} in {one}."
    )


def _of_two(comparison: Comparison, shown: Shown) -> str:
    (difference,) = comparison.differences
    if difference.distinguishable:
        return _clause(comparison, difference, shown.places)
    first, second = text.quoted(difference.left), text.quoted(difference.right)
    low = _ahead(difference.simultaneous_low, shown.places)
    high = _ahead(difference.simultaneous_high, shown.places)
    return (
        f"{first} and {second} cannot be told apart: {first} looks "
        f"{_ahead(difference.estimate, shown.places)}, and anything from {low} to {high} agrees "
        f"with the reports."
    )


def _ahead(difference: float, places: int) -> str:
    size = abs(text.visible(difference, places))
    return f"{text.points(size, places)} {'ahead' if difference >= 0 else 'behind'}"


def _clause(comparison: Comparison, difference: Difference, places: int) -> str:
    size = text.points(abs(difference.estimate), places)
    low, high = difference.simultaneous_low, difference.simultaneous_high
    more = difference.estimate >= 0
    if not more:
        low, high = -high, -low
    between = f"({text.interval(low, high, places)}, {text.level(comparison.level)})"
    if kind_of(comparison) is Kind.VALUES:
        where = "ahead of" if more else "behind"
        return (
            f"{text.quoted(difference.left)} is {size} {where} {text.quoted(difference.right)} "
            f"{between}."
        )
    one, other = (_name(comparison, side) for side in (comparison.left, comparison.right))
    return (
        f"{_capital(one)} has {size} {'more' if more else 'less'} of "
        f"{text.quoted(difference.left)} than {other} {between}."
    )


def _largest(differences: Iterable[Difference]) -> list[Difference]:
    return sorted(differences, key=lambda difference: -abs(difference.estimate))


def _name(comparison: Comparison, side: Side) -> str:
    if kind_of(comparison) is Kind.METRICS:
        return f"`{side.metric}`"
    return f"round {side.round}"


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def sureness(comparison: Comparison) -> str:
    """Say what the intervals promise."""
    level = text.level(comparison.level)
    if len(comparison.differences) > 1:
        return (
            f"The intervals hold for all {text.count(len(comparison.differences))} values at once, "
            f"in {level} of such comparisons."
        )
    return (
        f"The interval holds in {level} of such comparisons of two values that were chosen before "
        f"anybody saw their shares. Whoever picks two because they stand out will sometimes pick "
        f"them for their noise; the ranks on the page Shares are right for all values at once."
    )


def more_reports(comparison: Comparison, estimates: Estimates | None) -> str | None:
    """Say how many reports would show a difference of two values, if these do not.

    `estimates`: of the same round, if they are known.
    """
    needed = None if estimates is None else reports_needed(comparison, estimates)
    if needed is None:
        return None
    return (
        f"If that is what it really is, some {text.counted(text.rounded_up(needed, 2), 'report')} "
        f"would be enough to show it in 4 of 5 collections."
    )


def limit(comparison: Comparison, places: int) -> str | None:
    """Say how large a difference must look to stand out in a closed round."""
    if kind_of(comparison) is Kind.VALUES or not comparison.final:
        return None
    halves = [
        (difference.simultaneous_high - difference.simultaneous_low) / 2
        for difference in comparison.differences
    ]
    least, most = min(halves), max(halves)
    told = text.points(most, places)
    if text.points(least, places) == told:
        return f"A difference stands out from about {told} on."
    return (
        f"A difference stands out from about {text.bare_percent(least, places)} to {told} on, "
        f"depending on the value."
    )


def same_devices(kind: Kind) -> str | None:
    """Say what is not known of two rounds."""
    if kind is not Kind.ROUNDS:
        return None
    return (
        "Who answered which round is not known: where the same devices answered both, the "
        "intervals may be wider than they need be."
    )


def over_time(kind: Kind, shown: Shown) -> str | None:
    """Say why another page may leave unmarked what is called a difference here."""
    if kind is not Kind.ROUNDS or not shown.final:
        return None
    return (
        "This judges these two rounds and no others. The page Over time judges all its steps at "
        "once, which is stricter, and so may leave unmarked what is called a difference here."
    )


def points_explained() -> str:
    """Say what a point is."""
    return "A point is a hundredth of everybody: 30\u202f% are 4 points more than 26\u202f%."


def watching() -> str:
    """Say why nothing is marked while a round is open."""
    return (
        "While a round takes reports nothing here is called a difference: whoever looks again and "
        "again sees one sooner or later, also where there is none. When both rounds are closed, "
        "the intervals decide."
    )


def doubt_explained(shown: Shown) -> str | None:
    """Say what a hollow diamond means, if there is one in a closed comparison."""
    if not shown.final or all(map(shown.found, shown.differences)):
        return None
    return f"◇ {shown.doubt}: the interval holds 0."
