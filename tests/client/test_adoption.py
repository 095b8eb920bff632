"""Which bundle is in force: the app's, or a newer one that was fetched over the network."""

from pathlib import Path

import pytest

import hubbub
from hubbub.ledger import Ledger
from tests import lives
from tests.bundles import Operator, make_bundle, make_metric


@pytest.fixture(scope="module")
def revisions(operator: Operator) -> list[hubbub.Bundle]:
    """The operator's bundles of the revisions 0 (not one), 1, 2, 3, 4."""
    return [lives.bundle_of_all(operator, revision) for revision in (9, 1, 2, 3, 4)]


@pytest.fixture
def ledger(empty_ledger: Ledger) -> Ledger:
    return empty_ledger


def test_what_was_fetched_stays_in_force_over_the_app_s_own(
    ledger: Ledger, revisions: list[hubbub.Bundle]
) -> None:
    assert lives.adopt(ledger, revisions[1]) == revisions[1].signed
    assert lives.adopt(ledger, revisions[3], fetched=True) == revisions[3].signed
    # At every start the app hands in what it was shipped with; an update of it, a newer one.
    for own in (revisions[1], revisions[2], revisions[2]):
        assert lives.adopt(ledger, own) == revisions[3].signed
    assert [(r.revision, r.fetched, r.signed is None) for r in ledger.bundles()] == [
        (1, False, True),
        (2, False, True),
        (3, True, False),
    ]
    with pytest.raises(hubbub.LowerRevision) as caught:
        lives.adopt(ledger, revisions[1])
    assert (caught.value.known, caught.value.offered) == (2, 1)
    # Then the app is shipped with what was fetched before, and with a newer one.
    assert lives.adopt(ledger, revisions[3]) == revisions[3].signed
    assert not ledger.bundles()[-1].fetched
    assert lives.adopt(ledger, revisions[4]) == revisions[4].signed
    with pytest.raises(hubbub.LowerRevision):
        lives.adopt(ledger, revisions[3])


def test_what_is_fetched_never_goes_back(ledger: Ledger, revisions: list[hubbub.Bundle]) -> None:
    lives.adopt(ledger, revisions[1])
    lives.adopt(ledger, revisions[3], fetched=True)
    for older in (revisions[1], revisions[2]):
        with pytest.raises(hubbub.LowerRevision):
            lives.adopt(ledger, older, fetched=True)
    assert lives.adopt(ledger, revisions[3], fetched=True) == revisions[3].signed


@pytest.mark.parametrize("fetched", [False, True])
def test_another_bundle_of_a_known_revision_is_refused(
    operator: Operator, ledger: Ledger, revisions: list[hubbub.Bundle], *, fetched: bool
) -> None:
    lives.adopt(ledger, revisions[1])
    lives.adopt(ledger, revisions[3], fetched=True)
    for revision in (1, 3):
        other = make_bundle(operator, make_metric("another"), revision=revision)
        with pytest.raises(hubbub.LowerRevision, match="another bundle of revision"):
            lives.adopt(ledger, other, fetched=fetched)
    assert "another" not in ledger.contracts()


def test_a_name_is_bound_to_its_contract_even_by_a_bundle_that_is_not_in_force(
    operator: Operator, ledger: Ledger, revisions: list[hubbub.Bundle]
) -> None:
    lives.adopt(ledger, revisions[1])
    lives.adopt(ledger, revisions[4], fetched=True)
    lives.adopt(ledger, make_bundle(operator, make_metric("late"), revision=2))
    changed = make_bundle(operator, make_metric("late", question="Another?"), revision=3)
    before = lives.everything(ledger)
    with pytest.raises(hubbub.ChangedContract):
        lives.adopt(ledger, changed)
    assert lives.everything(ledger) == before


def test_a_foreign_operator_changes_nothing(
    operator: Operator, ledger: Ledger, revisions: list[hubbub.Bundle], tmp_path: Path
) -> None:
    lives.adopt(ledger, revisions[1])
    foreign = make_bundle(Operator.create(tmp_path / "keys"), revision=5)
    before = lives.everything(ledger)
    with pytest.raises(hubbub.ForeignOperator):
        lives.adopt(ledger, foreign)
    assert lives.everything(ledger) == before
