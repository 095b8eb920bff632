"""Panels over the rounds: their scales, and which rounds are named below them."""

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import pytest

from hubbub_dashboard.over_time import line_chart, notes, panels, sentences, tables
from hubbub_dashboard.over_time.panels import Scale
from hubbub_dashboard.over_time.series import Series
from tests.dashboard.series import DAILY, closed_series, make_series, make_shares

FLAT = (0.5, 0.3, 0.2)


class TestPanels:
    def test_all_span_as_many_points(self) -> None:
        series = closed_series([0.5, 0.3, 0.02], [0.1, 0.3, 0.02])
        scales = panels.scales(series, (0, 1, 2))
        spans = {round(scale.high - scale.low, 6) for scale in scales}
        assert len(spans) == 1
        for scale, value in zip(scales, (0, 1, 2), strict=True):
            rows = panels.rows(series, value).to_pydict()
            assert scale.low < min(rows["low"]) <= max(rows["high"]) < scale.high
            assert len(scale.lines) >= 2

    def test_say_in_words_what_they_show(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
        said = sentences.alternative(series, 2)
        assert "20.0\u202f% (17.0 to 23.0) in round 0 to 30.0\u202f%" in said
        assert "It rose by 10.0 points between rounds 0 and 1." in said
        assert sentences.alternative(series, 1).endswith("No change is marked.")

    def test_a_specification_is_the_same_object_every_time(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
        (scale,) = panels.scales(series, (0,))
        make = partial(line_chart.specification, scale, (0, 1), series.schedule, names=True)
        assert make("light") is make("light")
        assert make("light") != make("dark")


class TestScales:
    """What a panel's scale is when rounds are of very different sizes."""

    def scale(self, *errors: float, shares: Sequence[float] = ()) -> tuple[Series, Scale]:
        """Of the first value, in rounds with these errors; and these shares, if they differ."""
        given = shares or [0.5] * len(errors)
        rounds = [
            make_shares(number, [share, *FLAT[1:]], error=error)
            for number, (error, share) in enumerate(zip(errors, given, strict=True))
        ]
        series = make_series(*rounds)
        return series, panels.scales(series, (0,))[0]

    def test_one_wide_band_leaves_the_others_their_shape(self) -> None:
        usual, wide = self.scale(*[0.005] * 6), self.scale(*[0.005] * 5, 0.08)
        assert wide[1] == usual[1]
        assert panels.beyond(usual[0], (0,)) == ()
        assert panels.beyond(wide[0], (0,)) == (5,)
        assert notes.beyond(usual[0], (0,)) is None
        assert (notes.beyond(wide[0], (0,)) or "").startswith("The band of round 5 goes on beyond")
        # Nothing is hidden: rows and table have the band whole.
        assert panels.rows(wide[0], 0)["high"].to_pylist()[5] == 0.5 + 3 * 0.08
        assert "26.0 to 74.0" in re.sub("<.*?>", "", tables.rounds(wide[0], (0,)))

    def test_two_wide_ones_are_told_together(self) -> None:
        series, _ = self.scale(0.08, *[0.005] * 5, 0.08)
        assert (notes.beyond(series, (0,)) or "").startswith(
            "The bands of rounds 0 and 6 go on beyond"
        )

    @pytest.mark.parametrize(
        "errors",
        [
            (0.08, 0.08, 0.08),  # only wide ones
            (0.005, 0.08),  # of two, neither is the unusual one
            (0.005, 0.08, 0.08),  # wide is usual, and narrow is not
            (0.005, 0.005, 0.005, 0.014),  # wider, but not by much
            (0.02,),
        ],
    )
    def test_bands_are_drawn_whole_where_they_are_not_unusual(
        self, errors: tuple[float, ...]
    ) -> None:
        series, scale = self.scale(*errors)
        assert panels.beyond(series, (0,)) == ()
        assert scale.low < 0.5 - 3 * max(errors) < 0.5 + 3 * max(errors) < scale.high

    def test_a_jump_is_inside_even_if_its_band_is_not(self) -> None:
        series, scale = self.scale(*[0.005] * 5, 0.08, shares=[0.5] * 5 + [0.56])
        assert panels.beyond(series, (0,)) == (5,)
        assert scale.low < 0.5
        assert scale.high > 0.56
        # A jump that is large takes more room than its band would.
        series, scale = self.scale(*[0.005] * 5, 0.08, shares=[0.5] * 5 + [0.9])
        assert panels.beyond(series, (0,)) == ()
        assert scale.low < 0.5 < 0.9 + 3 * 0.08 < scale.high

    def test_panels_are_cut_at_their_own_edges_and_still_span_as_many_points(self) -> None:
        rounds = [make_shares(number, FLAT, error=0.005) for number in range(5)]
        series = make_series(*rounds, make_shares(5, FLAT, error=0.08))
        scales = panels.scales(series, (0, 1, 2))
        assert len({round(scale.high - scale.low, 6) for scale in scales}) == 1
        assert panels.beyond(series, (0, 1, 2)) == (5,)

    @pytest.mark.parametrize("rounds", [1, 2, 5])
    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    def test_nothing_has_a_width(self, rounds: int, share: float) -> None:
        series, scale = self.scale(*[0.0] * rounds, shares=[share] * rounds)
        assert scale.low < share < scale.high
        assert len(scale.lines) >= 2
        assert panels.beyond(series, (0,)) == ()
        specification = line_chart.specification(
            scale, (0, rounds - 1), series.schedule, "light", names=True
        )
        assert "nan" not in json.dumps(specification).lower()

    def test_only_one_has_a_width(self) -> None:
        series, scale = self.scale(0.0, 0.0, 0.0, 0.05)
        assert scale.low < 0.5 < scale.high
        assert panels.beyond(series, (0,)) == (3,)

    @pytest.mark.parametrize("span", [1e-6, 3e-5, 0.003, 0.002999999999999999, 0.3, 3.0, 40.0])
    def test_every_span_has_a_few_lines(self, span: float) -> None:
        _, scale = self.scale(span / 6, span / 6)
        assert 2 <= len(scale.lines) <= 15

    def test_a_triangle_of_a_band_that_goes_on_is_inside(self) -> None:
        _, scale = self.scale(*[0.005] * 5, 0.08)
        specification = line_chart.specification(scale, (0, 5), DAILY, "light", names=False)
        found = [
            step["calculate"]
            for layer in specification["layer"]
            for step in layer.get("transform", ())
            if step.get("as") == "place"
        ]
        assert found == [
            f"min(datum.high, {scale.high - scale.room})",
            f"max(datum.low, {scale.low + scale.room})",
        ]
        assert scale.room > 0


class TestNamedRounds:
    @pytest.mark.parametrize("count", [*range(1, 40), 99, 100])
    @pytest.mark.parametrize("most", range(1, 9))
    def test_are_equally_far_apart_and_fit(self, count: int, most: int) -> None:
        found = line_chart.named(5, 5 + count - 1, most)
        assert found[-1] == 5 + count - 1
        assert found[0] >= 5
        assert len({later - earlier for earlier, later in pairwise(found)}) <= 1
        assert len(found) <= most
        if len(found) > 1:
            # A name has the room that it needs.
            assert (found[1] - found[0]) / count >= 1 / most

    @pytest.mark.parametrize(
        ("count", "most", "names"),
        [
            (12, 6, [1, 3, 5, 7, 9, 11]),
            (12, 2, [0, 11]),
            (10, 6, [0, 3, 6, 9]),
            (10, 2, [0, 9]),
            (5, 8, [0, 1, 2, 3, 4]),
            (100, 6, [0, 33, 66, 99]),
            (2, 1, [1]),
            (1, 6, [0]),
        ],
    )
    def test_the_first_is_named_where_that_costs_little(
        self, count: int, most: int, names: list[int]
    ) -> None:
        assert line_chart.named(0, count - 1, most) == names
