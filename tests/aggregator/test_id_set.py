"""The set of ids that a round has counted: exact, whatever the ids, as it grows."""

import os
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub_aggregator.store.id_set import Ids, IdSet, as_ids


def added(ids: IdSet, batch: list[bytes]) -> list[bool]:
    """Which of a batch were new; they are in the set then."""
    them = as_ids(b"".join(batch))
    new = ids.new(them)
    ids.add(them[new])
    return [bool(one) for one in new]


def expected(known: set[bytes], batch: list[bytes]) -> list[bool]:
    """The same, one after the other."""
    new = []
    for one in batch:
        new.append(one not in known)
        known.add(one)
    return new


@pytest.mark.parametrize("size", [1, 7, 500])
@pytest.mark.parametrize("capacity", [0, 100_000])
def test_it_is_a_set(size: int, capacity: int) -> None:
    chance = random.Random(size)  # noqa: S311
    ids, known = IdSet(capacity), set[bytes]()
    seen: list[bytes] = []
    for _ in range(20_000 // (size + 20)):
        batch = [os.urandom(16) for _ in range(size)]
        # Some that it holds, and some twice in one batch.
        batch += chance.sample(seen, min(len(seen), size // 3)) + batch[: size // 4]
        chance.shuffle(batch)
        seen += batch
        assert added(ids, batch) == expected(known, batch)
        assert len(ids) == len(known)
    assert not ids.new(as_ids(b"".join(known))).any()


def test_ids_that_are_alike_in_half_are_different() -> None:
    halves = [bytes(8), b"\1" + bytes(7), b"\xff" * 8, os.urandom(8)]
    batch = [one + other for one in halves for other in halves]
    ids, known = IdSet(), set[bytes]()
    for _ in range(3):
        assert added(ids, batch + batch) == expected(known, batch + batch)


def test_of_no_ids_none_is_new() -> None:
    ids = IdSet()
    assert ids.new(as_ids(b"")).shape == (0,)
    ids.add(as_ids(b""))
    assert len(ids) == 0


class Crowded(IdSet):
    """One whose secret an attacker has guessed: all ids fall into one bucket."""

    def _hashes(self, ids: Ids) -> NDArray[np.uint64]:
        return np.zeros(len(ids), np.uint64)


def test_it_is_exact_where_all_fall_into_one_bucket() -> None:
    ids, known = Crowded(), set[bytes]()
    for _ in range(40):
        batch = [os.urandom(16) for _ in range(50)]
        again = list(known)[:20]
        assert added(ids, batch + again) == expected(known, batch + again)
    assert not ids.new(as_ids(b"".join(known))).any()


def test_it_grows_a_little_at_a_time() -> None:
    """So that no commit waits for all to be put elsewhere."""
    ids, most, before = IdSet(), 0.0, 0
    for _ in range(300):
        ids.add(as_ids(os.urandom(16 * 200)))
        buckets = len(ids._sizes)
        if before > 1_000:
            most = max(most, buckets / before)
        before = buckets
    assert 60_000 / 9 < before < 60_000 / 7
    assert most < 1.05


def test_nobody_knows_where_an_id_falls() -> None:
    them = as_ids(os.urandom(16 * 1_000))
    one, other = (IdSet()._hashes(them) for _ in range(2))
    assert (one != other).all()
