"""Which values are shown, in which order and with which intervals. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from hubbub_dashboard import text
from hubbub_dashboard.reading.answers import Estimates, RoundState, Value
from hubbub_dashboard.reading.derived import derived

# More rows than this are not read but searched; the table has them all.
MAX_ROWS: Final = 50


T = TypeVar("T")


def matching(rows: Iterable[T], find: str, name: Callable[[T], str]) -> Iterator[T]:
    """The rows whose name contains `find`, whatever its case."""
    wanted = find.casefold()
    return (row for row in rows if wanted in name(row).casefold())


class Order(Enum):
    """How rows are arranged."""

    LISTED = "As listed"
    LARGEST = "Largest first"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Selection:
    """The values of a snapshot that are shown, in the order in which they are."""

    values: tuple[Value, ...]
    total: int
    """How many there are."""
    simultaneous: bool
    """Whether the intervals drawn cover all values at once."""
    places: int
    """Decimals of a percentage that the errors warrant."""
    doubt: str
    """What is said of a value that is not found."""
    whole: bool = False
    """Whether consistent shares are drawn, without intervals."""
    matches: int = 0
    """How many of all values' names contain what is searched for."""

    def low(self, value: Value) -> float:
        """Lower end of the interval that is drawn, a share."""
        return value.simultaneous_low if self.simultaneous else value.low

    def high(self, value: Value) -> float:
        """Upper end of the interval that is drawn, a share."""
        return value.simultaneous_high if self.simultaneous else value.high


@derived
def select(estimates: Estimates, order: Order, *, whole: bool = False, find: str = "") -> Selection:
    """Choose the rows: all as listed, or the `MAX_ROWS` largest, of those whose name contains
    `find`; `whole`: as parts of a whole.

    Choosing by size picks values whose noise happened to be high, so a sorted selection comes
    with simultaneous intervals, and a domain of more than `MAX_ROWS` values is always sorted.
    """
    total = len(estimates.values)
    found = tuple(matching(estimates.values, find, lambda value: value.label))
    is_sorted = order is Order.LARGEST or total > MAX_ROWS
    values = found
    if is_sorted:
        values = tuple(sorted(found, key=lambda value: -value.estimate))[:MAX_ROWS]
    places = text.decimals(value.std_error for value in estimates.values)
    doubt = text.doubt(final=estimates.state is RoundState.CLOSED)
    return Selection(values, total, is_sorted, places, doubt, whole, len(found))


# The columns of `every_value` that are percentages.
SHARE_COLUMNS: Final = ("Share", "Low", "High", "Low, all at once", "High, all at once")


@derived
def every_value(estimates: Estimates) -> dict[str, list[Any]]:
    """Return the whole snapshot as columns for a table that scrolls; shares as percentages."""
    shares = (
        [100 * value.estimate for value in estimates.values],
        [100 * value.low for value in estimates.values],
        [100 * value.high for value in estimates.values],
        [100 * value.simultaneous_low for value in estimates.values],
        [100 * value.simultaneous_high for value in estimates.values],
    )
    doubt = text.doubt(final=estimates.state is RoundState.CLOSED)
    return {
        "Value": [value.label for value in estimates.values],
        **dict(zip(SHARE_COLUMNS, shares, strict=True)),
        "Rank": [text.rank(value.rank_low, value.rank_high) for value in estimates.values],
        "Above zero?": ["yes" if value.found else f"◇ {doubt}" for value in estimates.values],
    }
