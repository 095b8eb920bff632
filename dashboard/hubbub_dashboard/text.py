"""Numbers and sentences, as people read them. Pure; everything is plain text, not markup."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Final

from hubbub_dashboard.reading.answers import Epsilon, Target, Value

NOT_DISTINGUISHABLE: Final = "not distinguishable from zero"

OPEN_DOMAIN: Final = (
    "Any text is an answer here, so there is no list of values to show. To see the shares of "
    "some, whoever runs the aggregator writes them to a file, one a line, and names the file:"
)

# A number and its unit stay on one line.
_NARROW_SPACE: Final = "\u202f"
_MINUS: Final = "\u2212"

# Characters of a value's name that are quoted.
_QUOTED: Final = 40

# What would end a quotation's own direction before it is over, and controls: a link can hold them.
_UNSEEN: Final = dict.fromkeys(
    (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)

# A longer ε is rounded for reading.
_EPSILON_DIGITS: Final = 7

# Declared ε are cut at their 12th decimal: what lies above a round figure by no more than that
# is not rounded up to the next.
_TOLERANCE: Final = 1e-9


def decimals(std_errors: Iterable[float]) -> int:
    """How many decimals of a percentage the smallest standard error (a share) warrants.

    The error keeps two digits if it begins with 1 and else one, so that a figure shows all
    that is known and nothing that is noise. At most 6; 1 if there is no error at all.
    """
    errors = [100 * error for error in std_errors if error > 0]
    if not errors:
        return 1
    smallest = min(errors)
    exponent = math.floor(math.log10(smallest))
    begins_with_one = smallest < 2 * 10**exponent
    return min(6, max(0, int(begins_with_one) - exponent))


def percent(share: float, places: int) -> str:
    """Write a share (1 = everybody) as "−1.4 %"."""
    return f"{bare_percent(share, places)}{_NARROW_SPACE}%"


def bare_percent(share: float, places: int) -> str:
    """Write a share as "−1.4", without the unit."""
    text = f"{abs(100 * share):.{places}f}"
    negative = share < 0 and float(text) != 0
    return f"{_MINUS}{text}" if negative else text


def signed(difference: float, places: int) -> str:
    """Write a difference of shares as "+1.4" or "−1.4"."""
    said = bare_percent(difference, places)
    return f"+{said}" if difference > 0 and float(said) else said


def signed_points(difference: float, places: int) -> str:
    """Write a difference of shares as "+1.4 points"."""
    return in_points(signed(difference, places))


def p_value(probability: float) -> str:
    """Write a p-value with three digits, or that it is below 0.0001."""
    return "< 0.0001" if probability < 0.0001 else f"{probability:.3g}"


def points(share: float, places: int) -> str:
    """Write a difference of shares as "−1.4 points", hundredths of everybody."""
    return in_points(bare_percent(share, places))


def in_points(said: str) -> str:
    """Write a figure, which is one already, with its unit."""
    return f"{said} point{'' if said.lstrip(f'+{_MINUS}') == '1' else 's'}"


def interval(low: float, high: float, places: int) -> str:
    """Write an interval of shares as "−0.4 to 2.1"."""
    return f"{bare_low(low, places)} to {bare_high(high, places)}"


def bare_low(low: float, places: int) -> str:
    """Write an interval's lower end, without the unit."""
    return bare_percent(visible(low, places), places)


def bare_high(high: float, places: int) -> str:
    """Write an interval's upper end, without the unit."""
    return bare_percent(visible(high, places), places)


def visible(end: float, places: int) -> float:
    """Move an interval's end away from 0 if it would be written as 0 and is not.

    Whether an interval holds 0 must be seen from how it is written.
    """
    return math.copysign(max(abs(end), 10.0 ** -(places + 2)), end) if end else end


def influence(values: Sequence[Value]) -> str:
    """Say how far one hostile report moves an estimate."""
    largest = max(value.influence for value in values)
    return f"one hostile report moves an estimate by up to ±{points_at_most(largest)}"


def points_at_most(share: float) -> str:
    """Write a distance between shares as "0.14 points", to two digits, rounded up."""
    places = two_digits(share)
    return in_points(f"{_up(100 * share, places):,.{places}f}")


