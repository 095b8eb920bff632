"""The store, in SQLite and in PostgreSQL: exactly once, in steps, and whole."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine, create_mock_engine
from sqlalchemy.schema import CreateTable

import hubbub_aggregator.store.store
from hubbub.errors import ChangedContract, ForeignOperator, LowerRevision
from hubbub_aggregator.store import (
    Ids,
    Store,
    StoreDamaged,
    StoreUnavailable,
    prepared,
    retention,
    schema,
)
from hubbub_aggregator.store.id_set import IdSet
from hubbub_aggregator.store.overview import MAX_REVISIONS_LISTED, Revision
from hubbub_aggregator.store.statements import CountingStatements
from tests.aggregator.stores import (
    NOW,
    STEP,
    batch,
    fresh,
    kept,
    n_published,
    open_store,
    retained,
    run,
    sent,
)
from tests.bundles import Operator, make_bundle, make_metric


@pytest.fixture
def store(location: str, operator: Operator) -> Iterator[Store]:
    store = open_store(location)
    store.adopt(make_bundle(operator, make_metric()), now=NOW)
    yield store
    store.close()


@pytest.fixture
def digest(store: Store) -> bytes:
    return store.metrics()[0].digest


class TestCounting:
    def test_the_first_of_equal_ids_counts(self, store: Store, digest: bytes) -> None:
        a, b = fresh(2)
        committed = store.commit([batch(digest, [a, b, a])], now=NOW)
        assert [list(new) for new in committed.new if new is not None] == [[True, True, False]]

    def test_a_replay_counts_nothing(self, store: Store, digest: bytes) -> None:
        ids = fresh(STEP)
        store.commit([batch(digest, ids)], now=NOW)
        committed = store.commit([batch(digest, ids)], now=NOW)
        assert committed.new[0] is not None
        assert not committed.new[0].any()
        assert not committed.published
        assert n_published(store, digest) == STEP

    def test_an_id_means_one_round_only(self, location: str, operator: Operator) -> None:
        metric = make_metric("daily", periodic=(60, 3, 0))
        with_rounds = open_store(location)
        with_rounds.adopt(make_bundle(operator, metric), now=NOW)
        digest = with_rounds.metrics()[0].digest
        ids = fresh(STEP)
        for number in (0, 1):
            committed = with_rounds.commit([batch(digest, ids, number)], now=NOW)
            assert committed.new[0] is not None
            assert committed.new[0].all()
        with_rounds.close()

    def test_a_restart_forgets_nothing(self, store: Store, location: str, digest: bytes) -> None:
        ids = fresh(STEP - 1)
        store.commit([batch(digest, ids)], now=NOW)
        store.close()
        again = open_store(location, writer=2)
        committed = again.commit([batch(digest, ids + fresh(1))], now=NOW)
        assert committed.new[0] is not None
        assert list(committed.new[0]) == [False] * (STEP - 1) + [True]
        assert n_published(again, digest) == STEP
        again.close()

    def test_writers_add_up(self, store: Store, location: str, digest: bytes) -> None:
        other = open_store(location, writer=2)
        for writer in (store, other, store, other):
            writer.commit([batch(digest, fresh(STEP))], now=NOW)
        assert n_published(store, digest) == n_published(other, digest) == 4 * STEP
        other.close()

    def test_what_one_writer_counted_no_other_counts(
        self, store: Store, location: str, digest: bytes
    ) -> None:
        other, known = open_store(location, writer=2), list[bytes]()
        for number, writer in enumerate((store, other, other, store, store, other)):
            more = fresh(number + 1)
            (new,) = writer.commit([batch(digest, known + more)], now=NOW).new
            assert new is not None
            assert new.tolist() == [False] * len(known) + [True] * len(more)
            known += more
        store.close_round(digest, 0, now=NOW)
        assert n_published(other, digest) == len(known)
        other.close()

    def test_many_commits_are_all_known_after_a_restart(
        self, store: Store, location: str, digest: bytes
    ) -> None:
        ids = fresh(1_500)
        for place in range(0, 1_000, 2):
            store.commit([batch(digest, ids[place : place + 2])], now=NOW)
        store.commit([batch(digest, ids[1_000:])], now=NOW)
        store.close()
        again = open_store(location, writer=2)
        again.load_open_rounds()
        (new,) = again.commit([batch(digest, ids + fresh(1))], now=NOW).new
        assert new is not None
        assert new.tolist() == [False] * 1_500 + [True]
        again.close()

    def test_a_commit_whose_end_is_not_known_is_found_again(
        self, store: Store, digest: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It became durable, and the answer was lost: as with a server that dies just then."""
        store.commit([batch(digest, fresh(STEP))], now=NOW)
        ids = fresh(3)

        @contextmanager
        def forgetful(engine: Engine) -> Iterator[Any]:
            with prepared.writing(engine) as cursor:
                yield cursor
            raise StoreUnavailable(store.location, "the answer was lost")

        with monkeypatch.context() as patch:
            patch.setattr(hubbub_aggregator.store.store, "writing", forgetful)
            with pytest.raises(StoreUnavailable, match="the answer was lost"):
                store.commit([batch(digest, ids)], now=NOW)
        (new,) = store.commit([batch(digest, [*ids, *fresh(1)])], now=NOW).new
        assert new is not None
        assert new.tolist() == [False, False, False, True]
        store.close_round(digest, 0, now=NOW)
        assert n_published(store, digest) == STEP + 4

    def test_an_error_in_the_midst_of_catching_up_loses_nothing(
        self, store: Store, location: str, digest: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other, ids = open_store(location, writer=2), fresh(600)
        for place in range(600):
            store.commit([batch(digest, ids[place : place + 1])], now=NOW)
        add, times = IdSet.add, count()

        def fail_once(self: IdSet, more: Ids) -> None:
            if next(times) == 1:
                raise MemoryError
            add(self, more)

        monkeypatch.setattr(IdSet, "add", fail_once)
        with pytest.raises(MemoryError):
            other.commit([batch(digest, ids)], now=NOW)
        (new,) = other.commit([batch(digest, ids)], now=NOW).new
        assert new is not None
        assert not new.any()
        other.close()

    def test_one_row_is_left_of_all_writers(
        self, store: Store, location: str, digest: bytes
    ) -> None:
        for writer in range(2, 6):
            with closing(open_store(location, writer)) as one:
                one.commit([batch(digest, fresh(3))], now=NOW)
        store.close_round(digest, 0, now=NOW)
        assert run(store, "SELECT n FROM tally") == [(12,)]
        assert n_published(store, digest) == 12

    def test_two_batches_of_one_round_are_refused(self, store: Store, digest: bytes) -> None:
        with pytest.raises(ValueError, match="one round"):
            store.commit([batch(digest, fresh(1)), batch(digest, fresh(1))], now=NOW)

    def test_how_many_came_unsealed_is_kept(
        self, store: Store, location: str, digest: bytes
    ) -> None:
        ids, plain = fresh(STEP), np.arange(STEP) < 4
        store.commit([replace(batch(digest, ids), plain=plain)], now=NOW)
        with closing(open_store(location, writer=2)) as other:
            # The first two are known: they were sealed then, or not, as they first came.
            ids = ids[:2] + fresh(STEP)
            other.commit([replace(batch(digest, ids), plain=np.full(STEP + 2, True))], now=NOW)
        published = store.published(digest, 0)
        assert published is not None
        assert published.snapshot is not None
        assert (published.snapshot.tally.n, published.snapshot.tally.plain) == (20, 14)

    def test_all_batches_or_none(self, store: Store, digest: bytes) -> None:
        def broken(new: NDArray[np.bool_]) -> NDArray[np.int64]:
            raise RuntimeError("half-way")

        ids = fresh(STEP)
        with pytest.raises(RuntimeError, match="half-way"):
            store.commit(
                [batch(digest, ids), replace(batch(digest, fresh(1), 1), fold=broken)],
                now=NOW,
            )
        committed = store.commit([batch(digest, ids)], now=NOW)
        assert committed.new[0] is not None
        assert committed.new[0].all()


class TestSnapshots:
    def test_come_in_steps(self, store: Store, digest: bytes) -> None:
        shown = []
        for _ in range(25):
            store.commit([batch(digest, fresh(3))], now=NOW)
            shown.append(n_published(store, digest))
        assert sorted(set(shown)) == [0, 12, 24, 36, 48, 60, 72]

    def test_closing_publishes_the_rest(self, store: Store, digest: bytes) -> None:
        store.commit([batch(digest, fresh(STEP + 1))], now=NOW)
        store.commit([batch(digest, fresh(2))], now=NOW)
        assert n_published(store, digest) == STEP + 1
        closed = store.close_round(digest, 0, now=NOW + 1)
        assert (closed.n, closed.closed_now) == (STEP + 3, True)
        assert n_published(store, digest) == STEP + 3
        again = store.close_round(digest, 0, now=NOW + 2)
        assert (again.n, again.closed_now) == (STEP + 3, False)

    def test_a_restart_never_shows_less(self, store: Store, location: str, digest: bytes) -> None:
        store.commit([batch(digest, fresh(STEP))], now=NOW)
        store.close()
        again = open_store(location, writer=2)
        assert n_published(again, digest) == STEP
        published = again.published(digest, 0)
        assert published is not None
        assert published.snapshot is not None
        assert published.snapshot.as_of == NOW
        again.close()

    def test_a_closed_round_refuses_and_holds_no_ids(
        self, store: Store, location: str, digest: bytes
    ) -> None:
        ids = fresh(3)
        store.commit([batch(digest, ids)], now=NOW)
        store.close_round(digest, 0, now=NOW)
        assert store.commit([batch(digest, ids)], now=NOW).new == [None]
        assert store.open_rounds() == []
        assert run(store, "SELECT count(*) FROM counted_ids") == [(0,)]

    def test_a_round_closed_empty_has_no_snapshot(self, store: Store, digest: bytes) -> None:
        assert store.close_round(digest, 0, now=NOW).n == 0
        published = store.published(digest, 0)
        assert published is not None
        assert published.closed
        assert published.snapshot is None


class TestRetention:
    def test_readers_see_what_a_snapshot_counts(self, store: Store, digest: bytes) -> None:
        first, second, third = sent("a", STEP + 2), sent("b", 3), sent("c", STEP)
        store.commit([kept(digest, first)], now=NOW)
        store.commit([kept(digest, second)], now=NOW)
        assert retained(store, digest, n_published(store, digest)) == first
        store.commit([kept(digest, third)], now=NOW)
        assert n_published(store, digest) == 2 * STEP + 5
        assert retained(store, digest, 2 * STEP + 5) == first + second + third
        # An older snapshot, which a reader may still have in hand, counts what it did.
        assert retained(store, digest, STEP + 2) == first

    def test_closing_a_round_keeps_them(self, store: Store, location: str, digest: bytes) -> None:
        payloads = sent("a", 3)
        store.commit([kept(digest, payloads)], now=NOW)
        store.close_round(digest, 0, now=NOW)
        store.close()
        again = open_store(location, writer=2)
        assert retained(again, digest, 3) == payloads
        again.close()

    def test_only_what_counts_is_kept(self, store: Store, digest: bytes) -> None:
        ids, payloads = fresh(STEP), sent("a", STEP)
        store.commit([kept(digest, payloads[:4], ids[:4])], now=NOW)
        store.commit([kept(digest, payloads, ids)], now=NOW)
        assert retained(store, digest, STEP) == payloads
        store.close_round(digest, 0, now=NOW)
        store.commit([kept(digest, payloads)], now=NOW)
        assert retained(store, digest, STEP) == payloads

    def test_metrics_that_do_not_retain_leave_nothing(
        self, store: Store, location: str, digest: bytes
    ) -> None:
        store.commit([batch(digest, fresh(STEP))], now=NOW)
        assert run(store, "SELECT count(*) FROM retained") == [(0,)]

    def test_counted_and_kept_or_neither(self, store: Store, location: str, digest: bytes) -> None:
        def broken(new: NDArray[np.bool_]) -> bytes:
            raise RuntimeError("half-way")

        ids, payloads = fresh(STEP), sent("a", STEP)
        with pytest.raises(RuntimeError, match="half-way"):
            store.commit(
                [kept(digest, payloads, ids), replace(batch(digest, fresh(1), 1), retain=broken)],
                now=NOW,
            )
        store.commit([kept(digest, payloads, ids)], now=NOW)
        assert n_published(store, digest) == STEP
        assert retained(store, digest, STEP) == payloads

    def test_rounds_are_kept_apart(self, location: str, operator: Operator) -> None:
        store = open_store(location)
        store.adopt(make_bundle(operator, make_metric("daily", periodic=(60, 3, 0))), now=NOW)
        digest = store.metrics()[0].digest
        for number, name in ((0, "a"), (1, "b"), (0, "c")):
            reports = replace(kept(digest, sent(name, STEP)), round=number)
            store.commit([reports], now=NOW)
        assert retained(store, digest, STEP, number=1) == sent("b", STEP)
        assert retained(store, digest, 2 * STEP) == sent("a", STEP) + sent("c", STEP)
        store.close()

    def test_many_reports_come_in_blocks(
        self, store: Store, digest: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "_BLOCK", 64)
        for name in "abcde":
            store.commit([kept(digest, sent(name, STEP))], now=NOW)
        assert [len(array) for array in store.retained(digest, 0, 5 * STEP, 4)] == [20, 20, 10]

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE retained SET payloads = substr(payloads, 2)",
            "UPDATE retained SET n = n + 1",
            "DELETE FROM retained",
        ],
    )
    def test_what_does_not_add_up_is_damage(
        self, store: Store, location: str, digest: bytes, damage: str
    ) -> None:
        store.commit([kept(digest, sent("a", STEP))], now=NOW)
        run(store, damage)
        with pytest.raises(StoreDamaged, match="retained"):
            retained(store, digest, STEP)


