"""Compare: what differs between two values, two rounds or two metrics, live."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from hubbub_dashboard import downloads, frame, interval_chart, links, markup, parts, states, text
from hubbub_dashboard.comparing import difference_chart, difference_table, sentences
from hubbub_dashboard.comparing.more_reports import doubtful
from hubbub_dashboard.comparing.shown import Kind, Shown, kind_of, show
from hubbub_dashboard.reading.answers import Comparison, Estimates, Metric, RoundOf
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.reading.source import Pairs, Source
from hubbub_dashboard.shares.selection import MAX_ROWS, Order

# A longer list is nothing to choose from: a name is typed.
_MOST_LISTED = 1_024


class Chosen(NamedTuple):
    """What the viewer wants compared."""

    left: RoundOf
    right: RoundOf
    pairs: Pairs = ()


def page() -> None:
    st.html(parts.title("What differs?", sentences.PURPOSE))
    frame.live(draw)


def draw(_: bool) -> None:
    """Let the viewer choose two sides, compare them and draw what differs."""
    settings, source = frame.shared()
    metrics = source.metrics()
    comparison: Reading[Comparison] = Reading()
    estimates: Estimates | None = None
    if metrics.value:
        chosen, target = choose(metrics.value), frame.target()
        if isinstance(chosen, str):
            st.html(markup.notes(chosen))
            return
        comparison = source.comparison(chosen.left, chosen.right, chosen.pairs, target)
        estimates = doubtful_shares(source, chosen.left, comparison.value)
    status = states.comparison_status(settings.aggregator, metrics, comparison, time.time())
    st.html(markup.comparison_line(status, comparison.value))
    if comparison.value is not None and comparison.value.differences:
        figures(comparison.value, estimates)


def doubtful_shares(
    source: Source, compared: RoundOf, comparison: Comparison | None
) -> Estimates | None:
    """Return the shares of which two cannot be told apart; of others nobody asks for more."""
    if comparison is None or doubtful(comparison) is None:
        return None
    return source.estimates(compared.metric, compared.round, comparison.target).value


def choose(metrics: Sequence[Metric]) -> Chosen | str:
    """Let the viewer choose; a sentence if there is nothing to choose from."""
    listed = [metric for metric in metrics if metric.values]
    if not listed:
        return "No metric here lists its values; in open domains there is nothing to compare."
    kinds = [kind.value for kind in Kind]
    kind = frame.choose_subject("Compare", kinds, key="compare", ends=links.COMPARED)
    match Kind(kind):
        case Kind.VALUES:
            return choose_values(listed)
        case Kind.ROUNDS:
            return choose_rounds(listed)
        case _:
            return choose_metrics(listed)


def choose_values(metrics: Sequence[Metric]) -> Chosen | str:
    with st.container(horizontal=True):
        metric = frame.choose_metric(metrics)
        round_ = RoundOf(metric, frame.choose_round(metric))
    if len(metric.values) < 2:
        return "This metric has one value, and so nothing to compare it with."
    with st.container(horizontal=True):
        left = choose_value("A value", metric.values, "values", key=links.LEFT, beside=links.RIGHT)
        others = tuple(label for label in metric.values if label != left)
        what = f"values to compare {text.quoted(left)} with"
        right = choose_value("and another", others, what, key=links.RIGHT, beside=links.LEFT)
    for label in (left, right):
        if label not in metric.values:
            return f"`{metric.name}` has no value {text.quoted(label)}."
    if left == right:
        return "Choose two values that differ."
    return Chosen(round_, round_, ((left, right),))


def choose_value(name: str, values: tuple[str, ...], what: str, *, key: str, beside: str) -> str:
    if len(values) > _MOST_LISTED:
        return frame.choose_named(name, key=key, usual=values[0], beside=[beside])
    return frame.choose_listed(name, values, key=key, what=what, usual=values[0], beside=[beside])


def choose_rounds(metrics: Sequence[Metric]) -> Chosen | str:
    with st.container(horizontal=True):
        metric = frame.choose_metric(metrics)
        if len(metric.rounds) < 2:
            return f"`{metric.name}` has not had two rounds that could be compared."
        one = frame.choose_round(metric, beside=[links.OTHER_ROUND])
        before = [round_ for round_ in metric.rounds if round_.number < one.number]
        others = [round_ for round_ in metric.rounds if round_.number != one.number]
        published = [round_ for round_ in before if round_.n] or before or others
        names = {str(round_.number): round_ for round_ in reversed(others)}
        other = frame.choose_listed(
            "and round",
            list(names),
            key=links.OTHER_ROUND,
            what=f"rounds to compare round {one.number} with",
            usual=str(published[-1].number),
            beside=[links.ROUND],
            width=140,
        )
    return Chosen(RoundOf(metric, one), RoundOf(metric, names[other]))


def choose_metrics(metrics: Sequence[Metric]) -> Chosen | str:
    with st.container(horizontal=True):
        left = frame.choose_metric(metrics)
        left_round = RoundOf(left, frame.choose_round(left))
    others = [other for other in metrics if other is not left and same_domain(left, other)]
    if not others:
        return f"No other metric has the values of `{left.name}`."
    with st.container(horizontal=True):
        right = frame.choose_other_metric(others, f"metrics to compare `{left.name}` with")
        right_round = RoundOf(right, frame.choose_round(right, key=links.OTHER_METRIC_ROUND))
    return Chosen(left_round, right_round)


def same_domain(one: Metric, other: Metric) -> bool:
    """Whether they have the same values, in whatever order."""
    return len(one.values) == len(other.values) and set(one.values) == set(other.values)


def figures(comparison: Comparison, estimates: Estimates | None) -> None:
    """Say what differs, draw it, and give the figures as a table."""
    order, find = arrange(comparison)
    shown = show(comparison, order, find)
    kind = kind_of(comparison)
    st.html(
        parts.answer(
            sentences.answer(comparison, shown),
            *filter(
                None,
                (
                    sentences.more_reports(comparison, estimates),
                    sentences.limit(comparison, shown.places),
                ),
            ),
        )
    )
    left_out = text.left_out(
        len(shown.differences), shown.matches, shown.total, find, "differences"
    )
    if not shown.differences:
        st.html(markup.notes(left_out))
        return
    chart(comparison, shown)
    st.html(
        markup.notes(
            left_out,
            sentences.sureness(comparison),
            sentences.doubt_explained(shown),
            None if shown.final else sentences.watching(),
            sentences.same_devices(kind),
            sentences.over_time(kind, shown),
            sentences.points_explained(),
        )
    )
    st.html(difference_table.table(comparison, shown))
    frame.files(
        (
            ("CSV", "csv", downloads.comparison_csv(comparison)),
            ("Parquet", "parquet", downloads.comparison_parquet(comparison)),
        ),
        lambda suffix: downloads.comparison_name(comparison, suffix),
    )


def arrange(comparison: Comparison) -> tuple[Order, str]:
    """Let the viewer choose the order where there is one, and search where there is much."""
    total = len(comparison.differences)
    if total == 1:
        return Order.LISTED, ""
    if total > MAX_ROWS:
        return Order.LARGEST, frame.find()
    return frame.order(), ""


def chart(comparison: Comparison, shown: Shown) -> None:
    theme = frame.theme()
    st.vega_lite_chart(
        difference_chart.rows(comparison, shown),
        interval_chart.specification(
            len(shown.differences),
            difference_chart.domain(shown),
            theme,
            axis_label=interval_chart.POINTS,
        ),
        alt=difference_chart.alternative(comparison, shown),
    )