def two_digits(share: float) -> int:
    """Decimals of a percentage that show two digits of it."""
    return max(0, 1 - math.floor(math.log10(100 * share) + _TOLERANCE))


def count(n: int) -> str:
    """Write a whole number with thousands separators."""
    return f"{n:,}"


def counted(n: int, noun: str) -> str:
    """Write how many there are of something: "1 report", "1,000 reports"."""
    return f"{count(n)} {noun}{'' if n == 1 else 's'}"


def rounded_up(number: float, digits: int) -> int:
    """Round a positive number up to so many digits, and to a whole one."""
    unit: int = 10 ** max(0, math.floor(math.log10(number)) + 1 - digits)
    return math.ceil(number / unit) * unit


def quoted(label: str) -> str:
    """A value's name within a sentence: the beginning of a long one, and in its own direction."""
    plain = label.translate(_UNSEEN)
    shown = plain if len(plain) <= _QUOTED else f"{plain[:_QUOTED]}…"
    return f"“\u2068{shown}\u2069”"


def listed(parts: Sequence[str]) -> str:
    """Write "a", "a and b", "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def rank(low: int, high: int) -> str:
    """Write a range of ranks as "1" or "2–4"."""
    return str(low) if low == high else f"{low}–{high}"


def clock(moment: float) -> str:
    """Write a time, seconds since 1970 UTC, as "20:39:56 UTC"."""
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S UTC")


def day_and_clock(moment: float) -> str:
    """Write a time as "2026-11-27 20:39:56 UTC"."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def age(seconds: float) -> str:
    """Write how long ago something was: "3 s", "12 min", "5 h", "2 d"."""
    seconds = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def level(probability: float) -> str:
    """Write a confidence level as "95 %"."""
    return f"{100 * probability:.6g}{_NARROW_SPACE}%"


def epsilon_in_words(epsilon: Epsilon) -> str:
    """Say what the declared ε lets one report reveal, in likelihoods and in odds, rounded up."""
    ratio = math.exp(float(epsilon.declared))
    times = f"{_up(ratio, 2):,.2f}".removesuffix(".00")
    percentage = _up(100 * ratio / (1 + ratio), 1)
    sure = f"{percentage:.1f}" if percentage < 100 else "more than 99.9"
    return (
        f"A report is at most {times} times likelier under one answer than under any other: "
        f"whoever sees it and thought an answer 50:50 can be at most {sure}{_NARROW_SPACE}% sure "
        f"afterwards."
    )


def up(share: float, places: int) -> float:
    """Round a share up to so many decimals of a percentage."""
    return _up(100 * share, places) / 100


def _up(number: float, places: int) -> float:
    return math.ceil(number * 10.0**places - _TOLERANCE) / 10.0**places


def short_epsilon(decimal: str) -> str:
    """Write an ε, decimal text, as it is; or as "≈ 1.098612" if it has many digits."""
    exact = Decimal(decimal)
    rounded = Context(prec=_EPSILON_DIGITS).plus(exact)
    if rounded == exact:
        return decimal
    return f"≈ {rounded.normalize():f}"


def interval_meaning(probability: float, *, simultaneous: bool) -> str:
    """Say what the drawn intervals promise."""
    if simultaneous:
        return (
            f"The intervals hold all at once: in {level(probability)} of such rounds every one of "
            f"them contains its true share. Sorting puts the values that noise favoured "
            f"first, so the wider intervals are drawn."
        )
    return (
        f"Each interval holds on its own: {level(probability)} of such intervals contain the true "
        f"share, so about 1 in {round(1 / (1 - probability))} misses."
    )


def whose(target: Target, n: int) -> str:
    """Say whose shares these are."""
    return respondents(n) if target is Target.RESPONDENTS else population(n)


def population(n: int) -> str:
    """Say whose shares these are."""
    return (
        f"Shares are among all devices that would have answered, of which the {count(n)} that did "
        f"{'is' if n == 1 else 'are'} taken for a random sample: the draw adds to the noise. "
        f"Devices that are offline, or never would have answered, are not in it."
    )