def test_an_open_domain_counts_its_reports_in_no_cells(store: Store, digest: bytes) -> None:
    def fold(new: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.zeros(0, np.int64)

    for _ in range(3):
        store.commit([replace(batch(digest, fresh(STEP)), fold=fold)], now=NOW)
    assert n_published(store, digest) == 3 * STEP


class TestAdopting:
    def test_keeps_metrics_of_older_bundles(self, store: Store, operator: Operator) -> None:
        store.adopt(make_bundle(operator, make_metric("other"), revision=2), now=NOW)
        assert [metric.name for metric in store.metrics()] == ["health.self_rated", "other"]

    def test_the_same_bundle_again(self, store: Store, operator: Operator) -> None:
        store.adopt(make_bundle(operator, make_metric()), now=NOW)

    def test_foreign_operator(self, store: Store, operator: Operator, tmp_path: Path) -> None:
        stranger = Operator.create(tmp_path / "stranger")
        with pytest.raises(ForeignOperator, match=operator.key):
            store.adopt(make_bundle(stranger, make_metric(), revision=9), now=NOW)

    def test_lower_revision(self, store: Store, operator: Operator) -> None:
        store.adopt(make_bundle(operator, make_metric(), revision=5), now=NOW)
        with pytest.raises(LowerRevision, match="revision 4, but 5"):
            store.adopt(make_bundle(operator, make_metric(), revision=4), now=NOW)

    def test_other_bytes_of_the_same_revision(self, store: Store, operator: Operator) -> None:
        with pytest.raises(LowerRevision, match="another bundle of revision 1"):
            store.adopt(make_bundle(operator, make_metric(), make_metric("other")), now=NOW)

    def test_changed_contract_changes_nothing(self, store: Store, operator: Operator) -> None:
        changed = make_metric(question="How do you rate your neighbour's health?")
        with pytest.raises(ChangedContract, match="needs a new name"):
            store.adopt(
                make_bundle(operator, make_metric("a.new_one"), changed, revision=2), now=NOW
            )
        assert [metric.name for metric in store.metrics()] == ["health.self_rated"]
        assert [revision.number for revision in store.overview().revisions] == [1]
        store.adopt(make_bundle(operator, make_metric()), now=NOW)

    def test_says_since_when_each_revision_is_in_force(
        self, store: Store, operator: Operator
    ) -> None:
        for number, moment in ((1, NOW + 1), (4, NOW + 2), (4, NOW + 3)):
            store.adopt(make_bundle(operator, make_metric(), revision=number), now=moment)
        assert store.overview().revisions == [
            Revision(1, NOW, or_earlier=False),
            Revision(4, NOW + 2, or_earlier=False),
        ]

    def test_lists_the_newest_revisions(self, store: Store, operator: Operator) -> None:
        newest = MAX_REVISIONS_LISTED + 3
        for number in range(2, newest + 1):
            store.adopt(make_bundle(operator, make_metric(), revision=number), now=NOW)
        listed = [revision.number for revision in store.overview().revisions]
        assert listed == list(range(4, newest + 1))


class TestDamage:
    def test_a_contract_that_was_tampered_with(self, store: Store) -> None:
        run(store, "UPDATE contract SET contract = :other", {"other": make_metric(epsilon="2")})
        with pytest.raises(StoreDamaged, match="another contract"):
            store.metrics()

    def test_a_tally_that_was_tampered_with(self, store: Store, digest: bytes) -> None:
        store.commit([batch(digest, fresh(1))], now=NOW)
        run(store, "UPDATE tally SET cells = :cells", {"cells": b"\xff" * 32})
        with pytest.raises(StoreDamaged, match="tally"):
            store.close_round(digest, 0, now=NOW)


def test_rounds_are_listed_only_as_far_as_asked(location: str, operator: Operator) -> None:
    store = open_store(location)
    store.adopt(make_bundle(operator, make_metric("daily", periodic=(60, 9, 0))), now=NOW)
    digest = store.metrics()[0].digest
    for number in range(5):
        store.commit([batch(digest, fresh(STEP), number)], now=NOW)
    assert store.rounds(digest, range(2, 4)) == {2: (False, STEP), 3: (False, STEP)}
    assert store.rounds(digest, range(0)) == {}
    store.close()


@pytest.mark.parametrize("name", ["sqlite", "postgresql+psycopg"])
def test_every_statement_can_be_said_in_both_dialects(name: str) -> None:
    engine = create_mock_engine(f"{name}://", lambda *_, **__: None)
    texts = {
        name: statement and statement.text
        for name, statement in vars(CountingStatements(engine)).items()  # type: ignore[arg-type]
    }
    assert "ON CONFLICT DO NOTHING" in texts["add_round"]
    for statement in ("put_tally", "put_snapshot"):
        assert "DO UPDATE SET" in texts[statement]
    # SQLite has one writer at a time; elsewhere the round's row is what writers wait for.
    assert "FOR UPDATE" not in texts["standing"]
    assert texts["lock_round"].endswith("FOR UPDATE") if name != "sqlite" else True
    for table in schema.metadata.sorted_tables:
        text = str(CreateTable(table).compile(dialect=engine.dialect))
        assert text.strip().startswith("CREATE TABLE")
