"""Plan: what a metric will show, before anybody is asked."""

import re
from typing import TYPE_CHECKING, Final, Literal

import streamlit as st

from hubbub_dashboard import frame, markup, parts, text
from hubbub_dashboard.states import Status, Tone

if TYPE_CHECKING:
    from hubbub_aggregator.planning.planner import Plan
    from hubbub_dashboard.planning.question import Question

# A longer list is a file to keep rather than text to read.
_MOST_SHOWN: Final = 200
# Pixels, of a list that is long for a page.
_LONG: Final = 20
_CODE_HEIGHT: Final = 420

_FIRST_CROWD: Final = 1


def page() -> None:
    """Ask, and answer at once: nothing here changes by itself."""
    # Imported here: no other page needs scipy's laws, which take longer than drawing it.
    from hubbub_aggregator.commands import CommandError
    from hubbub_dashboard.planning import definition, plan_markup, sentences
    from hubbub_dashboard.planning.question import TakesLong, answered, command

    st.html(parts.title("What would be seen?", sentences.PURPOSE))
    try:
        question = ask()
    except OverflowError:
        # Streamlit drops what is no number from a link, but not what is no integer.
        refuse("A number in this link is infinite.")
        return
    try:
        # The first viewer waits for scipy too.
        with st.spinner("Working it out…"):
            plan = answered(question)
    except CommandError as error:
        refuse(f"`hubbub plan` says: {error}.")
        return
    except TakesLong as error:
        refuse(f"{error}.")
        return
    refusal = definition.refusal(question)
    if refusal is not None:
        refuse(f"`hubbub sign` would say: {refusal}.")
        return
    st.html(parts.answer(sentences.answer(plan), *sentences.consequences(plan)))
    made_up(question, plan)
    reach(question, plan)
    st.html(
        parts.part("Mechanisms", *sentences.pick(plan))
        + plan_markup.mechanisms(plan)
        + markup.notes(f"The same on a command line, with more figures: `{command(question)}`")
    )
    take_along(question)


def ask() -> "Question":
    """What is planned; all of it stands in the link."""
    from hubbub_dashboard.planning import sentences
    from hubbub_dashboard.planning.question import Question

    first, second = st.container(horizontal=True), st.container()
    names = _names()
    with first:
        values = st.number_input(
            "Values",
            value=8,
            step=1,
            key="values",
            bind="query-params",
            disabled=bool(names),
            help="How many answers there are, other and absent included.",
            width=150,
        )
        epsilon = st.text_input(
            "ε of a report",
            value="1",
            key="epsilon",
            bind="query-params",
            help=sentences.EPSILON,
            width=150,
        )
        reports = st.number_input(
            "Reports", value=10_000, step=1_000, key="reports", bind="query-params", width=190
        )
    with second:
        rounds, join, permanent, cells = _series()
    return Question(
        len(names) or values, epsilon.strip(), reports, names, rounds, join, permanent, cells
    )


def _names() -> tuple[str, ...]:
    with st.expander("Name the values"):
        written = st.text_area(
            "One a line; their number is then that of the lines",
            key="names",
            bind="query-params",
        )
    return tuple(line.strip() for line in written.splitlines() if line.strip())


def _series() -> tuple[int | None, int | None, str | None, int | None]:
    """Rounds, and what makes a series of them."""
    kind = frame.choose_one(
        "Asked", ["once", "every round", "a sample of rounds", "from a memo"], "once", key="asked"
    )
    if kind == "once":
        return None, None, None, None
    from hubbub_dashboard.planning import sentences

    st.html(markup.notes(sentences.ASKED[kind]))
    join, permanent, cells = None, None, None
    with st.container(horizontal=True):
        rounds = st.number_input(
            "Rounds", value=30, step=1, key="rounds", bind="query-params", width=150
        )
        if kind == "a sample of rounds":
            join = st.number_input(
                "Each device joins", value=8, step=1, key="join", bind="query-params", width=150
            )
        if kind == "from a memo":
            permanent = st.text_input(
                "ε of a memo's row", value="2", key="permanent", bind="query-params", width=150
            ).strip()
            cells = st.number_input(
                "Rows at most",
                value=None,
                step=1,
                key="cells",
                bind="query-params",
                placeholder="any",
                width=150,
            )
    return rounds, join, permanent, cells


def refuse(sentence: str) -> None:
    """Say why there is no plan, in the command's own words."""
    status = Status(Tone.AWAY, "No plan", sentence)
    st.html(markup.state(status))


def made_up(question: "Question", plan: "Plan") -> None:
    """Draw a crowd with stated answers as the live page would."""
    from hubbub_dashboard.planning import plan_markup, sentences, truth_chart
    from hubbub_dashboard.planning.made_up import crowd

    st.html(parts.part("How it would look", sentences.who(question, plan)))
    seed = _seed()
    st.button("Another crowd", on_click=_link_crowd, args=[seed + 1])
    drawn = crowd(question, seed)
    theme = frame.theme()
    st.vega_lite_chart(
        truth_chart.rows(drawn),
        truth_chart.specification(len(drawn.values), truth_chart.domain(drawn), theme),
        alt=truth_chart.alternative(drawn, plan.level),
    )
    selection = drawn.selection
    st.html(
        markup.notes(
            text.cut(len(selection.values), selection.total),
            sentences.inside(drawn),
            text.interval_meaning(plan.level, simultaneous=selection.simultaneous),
            text.doubt_explained(selection.values, final=True),
            text.below_zero(selection.values),
            sentences.how(drawn, seed),
        )
        + plan_markup.crowd(drawn, plan.level)
    )


def _seed() -> int:
    """Which crowd the link names."""
    named = st.query_params.get("crowd", "")
    return int(named) if re.fullmatch("[0-9]{1,9}", named) else _FIRST_CROWD


def _link_crowd(seed: int) -> None:
    st.query_params["crowd"] = str(seed)


def reach(question: "Question", plan: "Plan") -> None:
    """Say what more reports would show."""
    from hubbub_dashboard.planning import plan_markup, sentences
    from hubbub_dashboard.planning.reach import reports_to_see, steps

    st.html(parts.part("How many reports"))
    percentage = st.number_input(
        "A share to see, in %",
        min_value=0.001,
        max_value=100.0,
        value=1.0,
        step=0.5,
        format="%g",
        key="see",
        bind="query-params",
        width=190,
    )
    share = percentage / 100
    st.html(
        parts.sentence(sentences.needed(share, reports_to_see(question, share)))
        + markup.notes(sentences.steps(plan))
        + plan_markup.reach(steps(question), plan.reports, plan.level)
    )


def take_along(question: "Question") -> None:
    """Offer the metric as metrics.toml, to copy or as a file."""
    from hubbub_dashboard.planning import sentences
    from hubbub_dashboard.planning.definition import definition

    toml = definition(question)
    st.html(parts.part("metrics.toml") + markup.notes(sentences.TAKE_ALONG))
    if len(question.labels) <= _MOST_SHOWN:
        height: int | Literal["content"] = (
            _CODE_HEIGHT if len(question.labels) > _LONG else "content"
        )
        st.code(toml, language="toml", wrap_lines=True, height=height)
    else:
        st.download_button(
            f"metrics.toml, {text.count(len(question.labels))} values",
            toml,
            file_name="metrics.toml",
            mime="application/toml",
            on_click="ignore",
        )
