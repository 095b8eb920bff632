"""Of one thing nothing is said as of many: every sentence that has a number, at 1."""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from hubbub.contract import parse_metric
from hubbub_dashboard import markup, parts, states, text
from hubbub_dashboard.comparing import difference_chart
from hubbub_dashboard.comparing import sentences as differences
from hubbub_dashboard.comparing.shown import show
from hubbub_dashboard.health import health_text
from hubbub_dashboard.over_time import notes
from hubbub_dashboard.over_time import sentences as changes
from hubbub_dashboard.planning import sentences as plans
from hubbub_dashboard.planning.question import Question, answered
from hubbub_dashboard.privacy import attack_chart, attack_sentences, sentences, witnesses
from hubbub_dashboard.privacy.attack import attack
from hubbub_dashboard.privacy.promise import promise
from hubbub_dashboard.reading.answers import RoundState
from hubbub_dashboard.shares import findings, share_chart
from hubbub_dashboard.shares.selection import Order, select
from tests.bundles import make_metric
from tests.dashboard.series import OPEN, closed_series, make_series, make_shares
from tests.dashboard.snapshots import make_estimates, make_value
from tests.dashboard.test_attack import SUPPORT, snapshot
from tests.dashboard.test_comparing import compare, make_difference, make_side

# Also with a word between; and verbs of many.
OF_MANY = re.compile(
    r"(?<![\d.,–])1 (?:more |other |hostile |refused )?"
    r"(?:reports|rounds|values|devices|days|hours|minutes|metrics|requests|changes|differences"
    r"|steps|rows|revisions|estimates|points|differ|(?:of \w+ (?:\w+ )?)?(?:are|were|have|stand))\b"
)


SAMPLED = {"periodic": (86_400, 9, 86_400), "join": 1, "absent": "none"}


def shares() -> Iterator[str | None]:
    one = make_value("a", 0.5), make_value("b", 0.01)
    for state in (RoundState.OPEN, RoundState.CLOSED):
        estimates = make_estimates(*one, n=1, publish_step=1, plain=1, state=state)
        yield from (findings.answer(estimates), findings.sureness(estimates, 1))
        yield findings.more_reports(estimates, 1)
        yield states.of_round(estimates).sentence
        yield markup.provenance(estimates)
        status = states.of_round(estimates)
        yield re.sub("<.*?>", "", markup.status_line(status, estimates, 0.0, paused=True))
        yield share_chart.alternative(select(estimates, Order.LISTED), 0.95)
    yield states.of_round(make_estimates(n=0, publish_step=1)).sentence
    yield from (text.population(1), text.respondents(1), text.publishing(1))
    yield from (text.points(share, 0) for share in (0.01, -0.01))
    yield from (text.signed_points(share, 0) for share in (0.01, -0.01))
    yield from (text.searched(1, 1, 2, "a"), text.age(1))


def over_time() -> Iterator[str | None]:
    rows = [0.5, 0.3, 0.2], [0.51, 0.3, 0.19]
    alone = make_series(make_shares(3, rows[0], n=1), first=3)
    opened = make_series(make_shares(1, rows[0]), make_shares(2, rows[1], state=OPEN), first=1)
    for series in (alone, opened, closed_series(*rows), closed_series(rows[0], rows[0])):
        yield from (changes.answer(series, (0,)), changes.limit(series), notes.sureness(series))
        yield from (notes.earlier(series), notes.undrawn(series, (0,)), notes.still_open(series))
        yield from (*notes.gaps(series), changes.alternative(series, 0))
    many = closed_series([0.1] * 4, [0.2] * 4, [0.3, 0.3, 0.3, 0.3], values="abcd")
    yield from (changes.answer(many, ()), changes.before_that(many))


def compared() -> Iterator[str | None]:
    for state in (RoundState.OPEN, RoundState.CLOSED):
        sides = make_side(state=state), make_side(round_=3, state=state)
        for count in (1, 2, 4, 5):
            rows = [make_difference(f"v{i}", f"v{i}", 0.04) for i in range(count)]
            rows.append(make_difference("none", "none", 0.0, half=0.01))
            comparison = compare(*sides, *rows)
            shown = show(comparison, Order.LISTED)
            yield differences.answer(comparison, shown)
            yield differences.limit(comparison, 0)
            yield difference_chart.alternative(comparison, shown)
    status = states.of_comparison(compare(*sides))
    lone = compare(make_side(n=1), make_side(n=1), make_difference("a", "b", 0.01))
    yield re.sub("<.*?>", "", markup.comparison_line(status, lone))
    yield differences.sureness(lone)


def plan() -> Iterator[str | None]:
    for question in (Question(2, "1", 1), Question(2, "1", 1, rounds=1), Question(2, "1", 40_000)):
        planned = answered(question)
        yield from (plans.answer(planned), plans.who(question, planned), plans.steps(planned))
        yield from plans.consequences(planned)
    yield plans.needed(1.0, 1)


def privacy() -> Iterator[str | None]:
    for n, hostile in ((1, 1), (1_000, 1), (12, 1)):
        found = attack(snapshot(np.minimum(n, np.array([n, 0, 0, 0])), n), SUPPORT, hostile)
        yield from (attack_sentences.verdict(found), attack_sentences.compared(found))
        yield from (attack_sentences.reading(found), attack_sentences.drawn(found))
        yield attack_sentences.surviving(found, RoundState.CLOSED)
        yield attack_chart.alternative(found, 0.95)
    for facts in ({}, {"periodic": (86_400, 1, 0)}, SAMPLED):
        promised = promise(parse_metric(make_metric("m", **facts)))
        yield from (sentences.cost(promised), sentences.over_rounds(promised))
        yield from (sentences.shared_source(promised, 1), *sentences.meaning(promised))
        yield from (said for each in witnesses.witnesses(promised.told, 1) for said in each)


def health() -> Iterator[str | None]:
    yield health_text.until("2026-11-29T00:00:00Z", "2026-11-28T00:00:00Z")
    yield health_text.unknown_digests({"unknown_digest": 1})
    yield health_text.unknown_digests({"unknown_digest": 1, "overloaded": 1})
    yield health_text.history(1)


@pytest.mark.parametrize("page", [shares, over_time, compared, plan, privacy, health])
def test_one_is_not_many(page: object) -> None:
    assert callable(page)
    said = [parts.code(sentence) for sentence in page() if sentence]
    assert said
    assert [sentence for sentence in said if OF_MANY.search(sentence)] == []


@pytest.mark.parametrize(
    "said", ["If 1 of these 1 reports", "1 of these are", "1 more values changed", "±1 points"]
)
def test_of_many_is_seen(said: str) -> None:
    assert OF_MANY.search(said)


@pytest.mark.parametrize(
    "said", ["11 reports", "0.1 points", "1 report is", "rounds 0 and 1", "1 of 3 values is"]
)
def test_what_is_right_is_let_be(said: str) -> None:
    assert not OF_MANY.search(said)
