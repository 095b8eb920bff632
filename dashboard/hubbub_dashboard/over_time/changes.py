"""Which changes stand out of the noise, and which values are drawn. Pure."""

from typing import Final, NamedTuple

import numpy as np

from hubbub_dashboard.over_time.series import Series, Step
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares.selection import matching

# Panels that are drawn unless the viewer chooses, and at most.
USUAL_PANELS: Final = 5
MOST_PANELS: Final = 8

# More changes than this are not read; the files have them all.
MAX_CHANGES: Final = 30


class Change(NamedTuple):
    """A value's change over one step, which stands out of the noise."""

    step: Step
    value: int
    """Its place in the domain."""
    estimate: float
    low: float
    high: float

    @property
    def rose(self) -> bool:
        return self.low > 0

    @property
    def sureness(self) -> float:
        """How many half widths of its interval the change is large."""
        return 2 * abs(self.estimate) / (self.high - self.low)


@derived
def marked(series: Series) -> tuple[Change, ...]:
    """Every change that stands out, newest step first, the largest of a step first."""
    return tuple(change for step in reversed(series.steps) for change in of_step(step))


def of_step(step: Step) -> list[Change]:
    """The changes of a step that stand out, the largest first."""
    found = step.changes
    if found is None:
        return []
    changes = [
        Change(
            step,
            int(value),
            float(found.estimate[value]),
            float(found.low[value]),
            float(found.high[value]),
        )
        for value in np.flatnonzero(found.distinguishable)
    ]
    return sorted(changes, key=lambda change: -abs(change.estimate))


@derived
def drawn(series: Series, wanted: tuple[str, ...] = (), find: str = "") -> tuple[int, ...]:
    """Places of the values that are drawn, in the domain's order.

    Those that are wanted by name. Else, of those whose name contains `find`, the ones that
    changed most surely, and then the largest in the newest round that is drawn.
    """
    values = series.values
    if wanted:
        chosen = set(wanted)
        return tuple(place for place, label in enumerate(values) if label in chosen)[:MOST_PANELS]
    if not series.drawn:
        return ()
    _, newest = series.drawn[-1]
    surest = sorted(marked(series), key=lambda change: -change.sureness)
    ranked = [*(change.value for change in surest), *map(int, np.argsort(-newest.estimate))]
    named = set(matching(range(len(values)), find, values.__getitem__)) if find else None
    picked: dict[int, None] = {}
    for place in ranked:
        if named is None or place in named:
            picked[place] = None
        if len(picked) == USUAL_PANELS:
            break
    return tuple(sorted(picked))


def change_at(step: Step | None, value: int) -> str:
    """Whether a value's share "rose", "fell", or neither ("") in a step."""
    if step is None or step.changes is None or not step.changes.distinguishable[value]:
        return ""
    return "rose" if step.changes.estimate[value] > 0 else "fell"
