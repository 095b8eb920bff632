"""What changed over the rounds, in words. Pure; everything is plain text, not markup."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from hubbub_dashboard import text
from hubbub_dashboard.over_time.changes import Change, marked, of_step
from hubbub_dashboard.over_time.series import LEVEL, Kind, Point, Revision, Series, Step

# So many changes of the last step are told one by one.
_TOLD: Final = 3

_DAY: Final = 86_400


def once(name: str, *, periodic: bool) -> str:
    """Said of a metric that has no rounds to compare."""
    if periodic:
        return (
            f"`{name}` has had one round so far; what changes over time shows from the second on."
        )
    return f"`{name}` is asked once, so there is nothing to see over time."


def answer(series: Series, drawn: Sequence[int]) -> str:
    """Say what changed since the last round: the sentence that is read first."""
    newest = series.points[-1]
    still = (
        f"Round {newest.number} is open and not judged yet. " if newest.kind is Kind.OPEN else ""
    )
    return f"{still}{_of_closed(series, drawn)}"


def _of_closed(series: Series, drawn: Sequence[int]) -> str:
    step = series.last
    if step is None:
        return _too_few_rounds(series)
    before, after = step.before.number, step.after.number
    if step.changes is None:
        return f"What changed since round {before} could not be read just now."
    changes = of_step(step)
    if not changes:
        return (
            f"Between rounds {before} and {after} nothing changed that can be told from the noise."
        )
    places = _places(step)
    told = [_clause(series, change, places) for change in changes[:_TOLD]]
    more = len(changes) - len(told)
    if more:
        told.append(f"{text.count(more)} more {'value' if more == 1 else 'values'} changed")
    untold = len(series.values) - len(changes)
    rest = " No other change stands out of the noise." if untold else ""
    return f"Since round {before}, {text.listed(told)}.{rest}{_undrawn(series, changes, drawn)}"


def _too_few_rounds(series: Series) -> str:
    closed = [point for point in series.points if point.kind is Kind.CLOSED]
    if not closed:
        return "No closed round has figures yet; a change is told between two closed rounds."
    return (
        f"Round {closed[0].number} is the only closed round with figures; a change is told between "
        f"two closed rounds."
    )


def _clause(series: Series, change: Change, places: int) -> str:
    low, high = change.low, change.high
    if not change.rose:
        low, high = -high, -low
    return (
        f"{text.quoted(series.values[change.value])} {'rose' if change.rose else 'fell'} by "
        f"{text.points(abs(change.estimate), places)} ({text.interval(low, high, places)})"
    )


def _undrawn(series: Series, changes: Iterable[Change], drawn: Sequence[int]) -> str:
    """Name what changed and is not among the panels; the sentence names only some itself."""
    hidden = [change.value for change in changes if change.value not in drawn]
    if not hidden:
        return ""
    names = [text.quoted(series.values[value]) for value in hidden[:_TOLD]]
    if len(hidden) > _TOLD:
        names.append(f"{text.count(len(hidden) - _TOLD)} more")
    return f" Not drawn below: {text.listed(names)}."


def limit(series: Series) -> str | None:
    """Say how much may have changed in the last step without being told from the noise."""
    step = series.last
    if step is None or step.changes is None:
        return None
    unseen = ~step.changes.distinguishable
    if not unseen.any():
        return None
    most = float(max(step.changes.high[unseen].max(), -step.changes.low[unseen].min()))
    what = (
        "If anything did change, it was by less" if unseen.all() else "Any other change was smaller"
    )
    places = _places(step)
    # Rounded up: it is a bound.
    return f"{what} than {text.points(text.up(most, places), places)} ({at_once(series)})."


def at_once(series: Series) -> str:
    """What the intervals of changes hold for."""
    steps = len(series.steps)
    over = f"all {text.count(len(series.values))} values"
    if steps > 1:
        over += f" and {text.count(steps)} steps"
    return f"{text.level(LEVEL)}, {over} at once"


def before_that(series: Series) -> str | None:
    """Say which step before the last one was the newest with a change that stands out."""
    newest = [change for change in marked(series) if change.step is not series.last]
    if not newest:
        return None
    step = newest[0].step
    changes = of_step(step)
    told = [_clause(series, change, _places(step)) for change in changes[:_TOLD]]
    if len(changes) > _TOLD:
        told.append(f"{text.count(len(changes) - _TOLD)} more changed")
    between = f"rounds {step.before.number} and {step.after.number}"
    return f"Before that, between {between}, {text.listed(told)}."


def of_last_step(series: Series) -> str | None:
    """Say that a revision came during the last step, if one did."""
    step = series.last
    if step is None:
        return None
    came = [
        revision
        for point in series.points
        if step.before.number <= point.number <= step.after.number
        for revision in point.revisions
    ]
    if not came:
        return None
    said = revisions_in_words(came)
    return (
        f"{said[0].upper()}{said[1:]} of the bundle came into force during these rounds: a change "
        f"may come from what that changed."
    )


def revisions_in_words(came: Sequence[Revision]) -> str:
    """Write "revision 4", or "revisions 4 and 5"."""
    numbers = [str(revision.number) for revision in came]
    return f"revision{'s' if len(numbers) > 1 else ''} {text.listed(numbers)}"


def alternative(series: Series, value: int) -> str:
    """Say in a few sentences what a value's panel shows, of a series that shows something."""
    label = text.quoted(series.values[value])
    points = [point for point, _ in series.drawn]
    ends = [share(series, point, value) for point in dict.fromkeys((points[0], points[-1]))]
    changes = [
        f"{'rose' if change.rose else 'fell'} by "
        f"{text.points(abs(change.estimate), _places(change.step))} between rounds "
        f"{change.step.before.number} and {change.step.after.number}"
        for change in reversed(marked(series))
        if change.value == value
    ]
    told = f"It {text.listed(changes)}." if changes else "No change is marked."
    return (
        f"Share of {label} by round, a line with its interval as a band: "
        f"{' to '.join(ends)}. {told}"
    )


def share(series: Series, point: Point, value: int) -> str:
    """Write a value's share in a round, with its interval, and which round."""
    return f"{figures(series, point, value)} in round {point.number}"


def figures(series: Series, point: Point, value: int) -> str:
    """Write a value's share in a round, with its interval."""
    found, places = point.drawn, series.places
    if found is None:
        return "no figures"
    low, high = float(found.low[value]), float(found.high[value])
    estimate = text.percent(float(found.estimate[value]), places)
    return f"{estimate} ({text.interval(low, high, places)})"


def change_in_words(change: Change) -> str:
    """Write a change that stands out as "▲ rose by 4.1 points (2.0 to 6.2)"."""
    places = _places(change.step)
    low, high = change.low, change.high
    if not change.rose:
        low, high = -high, -low
    size = text.points(abs(change.estimate), places)
    verb = "▲ rose" if change.rose else "▼ fell"
    return f"{verb} by {size} ({text.interval(low, high, places)})"


def _places(step: Step) -> int:
    """Decimals of a percentage that the errors of a step's changes warrant."""
    if step.changes is None or not step.changes.size:
        return 1
    return text.decimals([float(step.changes.std_error.min())])


def day(series: Series, point: Point) -> str:
    """When a round begins: its day, and the time of day if it is shorter."""
    if series.schedule.every % _DAY == 0:
        return datetime.fromtimestamp(point.begins, UTC).strftime("%Y-%m-%d")
    return moment(point.begins)


def moment(seconds: float) -> str:
    """Write a moment as "2026-11-27 20:39 UTC"."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
