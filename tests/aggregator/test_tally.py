"""Tallies add, and come back from their bytes or not at all."""

import numpy as np
import pytest

from hubbub_aggregator.tally import Tally


def test_adds_cell_by_cell() -> None:
    total = Tally(3, np.array([1, 2])) + Tally(4, np.array([4, 0])) + Tally.empty(2)
    assert total.n == 7
    np.testing.assert_array_equal(total.cells, [5, 2])


def test_refuses_another_number_of_cells() -> None:
    with pytest.raises(ValueError, match="do not add"):
        Tally.empty(2) + Tally.empty(3)


def test_bytes_are_little_endian_and_round_trip() -> None:
    tally = Tally(2**40, np.array([0, 1, 2**40]))
    assert tally.to_bytes()[:16] == bytes(8) + b"\x01" + bytes(7)
    again = Tally.from_bytes(tally.n, tally.to_bytes())
    assert again.n == tally.n
    np.testing.assert_array_equal(again.cells, tally.cells)


@pytest.mark.parametrize(
    ("n", "data"),
    [(1, b"123"), (0, b"\x01" + bytes(7)), (5, b"\xff" * 8)],
    ids=["half a cell", "more than n", "negative"],
)
def test_refuses_what_is_no_tally(n: int, data: bytes) -> None:
    with pytest.raises(ValueError, match="cell"):
        Tally.from_bytes(n, data)