def parts_of_a_whole() -> str:
    """Say what consistent shares are for, and not for."""
    return (
        f"These are the nearest shares that are none below 0 and add up to 100{_NARROW_SPACE}%. "
        f"They are to be read as parts of a whole, and nothing else: to cut off what lies below 0 "
        f"makes them biased, so they have no intervals, and differences and sums are better taken "
        f"of the estimates."
    )


def respondents(n: int) -> str:
    """Say whose shares these are."""
    return (
        f"Shares are among respondents, the devices whose {counted(n, 'report')} "
        f"{'is' if n == 1 else 'are'} counted: the noise is the only uncertainty shown, and "
        f"whoever did not answer is not in it."
    )


def publishing(step: int) -> str:
    """Say when figures change, and why not more often."""
    have = "has" if step == 1 else "have"
    return (
        f"While the round is open, figures change only when at least "
        f"{counted(step, 'more report')} {have} come in, so that refreshing singles nobody out. "
        f"When it closes, what is left is published, however little it is."
    )


def doubt(*, final: bool) -> str:
    """What is said of a value that is not found; `final`: the round is closed."""
    return NOT_DISTINGUISHABLE if final else f"{NOT_DISTINGUISHABLE} yet"


def doubt_explained(values: Sequence[Value], *, final: bool) -> str | None:
    """Say what a hollow diamond means, if there is one."""
    if all(value.found for value in values):
        return None
    if not final:
        return (
            f"◇ {doubt(final=final)}: while the round is open that is judged by a stricter rule "
            f"than the intervals, also where these lie above 0."
        )
    return (
        f"◇ {doubt(final=final)}: judged over all values at once, the noise alone could have "
        f"made such an estimate."
    )


def watching(probability: float) -> str:
    """Say why an open round's values are called present later than its intervals suggest."""
    return (
        f"Watching is testing: of values that nobody has, many have an interval above 0 at some "
        f"moment. So while reports still come in, a value counts as present only by a stricter "
        f"rule, which is right for all of them at once in {level(probability)} of rounds however "
        f"often somebody looks. When the round closes, the intervals decide."
    )


def below_zero(values: Sequence[Value]) -> str | None:
    """Say why an estimate is negative, if one is."""
    if all(value.estimate >= 0 for value in values):
        return None
    return (
        "An estimate below 0 is the noise's doing, since no share is. It is shown as it is: if "
        "such estimates were cut off at 0, the others would add up to too much."
    )


def cut(shown: int, total: int, what: str = "estimates") -> str | None:
    """Say that values are left out, if some are; `what`: by whose size."""
    if shown == total:
        return None
    return f"The {count(shown)} largest {what} of {count(total)} are shown."


def left_out(
    shown: int, matches: int, total: int, find: str, what: str = "estimates"
) -> str | None:
    """Say which values are not shown, if some are; `find`: what was searched for, if anything."""
    return searched(shown, matches, total, find) if find else cut(shown, total, what)


def searched(shown: int, matches: int, total: int, find: str) -> str:
    """Say how many values' names contain `find`, and whether all that do are shown."""
    if not matches:
        return f"None of the {count(total)} values has {quoted(find)} in its name."
    have = "value has" if matches == 1 else "values have"
    largest = f" The {count(shown)} largest of these are shown." if shown < matches else ""
    return f"{count(matches)} {have} {quoted(find)} in the name, of {count(total)}.{largest}"


def in_vain(asked: str, what: str, instead: str) -> str:
    """Say that a link asks for what there is not; `what`: what there is to choose from."""
    return f"{quoted(asked)} is not among the {what} here, so {quoted(instead)} is chosen instead."


def seen_by_aggregator(epsilon: Epsilon, rounds: int) -> str:
    """Say what the aggregator learns about one device; `rounds`: how many there have been."""
    several = (
        "That is one report: a device that answers more rounds tells more, see the page Privacy. "
        if rounds > 1
        else ""
    )
    return (
        "What it costs a device: every answer was randomised on its device before it was sent, so "
        "no report proves its answer, and each is a hint. "
        f"{epsilon_in_words(epsilon)} {several}The aggregator can see the network address each "
        "report came from, and one device could submit many reports."
    )
