"""Which rows are shown, in which order, and with which intervals."""

import pytest

from hubbub_dashboard.shares.selection import MAX_ROWS, Order, every_value, select
from tests.dashboard.snapshots import make_estimates, make_value


def test_as_listed_keeps_the_domains_order_and_intervals_for_one_value() -> None:
    estimates = make_estimates(make_value("a", 0.1), make_value("b", 0.5))
    selection = select(estimates, Order.LISTED)
    assert selection.values == estimates.values
    assert not selection.simultaneous
    for value in estimates.values:
        assert (selection.low(value), selection.high(value)) == (value.low, value.high)


def test_sorted_rows_come_with_simultaneous_intervals() -> None:
    estimates = make_estimates(make_value("a", 0.1), make_value("b", 0.5))
    selection = select(estimates, Order.LARGEST)
    assert selection.values == estimates.values[::-1]
    assert selection.simultaneous
    for value in estimates.values:
        simultaneous = (value.simultaneous_low, value.simultaneous_high)
        assert (selection.low(value), selection.high(value)) == simultaneous


@pytest.mark.parametrize("order", Order)
def test_a_large_domain_is_cut_to_its_largest_whatever_the_order(order: Order) -> None:
    values = [make_value(str(i), i / 10_000) for i in range(1_024)]
    selection = select(make_estimates(*values), order)
    assert [value.label for value in selection.values] == [str(i) for i in range(1_023, 973, -1)]
    assert selection.total == 1_024
    assert selection.simultaneous


def test_exactly_as_many_as_fit_stay_as_listed() -> None:
    values = [make_value(str(i), i / 100) for i in range(MAX_ROWS)]
    selection = select(make_estimates(*values), Order.LISTED)
    assert selection.values == tuple(values)
    assert not selection.simultaneous


def test_the_whole_domain_is_there_for_the_scrolling_table() -> None:
    values = [make_value(str(i), i / 10_000) for i in range(1_024)]
    columns = every_value(make_estimates(*values))
    assert columns["Value"] == [str(i) for i in range(1_024)]
    assert columns["Share"] == [100 * value.estimate for value in values]
    assert {len(column) for column in columns.values()} == {1_024}
