"""What hostile reports could have done to a snapshot: exactly, whoever sent them. Pure.

Of n reports m are hostile. Had they been honest instead, the number of reports that support a
value would be another by at most m, and so the share by at most m/(n(p − q)) = m · influence. Its
interval is then, at worst, that of the count less m, or plus m. Had they not been sent at all, the
share would be another by at most as much: of h honest reports that support the value, and c hostile
ones,

    |(h + c)/n − h/(n − m)| = |c(n − m) − mh| / (n(n − m)) ≤ m/n,   as c ≤ m and h ≤ n − m
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.anytime import found
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_dashboard.reading.answers import Estimates, RoundState, Value
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares.selection import Order, Selection, select

# Of each power of ten.
_STEPS: Final = (1, 2, 3, 5, 7)

# Of ten million reports ten move nothing that could be seen.
_FEW: Final = 10
_SHARE: Final = 1_000

NOT_SURE: Final = "not surely above zero"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Attack:
    """A snapshot of which some reports are hostile."""

    n: int
    hostile: int
    reach: float
    """How far they could have moved any share, up or down; 1 is everybody."""
    present: tuple[Value, ...]
    """What is found as it is, of all values."""
    surviving: tuple[Value, ...]
    """Those of them that would be found whatever the hostile reports said."""
    overtaking: int | None
    """The fewest that could move some share by more than its interval extends on either side, on
    average; None: there are no values."""
    selection: Selection
    """What is drawn: a value is found if it survives."""
    ends: tuple[tuple[float, float], ...]
    """Of each value that is drawn, where its interval could end."""


def steps(n: int) -> tuple[int, ...]:
    """How many of n ≥ 1 reports may be called hostile, up to a tenth of them; at least 1.

    More reports add steps, and change none that there are.
    """
    most = max(1, n // 10)
    powers = (10**digits for digits in range(len(str(most))))
    return tuple(step * power for power in powers for step in _STEPS if step * power <= most)


def usual(n: int) -> int:
    """How many are, if nobody says otherwise: few, or of very many reports a thousandth."""
    return max(step for step in steps(n) if step <= max(_FEW, n // _SHARE))


def influence(support: Support, n: int) -> float:
    """How far one of n ≥ 1 reports can move a share."""
    return 1 / (n * float(support.p - support.q))


@derived
def attack(estimates: Estimates, support: Support, hostile: int) -> Attack:
    """Take so many of a snapshot's reports for hostile: 1 to n of them, n ≥ 1.

    `estimates`: of respondents; `support`: of the metric's mechanism.
    """
    n, selection = estimates.n, select(estimates, Order.LISTED)
    reach = hostile * influence(support, n)
    if not estimates.values:
        return Attack(n, hostile, reach, (), (), None, selection, ())
    counts = np.array([value.count for value in estimates.values], dtype=np.int64)
    fewer, more = np.maximum(counts - hostile, 0), np.minimum(counts + hostile, n)
    lowest, highest = (
        estimate(support, moved, n, level=estimates.level) for moved in (fewer, more)
    )
    if estimates.state is RoundState.CLOSED:
        survives = lowest.distinguishable
    else:
        survives = found(support, fewer, n, level=estimates.level)
    place = {value.label: index for index, value in enumerate(estimates.values)}
    shown = [place[value.label] for value in selection.values]
    low, high = (
        (lowest.simultaneous_low, highest.simultaneous_high)
        if selection.simultaneous
        else (lowest.low, highest.high)
    )
    present = [value for value in estimates.values if value.found]
    return Attack(
        n=n,
        hostile=hostile,
        reach=reach,
        present=tuple(present),
        surviving=tuple(value for value in present if survives[place[value.label]]),
        overtaking=_overtaking(selection, influence(support, n)),
        selection=replace(
            selection,
            values=tuple(
                replace(value, found=value.found and bool(survives[index]))
                for value, index in zip(selection.values, shown, strict=True)
            ),
            doubt=NOT_SURE,
        ),
        ends=tuple(zip(low[shown].tolist(), high[shown].tolist(), strict=True)),
    )


def _overtaking(selection: Selection, influence: float) -> int:
    sides = (
        max(selection.high(value) - value.estimate, value.estimate - selection.low(value))
        for value in selection.values
    )
    return int(min(sides) / influence) + 1
