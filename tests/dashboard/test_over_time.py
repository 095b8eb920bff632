"""A metric over its rounds: what is drawn, what is marked, and how it is said."""

import pytest

from hubbub_dashboard.over_time import files, notes, panels, sentences, tables
from hubbub_dashboard.over_time.changes import MAX_CHANGES, MOST_PANELS, drawn, marked
from hubbub_dashboard.over_time.series import (
    LEVEL,
    Kind,
    Revision,
    Series,
    kind_of,
    level_of_step,
    rounds_shown,
    steps_between,
)
from hubbub_dashboard.reading.answers import Metric, Round
from tests.dashboard.series import (
    CLOSED,
    DAY,
    OPEN,
    STARTS,
    closed_series,
    make_changes,
    make_series,
    make_shares,
    numbers_of,
)


class TestSteps:
    def test_only_closed_rounds_that_are_drawn_are_compared(self) -> None:
        shares = (
            make_shares(0, [0.5, 0.5]),
            None,
            make_shares(2, [0.5, 0.5], influence=0.02),
            make_shares(3, [0.5, 0.5]),
            make_shares(4, [0.5, 0.5], state=OPEN),
        )
        rounds = tuple(
            Round(number, OPEN if number == 4 else CLOSED, 0 if known is None else known.n)
            for number, known in enumerate(shares)
        )
        assert numbers_of(steps_between(rounds, shares)) == [(0, 3)]
        kinds = [kind_of(round_, known) for round_, known in zip(rounds, shares, strict=True)]
        assert kinds == [Kind.CLOSED, Kind.EMPTY, Kind.TOO_FEW, Kind.CLOSED, Kind.OPEN]

    def test_whether_a_round_is_drawn_hangs_on_how_many_answered_alone(self) -> None:
        """Else those would be drawn whose noise is unusual."""
        quiet, loud = (make_shares(0, [0.5, 0.5], error=error) for error in (0.001, 0.5))
        few = make_shares(0, [0.5, 0.5], error=0.001, influence=0.02)
        kinds = [kind_of(Round(0, CLOSED, 1_000), each) for each in (quiet, loud, few)]
        assert kinds == [Kind.CLOSED, Kind.CLOSED, Kind.TOO_FEW]

    def test_what_is_not_there_and_what_cannot_be_read(self) -> None:
        assert kind_of(Round(0, OPEN, 0), None) is Kind.WAITING
        assert kind_of(Round(0, CLOSED, 50), None) is Kind.UNREAD

    def test_all_steps_together_miss_as_often_as_one_alone(self) -> None:
        assert level_of_step(1) == LEVEL
        assert 99 * (1 - level_of_step(99)) == pytest.approx(1 - LEVEL)

    @pytest.mark.parametrize(("k", "shown"), [(2, 100), (1_024, 100), (4_096, 48), (65_536, 3)])
    def test_of_very_many_values_fewer_rounds_are_shown(self, k: int, shown: int) -> None:
        rounds = tuple(Round(number, CLOSED, 100) for number in range(100))
        metric = Metric("m", "?", b"", tuple(map(str, range(k))), rounds)
        assert rounds_shown(metric, 100) == rounds[-shown:]
        assert rounds_shown(metric, 2) == rounds[-2:]


class TestChosenValues:
    def test_those_that_changed_come_before_the_largest(self) -> None:
        before = [0.4, 0.2, 0.1, 0.1, 0.05, 0.0, 0.0]
        after = [0.4, 0.2, 0.1, 0.1, 0.05, 0.0, 0.06]
        series = closed_series(before, after, values="abcdefg")
        assert drawn(series) == (0, 1, 2, 3, 6)

    def test_by_name_and_not_too_many(self) -> None:
        series = closed_series([0.1] * 20, values=[f"value {n}" for n in range(20)])
        assert drawn(series, ("value 3", "value 1", "gone")) == (1, 3)
        assert len(drawn(series, series.values)) == MOST_PANELS
        assert drawn(series, (), "VALUE 1") == (1, 10, 11, 12, 13)
        assert drawn(series, (), "nothing") == ()

    def test_of_no_figures_none(self) -> None:
        assert drawn(make_series(None, None)) == ()


