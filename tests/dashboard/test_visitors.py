"""Who is let in, by what a provider says about them."""

from collections.abc import Mapping

import pytest

from hubbub_dashboard.access import sign_in_text
from hubbub_dashboard.access.login_file import Login
from hubbub_dashboard.access.visitors import HOURS, SignOuts, Standing, Visitor, sign_in_of, visitor

NOW = 1_000_000.0
LOGIN = Login({}, frozenset({"ana@example.org"}), trust_addresses=False)
TRUSTING = Login({}, LOGIN.readers, trust_addresses=True)

ANA: Mapping[str, object] = {
    "is_logged_in": True,
    "sub": "1",
    "nonce": "n",
    "iat": NOW - 60,
    "email": "Ana@example.org",
    "email_verified": True,
}


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({}, Standing.READER),
        ({"email_verified": "true"}, Standing.READER),
        ({"is_logged_in": False}, Standing.NOBODY),
        ({"is_logged_in": None}, Standing.NOBODY),
        ({"is_logged_in": "yes"}, Standing.NOBODY),
        ({"email_verified": False}, Standing.UNVERIFIED),
        ({"email_verified": None}, Standing.UNVERIFIED),
        ({"email_verified": "false"}, Standing.UNVERIFIED),
        ({"email_verified": 1.5}, Standing.UNVERIFIED),
        ({"email": None}, Standing.UNVERIFIED),
        ({"email": ["ana@example.org"]}, Standing.UNVERIFIED),
        ({"email": "eve@example.org"}, Standing.STRANGER),
        ({"iat": NOW - 3_600 * HOURS - 1}, Standing.ENDED),
        ({"iat": None}, Standing.ENDED),
        ({"iat": "now"}, Standing.ENDED),
        # Its clock is a little ahead.
        ({"iat": NOW + 30}, Standing.READER),
    ],
)
def test_standing(changes: Mapping[str, object], standing: Standing) -> None:
    assert visitor({**ANA, **changes}, LOGIN, (), NOW).standing is standing


def test_nothing_known_is_nobody() -> None:
    assert visitor({}, LOGIN, (), NOW) == Visitor(Standing.NOBODY)


@pytest.mark.parametrize(
    ("verified", "standing"),
    [(None, Standing.READER), (False, Standing.UNVERIFIED), ("false", Standing.UNVERIFIED)],
)
def test_an_unverified_address_counts_only_if_nothing_is_said(
    verified: object, standing: Standing
) -> None:
    assert visitor({**ANA, "email_verified": verified}, TRUSTING, (), NOW).standing is standing


def test_a_sign_out_ends_that_sign_in_and_no_other() -> None:
    ended = SignOuts()
    ended.add(sign_in_of(ANA), NOW)
    assert visitor(ANA, LOGIN, ended, NOW).standing is Standing.ENDED
    assert visitor({**ANA, "nonce": "m"}, LOGIN, ended, NOW).standing is Standing.READER


def test_sign_outs_are_forgotten_when_the_sign_in_would_have_ended_anyway() -> None:
    ended = SignOuts()
    ended.add("first", NOW)
    ended.add("second", NOW + 3_600 * HOURS - 1)
    assert "first" in ended
    ended.add("third", NOW + 3_600 * HOURS + 1)
    assert "first" not in ended
    assert "second" in ended


def test_everybody_else_is_told_why() -> None:
    kept_out = [standing for standing in Standing if standing is not Standing.READER]
    sentences = {sign_in_text.status(Visitor(one, "a`b@c")).sentence for one in kept_out}
    assert len(sentences) == len(kept_out)
    # What stands between backticks is drawn as code: an address has no say in that.
    assert {sentence.count("`") for sentence in sentences} == {0, 2}
