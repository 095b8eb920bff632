"""Privacy: what a metric's reports give away, who sees what, and what hostile ones could do."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st

from hubbub.contract import Metric as Contract
from hubbub.errors import BundleError
from hubbub.exact import charge_text
from hubbub_dashboard import frame, markup, parts, states, text
from hubbub_dashboard.privacy import (
    beliefs,
    privacy_markup,
    privacy_states,
    promise,
    sentences,
    witnesses,
)
from hubbub_dashboard.privacy.privacy_markup import Neighbour
from hubbub_dashboard.privacy.promise import Promise
from hubbub_dashboard.reading.answers import Estimates, Metric, RoundState
from hubbub_dashboard.reading.memory import Reading

if TYPE_CHECKING:
    from hubbub_dashboard.privacy.attack import Attack

_STYLE: Final = Path(__file__).parent.parent / "privacy" / "privacy.css"

# More metrics of one source are counted, and not listed: each is asked for by itself.
_MOST_NEIGHBOURS: Final = 12


def page() -> None:
    """A contract never changes, so that only what snapshots say is live."""
    st.html(_STYLE)
    _, source = frame.shared()
    metrics = source.metrics()
    if not metrics.value:
        frame.live(wait)
        return
    metric = frame.choose_metric(metrics.value)
    st.html(markup.heading(metric.question, metric.name))
    try:
        contract = source.contract(metric)
        refused = contract.value and promise.refusal(metric, contract.value)
    except BundleError as error:
        contract, refused = Reading(), error
    if refused:
        state(privacy_states.refused(refused))
    elif contract.value is None:
        frame.live(lambda _: wait_for_contract(metric))
    else:
        promised(promise.promise(contract.value), metric, metrics.value)
        st.html(parts.part("If reports were hostile"))
        checked = contract.value
        frame.live(lambda paused: hostile(metric, checked, paused))


def state(status: states.Status) -> None:
    """Say what stands in the way."""
    st.html(markup.state(status))


def wait(_: bool) -> None:
    """There is no catalogue, or nothing in it."""
    settings, source = frame.shared()
    metrics = source.metrics()
    if metrics.value:
        st.rerun()
    st.html(markup.welcome())
    state(states.status(settings.aggregator, metrics, Reading(), time.time()))


def wait_for_contract(metric: Metric) -> None:
    """The catalogue is there, the contract not yet."""
    settings, source = frame.shared()
    metrics = source.metrics()
    if gone(metric, metrics) or source.contract(metric).value is not None:
        st.rerun()
    in_the_way = states.in_the_way(settings.aggregator, metrics, None, time.time())
    state(in_the_way or privacy_states.no_contract(settings.aggregator))


def gone(metric: Metric, metrics: Reading[tuple[Metric, ...]]) -> bool:
    """Whether the aggregator has another contract by this name now, or none."""
    listed = metrics.value or ()
    return not metrics.failure and metric.digest not in (each.digest for each in listed)


def promised(known: Promise, metric: Metric, metrics: Sequence[Metric]) -> None:
    """Everything that the contract says."""
    st.html(parts.answer(sentences.cost(known), *sentences.meaning(known)))
    columns = {"After one report": known.odds_of_report}
    so_far = known.reports_so_far(metric)
    if so_far is not None:
        columns[f"After {text.count(so_far)}, in all rounds so far"] = known.odds_of_first(so_far)
    if not known.is_single:
        all_of_them = "the series" if known.contract.is_series else "all reports"
        columns[f"After {all_of_them}"] = known.odds_of_all
    st.html(
        parts.part("How sure somebody can be", sentences.odds(known))
        + privacy_markup.odds(beliefs.table(columns.values()), list(columns))
    )
    over_rounds(known, metric, metrics)
    rows = witnesses.witnesses(known.told, publish_step(metric))
    st.html(
        parts.part("What a device's owner reads", sentences.OWNER)
        + privacy_markup.owner(sentences.owners_rows(known))
        + parts.part("Who sees what")
        + privacy_markup.who(rows)
    )
    proof(known)


def over_rounds(known: Promise, metric: Metric, metrics: Sequence[Metric]) -> None:
    """What all rounds come to, and what else draws on the same budget."""
    others = [
        other for other in metrics if other.source == metric.source and other.name != metric.name
    ]
    st.html(
        parts.part(
            "In all",
            sentences.over_rounds(known),
            sentences.budget(known),
            sentences.shared_source(known, len(others)),
        )
    )
    if others:
        shown = [neighbour(other) for other in others[:_MOST_NEIGHBOURS]]
        st.html(privacy_markup.neighbours(shown))
    if len(others) > _MOST_NEIGHBOURS:
        st.html(markup.notes(sentences.unlisted(len(others) - _MOST_NEIGHBOURS)))


def neighbour(metric: Metric) -> Neighbour:
    """What another metric costs, as far as that is known."""
    _, source = frame.shared()
    try:
        contract = source.contract(metric).value
    except BundleError:
        contract = None
    if contract is None or promise.refusal(metric, contract):
        return Neighbour(metric.name, None, None)
    return Neighbour(metric.name, contract.epsilon.text, charge_text(contract.total_charge))


def proof(known: Promise) -> None:
    """What was checked, and the figures in full."""
    st.html(
        parts.part(
            "The proof",
            sentences.checked(known),
            *(
                sentences.proved(certificate, loss, of_row=place > 0)
                for place, (certificate, loss) in enumerate(known.proofs)
            ),
        )
    )
    with st.expander("Digest and fractions in full"):
        st.code(known.contract.digest.hex(), language=None, wrap_lines=True)
        for _, loss in known.proofs:
            st.code(loss.ratio, language=None, wrap_lines=True)


def publish_step(metric: Metric) -> int | None:
    """How many reports lie between two snapshots at least, if the aggregator has said so."""
    _, source = frame.shared()
    estimates = source.estimates(metric, metric.newest).value
    return None if estimates is None else estimates.publish_step


def hostile(metric: Metric, contract: Contract, paused: bool) -> None:
    """What hostile reports could have done to the newest snapshot."""
    # Imported here: no other page that is live needs scipy's laws.
    from hubbub_dashboard.privacy import attack, attack_sentences

    settings, source = frame.shared()
    metrics = source.metrics()
    if gone(metric, metrics):
        st.rerun()
    # The metric as the catalogue has it now: with the rounds and snapshots there are.
    newest = next((now for now in metrics.value or () if now.digest == metric.digest), metric)
    round_ = frame.choose_round(newest)
    reading = source.estimates(newest, round_)
    estimates, now = reading.value, time.time()
    status = states.status(settings.aggregator, metrics, reading, now)
    st.html(
        markup.notes(attack_sentences.PURPOSE)
        + markup.status_line(status, estimates, now, paused=paused)
    )
    support = contract.mechanism.support
    if estimates is None or not estimates.n:
        influence = attack.influence(support, 1_000)
        st.html(markup.notes(attack_sentences.beforehand(influence)))
        return
    options, count = attack.steps(estimates.n), attack.usual(estimates.n)
    # Of a few reports only one may be: there is nothing to choose.
    if len(options) > 1:
        names = list(map(text.count, options))
        with frame.said("hostile", names, "numbers to choose from", text.count(count)):
            count = st.select_slider(
                "Hostile reports",
                options,
                value=count,
                format_func=text.count,
                key="hostile",
                bind="query-params",
            )
    attacked(estimates, attack.attack(estimates, support, count))


def attacked(estimates: Estimates, found: "Attack") -> None:
    """Say and draw what so many could have done."""
    from hubbub_dashboard.privacy import attack_chart, attack_markup, attack_sentences

    more = [attack_sentences.surviving(found, estimates.state), attack_sentences.compared(found)]
    st.html(parts.answer(attack_sentences.verdict(found), *filter(None, more)))
    selection, final = found.selection, estimates.state is RoundState.CLOSED
    if selection.values:
        theme = frame.theme()
        st.vega_lite_chart(
            attack_chart.rows(found),
            attack_chart.specification(len(selection.values), attack_chart.domain(found), theme),
            alt=attack_chart.alternative(found, estimates.level),
        )
        st.html(
            markup.notes(
                text.cut(len(selection.values), selection.total),
                attack_sentences.drawn(found),
                attack_sentences.reading(found),
                text.interval_meaning(estimates.level, simultaneous=selection.simultaneous),
                None if final else text.watching(estimates.level),
            )
            + attack_markup.table(found, estimates.level)
        )
    else:
        st.html(markup.notes(attack_sentences.reading(found)))