class TestAnswer:
    say = staticmethod(lambda series, shown=(0, 1, 2): sentences.answer(series, shown))

    def test_what_changed_and_how_sure_that_is(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
        assert self.say(series) == (
            "Since round 0, “\u2068good\u2069” fell by 10.0 points (6.0 to 14.0) and "
            "“\u2068poor\u2069” rose by 10.0 points (6.0 to 14.0). No other change stands out of "
            "the noise."
        )
        assert sentences.limit(series) == (
            "Any other change was smaller than 4.0 points (95\u202f%, all 3 values at once)."
        )

    def test_nothing_changed_and_what_may_have(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.41, 0.3, 0.29])
        assert self.say(series) == (
            "Between rounds 1 and 2 nothing changed that can be told from the noise."
        )
        assert sentences.limit(series) == (
            "If anything did change, it was by less than 5.0 points (95\u202f%, all 3 values "
            "and 2 steps at once)."
        )
        assert (sentences.before_that(series) or "").startswith(
            "Before that, between rounds 0 and 1, “\u2068good\u2069” fell by 10.0 points"
        )

    def test_changes_of_values_that_are_not_drawn_are_named(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3])
        assert self.say(series, (0, 1)).endswith("Not drawn below: “\u2068poor\u2069”.")

    def test_many_changes_are_counted(self) -> None:
        series = closed_series([0.1] * 6, [0.2] * 6, values="abcdef")
        said = self.say(series, ())
        assert said.count("rose by") == 3
        assert "and 3 more values changed." in said
        assert "No other change" not in said
        assert "and 3 more." in said
        assert sentences.limit(series) is None

    def test_too_few_closed_rounds(self) -> None:
        opened = make_shares(1, [0.5, 0.3, 0.2], state=OPEN)
        assert "No closed round has figures yet" in self.say(make_series(None, opened))
        one = make_series(make_shares(0, [0.5, 0.3, 0.2]), opened)
        assert "Round 0 is the only closed round" in self.say(one)
        assert sentences.limit(one) is None

    def test_a_step_that_cannot_be_read_is_no_step_without_a_change(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3], changes=[None])
        assert "could not be read just now" in self.say(series)
        assert sentences.limit(series) is None
        assert marked(series) == ()


class TestOpenRounds:
    series = make_series(
        make_shares(0, [0.5, 0.3, 0.2]),
        make_shares(1, [0.5, 0.3, 0.2]),
        make_shares(2, [0.1, 0.3, 0.6], state=OPEN),
    )

    def test_no_change_to_one_is_marked_however_large(self) -> None:
        assert marked(self.series) == ()
        assert panels.rows(self.series, 0)["mark"].to_pylist() == ["", "", ""]
        assert panels.rows(self.series, 0)["open"].to_pylist() == [False, False, True]
        assert "Watching is testing" in (notes.still_open(self.series) or "")

    def test_nor_is_it_said_of_rounds_that_are_closed(self) -> None:
        assert notes.still_open(closed_series([0.5, 0.3, 0.2])) is None


class TestGaps:
    series = make_series(
        make_shares(0, [0.5, 0.3, 0.2]),
        None,
        None,
        make_shares(3, [0.4, 0.3, 0.3]),
        make_shares(4, [0.5, 0.3, 0.2], n=30, influence=0.06),
    )

    def test_are_told_with_their_reason(self) -> None:
        assert notes.gaps(self.series) == [
            "Nothing is drawn of round 4 (too few reports for a share to be known to within "
            "25 points either way).",
            "Nothing is drawn of rounds 1–2 (closed with no reports, or the counts were "
            "forgotten).",
            "Across a gap, a change is one from the round drawn before it.",
        ]

    def test_break_the_line(self) -> None:
        rows = panels.rows(self.series, 0).to_pydict()
        assert rows["gap"] == [False, True, True, False, True]
        assert rows["estimate"] == [0.5, None, None, 0.4, None]
        assert rows["segment"][0] != rows["segment"][3]

    def test_a_change_across_one_is_marked_where_it_is_first_seen(self) -> None:
        assert panels.rows(self.series, 0)["mark"].to_pylist() == ["", "", "", "fell", ""]
        table = tables.rounds(self.series, (0,))
        assert table.count("no figures") == 3
        assert "▼ fell by 10.0 points (6.0 to 14.0)" in table


