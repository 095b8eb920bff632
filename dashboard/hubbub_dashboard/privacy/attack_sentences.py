"""What hostile reports could have done, in words. Pure."""

from collections.abc import Sequence
from typing import Final

from hubbub_dashboard import text
from hubbub_dashboard.privacy.attack import Attack
from hubbub_dashboard.reading.answers import RoundState, Value

PURPOSE: Final = (
    "A hostile report is one that somebody made up to move the figures. It looks like any other, "
    "so it is counted, and nothing yet keeps one device from sending many. But how far it can move "
    "a share is known."
)

_NAMED: Final = 3


def verdict(attack: Attack) -> str:
    """How far they could have moved a share."""
    share = text.percent(attack.hostile / attack.n, text.two_digits(attack.hostile / attack.n))
    were = "was" if attack.hostile == 1 else "were"
    of_these = f"{text.count(attack.hostile)} of these {text.count(attack.n)} reports"
    if attack.n == 1:
        of_these = "the one report"
    return (
        f"If {of_these} ({share}) {were} hostile, each share could be off by up to "
        f"±{text.points_at_most(attack.reach)}."
    )


def surviving(attack: Attack, state: RoundState) -> str | None:
    """Which findings stay findings even so; None if there are no values."""
    if attack.overtaking is None:
        return None
    if not attack.present:
        yet = "" if state is RoundState.CLOSED else " yet"
        return f"No value is distinguishable from zero{yet}, even if all reports are honest."
    lost = len(attack.present) - len(attack.surviving)
    if not attack.surviving:
        return (
            "Then no value would surely be above zero any more: the hostile reports could have "
            "made any one of them."
        )
    names = listed(attack.surviving)
    if not lost:
        return f"Even then {names} would still be above zero, as without them."
    gone = [value for value in attack.present if value not in attack.surviving]
    return f"Even then {names} would still be above zero; {listed(gone)} need not be."


def compared(attack: Attack) -> str | None:
    """How many do as much as the noise does; None if there are no values."""
    if attack.overtaking is None:
        return None
    share = attack.overtaking / attack.n
    if attack.overtaking > attack.n:
        return "All reports together could not move a share as far as its interval extends."
    return (
        f"From {text.counted(attack.overtaking, 'hostile report')} on "
        f"({text.percent(share, text.two_digits(share))} of all), they could move a share by more "
        f"than the noise does: further than its interval goes to either side."
    )


def reading(attack: Attack) -> str:
    """What exactly the figure says."""
    return (
        f"Off from what? From what the same {text.counted(attack.n, 'report')} would show, had the "
        f"hostile ones been honest; or from what the others show without them. One report moves a "
        f"share by at most ±{text.points_at_most(attack.reach / attack.hostile)}, and so many "
        f"together by at most so many times that."
    )


def drawn(attack: Attack) -> str:
    """What the chart's marks are."""
    return (
        f"Solid is the interval that the noise leaves open, as on the page Shares. Dashed, between "
        f"taller brackets, is where it could be with "
        f"{text.counted(attack.hostile, 'hostile report')}. ◇: {attack.selection.doubt}, then or "
        f"even without them."
    )


def beforehand(influence: float) -> str:
    """What one hostile report of a thousand does: known before any is there."""
    return (
        f"Before there are figures this much is certain: of 1,000 reports, one that is hostile "
        f"moves a share by at most ±{text.points_at_most(influence)}; of ten times as many, by a "
        f"tenth of that."
    )


def listed(values: Sequence[Value]) -> str:
    """The first few values by name, and how many more there are."""
    names = [text.quoted(value.label) for value in values[:_NAMED]]
    more = len(values) - len(names)
    if more:
        names.append(f"{text.count(more)} more")
    return text.listed(names)