class TestRevisions:
    def came(self, *revisions: Revision) -> Series:
        shares = [0.5, 0.3, 0.2]
        return closed_series(shares, shares, shares, revisions=revisions)

    def test_are_told_at_the_round_that_they_came_in(self) -> None:
        came = STARTS + 1.25 * DAY
        series = self.came(Revision(3, STARTS - DAY, False), Revision(4, came, False))
        said = notes.revisions(series)
        assert said[0] == (
            "Revision 4 of the bundle came into force during round 1 (2026-11-02 06:00 UTC)."
        )
        assert "a metric's contract never changes" in said[1]
        rows = panels.rows(series, 0).to_pydict()
        assert ("revision 4", 0.75) in list(zip(rows["revision"], rows["round"], strict=True))
        assert "revision 4 came" in tables.rounds(series, (0,))
        assert (sentences.of_last_step(series) or "").startswith("Revision 4 of the bundle")

    def test_the_first_that_is_known_came_after_none(self) -> None:
        series = self.came(Revision(1, STARTS + 5, False))
        assert notes.revisions(series) == []
        assert sentences.of_last_step(series) is None

    def test_what_an_earlier_version_did_not_keep_is_not_guessed(self) -> None:
        series = self.came(Revision(3, STARTS + 2.5 * DAY, True))
        assert notes.revisions(series) == [
            "Which revisions came before 2026-11-03 12:00 UTC is not known: an earlier version of "
            "the aggregator did not keep it."
        ]
        # Of rounds that all came later, everything is known.
        assert notes.revisions(self.came(Revision(3, STARTS - 1, True))) == []

    def test_an_aggregator_that_does_not_tell(self) -> None:
        series = closed_series([0.5, 0.3, 0.2], revisions=None)
        assert "does not tell" in notes.revisions(series)[0]


class TestTablesAndFiles:
    def test_labels_are_text_and_nothing_else(self) -> None:
        series = closed_series([0.5, 0.5], [0.3, 0.7], values=("<b>", "`x`"))
        for table in (tables.changes(series, (0,)), tables.rounds(series, (0, 1))):
            assert "<b>" not in table
            assert "&lt;b&gt;" in table
        assert "not drawn" in tables.changes(series, (0,))

    def test_a_long_list_of_changes_is_cut_and_says_so(self) -> None:
        rows = [[0.5, 0.5], [0.3, 0.7]] * (MAX_CHANGES // 4 + 2)
        series = closed_series(*rows, values="ab")
        assert len(marked(series)) > MAX_CHANGES
        assert tables.changes(series, (0, 1)).count("points (") == MAX_CHANGES
        assert notes.cut(len(marked(series))) is not None
        assert notes.cut(MAX_CHANGES) is None

    def test_files_have_every_figure(self) -> None:
        opened = make_shares(2, [0.3, 0.3, 0.4], state=OPEN)
        first, second = make_shares(0, [0.5, 0.3, 0.2]), make_shares(1, [0.4, 0.3, 0.3])
        series = make_series(first, second, opened)
        rows = list(files.rows(series))
        assert [(row["round"], row["value"]) for row in rows] == [
            (number, label) for number in range(3) for label in series.values
        ]
        assert [row["changed"] for row in rows] == ["", "", "", "fell", "", "rose", "", "", ""]
        change = make_changes(first, second, 1)
        assert (rows[3]["change"], rows[3]["change_low"]) == (change.estimate[0], change.low[0])
        assert {row["since_round"] for row in rows[6:]} == {None}
        assert files.csv_file(series).decode("utf-8-sig").splitlines()[0].startswith("metric,round")
        assert files.parquet_file(series)[:4] == b"PAR1"
        assert files.name(series, "csv") == "health-0-to-2.csv"

    def test_every_value_in_a_table(self) -> None:
        columns = tables.every_value(closed_series([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]))
        assert list(columns) == ["Value", "Since round 0", "Round 1", "Round 0"]
        assert columns["Since round 0"] == ["▼ fell", "", "▲ rose"]
