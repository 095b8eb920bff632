"""The ids that a round has counted, in memory: is a report new?

A table of buckets with a few slots each, looked up for a whole batch at once in numpy. It grows by
linear hashing (Litwin, VLDB 1980): a few buckets at a time are split in two, so that no commit
ever waits for the whole table to be built anew. What does not fit its bucket waits beside the
table. Every comparison is of all 16 bytes.
"""

import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]
"""Report ids: uint64 of shape (n, 2), the 16 bytes as two words."""
_Words = NDArray[np.uint64]
_Places = NDArray[np.int64]

_SLOTS: Final = 16
# Ids to a bucket, on average. Those not yet split hold up to a third more; of Poisson many, that
# is above 16 for one bucket in thirty.
_LOAD: Final = 8
_FEWEST_BUCKETS: Final = 64
# By how much it grows at a time: a part of what there is.
_STEP: Final = 1 / 64
# When it is loaded: so many at a time, of what must be in memory twice.
_CHUNK: Final = 1 << 18


def as_ids(data: bytes) -> Ids:
    """Read ids of 16 bytes each, back to back."""
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


class IdSet:
    """A set of 16-byte ids. Not thread-safe."""

    def __init__(self, capacity: int = 0) -> None:
        """`capacity`: how many ids it is expected to hold soon."""
        buckets = max(_FEWEST_BUCKETS, capacity // _LOAD)
        self._low = np.zeros((buckets, _SLOTS), np.uint64)
        self._high = np.zeros((buckets, _SLOTS), np.uint64)
        # Ids of each bucket, those that wait beside the table included.
        self._sizes = np.zeros(buckets, np.uint32)
        self._beside: dict[int, set[bytes]] = {}
        self._count = 0
        # Secret, so that nobody can choose ids that all fall into one bucket.
        a, b, c = (int.from_bytes(os.urandom(8), "big") | 1 for _ in range(3))
        self._secret = np.uint64(a), np.uint64(b), np.uint64(c)

    def __len__(self) -> int:
        return self._count

    def new(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of n ids it does not hold: bool of shape (n,). Of equal ones, the first alone."""
        places = self._places(self._hashes(ids))
        low, high = ids[:, 0], ids[:, 1]
        known = np.zeros(len(ids), np.bool_)
        alike = self._low[places] == low[:, None]
        # Of an empty slot the words are 0, and so they may be of an id.
        for one in np.flatnonzero(alike.any(axis=1)):
            held = min(int(self._sizes[places[one]]), _SLOTS)
            matches = alike[one, :held] & (self._high[places[one], :held] == high[one])
            known[one] = matches.any()
        for one in np.flatnonzero((self._sizes[places] > _SLOTS) & ~known):
            known[one] = ids[one].tobytes() in self._beside[int(places[one])]
        new = ~known
        _keep_the_first(ids, new)
        return new

    def add(self, ids: Ids) -> None:
        """Add ids that are `new`, and different from one another."""
        for start in range(0, len(ids), _CHUNK):
            some = ids[start : start + _CHUNK]
            self._put(some, self._places(self._hashes(some)))
            self._count += len(some)
            self._grow()

    def _hashes(self, ids: Ids) -> _Words:
        a, b, c = self._secret
        hashes = ids[:, 0] * a + ids[:, 1] * b
        # Low bits of a product depend on low bits alone.
        hashes ^= hashes >> np.uint64(32)
        hashes *= c
        hashes ^= hashes >> np.uint64(29)
        return hashes

    @property
    def _whole(self) -> int:
        """The largest power of two that is not above the number of buckets."""
        return 1 << (len(self._sizes).bit_length() - 1)

    def _places(self, hashes: _Words) -> _Places:
        """The bucket of each hash: of its last bits, one more where that has been split."""
        whole = self._whole
        places = (hashes & np.uint64(2 * whole - 1)).astype(np.int64)
        places[places >= len(self._sizes)] -= whole
        return places

    def _put(self, ids: Ids, places: _Places) -> None:
        order = np.argsort(places, kind="stable")
        ids, places = ids[order], places[order]
        firsts = np.flatnonzero(np.diff(places, prepend=-1))
        sizes = np.diff(firsts, append=len(places))
        slots = self._sizes[places] + np.arange(len(ids)) - np.repeat(firsts, sizes)
        self._sizes[places[firsts]] += sizes.astype(np.uint32)
        fits = slots < _SLOTS
        self._low[places[fits], slots[fits]] = ids[fits, 0]
        self._high[places[fits], slots[fits]] = ids[fits, 1]
        for one in np.flatnonzero(~fits):
            self._beside.setdefault(int(places[one]), set()).add(ids[one].tobytes())

    def _grow(self) -> None:
        while self._count > _LOAD * len(self._sizes):
            before, whole = len(self._sizes), self._whole
            wanted = max(before + int(before * _STEP), self._count // _LOAD)
            # As far as all have been split once.
            after = min(max(before + 1, wanted), 2 * whole)
            first, last = before - whole, after - whole
            ids = self._take(first, last)
            # In place, by the system's own tables of memory where there is much.
            self._low.resize((after, _SLOTS), refcheck=False)
            self._high.resize((after, _SLOTS), refcheck=False)
            self._sizes.resize(after, refcheck=False)
            self._put(ids, self._places(self._hashes(ids)))

    def _take(self, first: int, last: int) -> Ids:
        """Empty the buckets in [first, last); return what was in them."""
        held = np.minimum(self._sizes[first:last], _SLOTS)
        filled = np.arange(_SLOTS) < held[:, None]
        parts = [np.stack((self._low[first:last][filled], self._high[first:last][filled]), axis=1)]
        for place in np.flatnonzero(self._sizes[first:last] > _SLOTS):
            parts.append(as_ids(b"".join(self._beside.pop(first + int(place)))))
        self._low[first:last] = self._high[first:last] = self._sizes[first:last] = 0
        return np.concatenate(parts)


def _keep_the_first(ids: Ids, new: NDArray[np.bool_]) -> None:
    """Of equal ids among the new ones, leave only the first new."""
    words = ids[:, 0]
    order = np.argsort(words, kind="stable")
    in_order = words[order]
    # Half of an id is seldom equal by chance: the rest is compared where it is.
    again = np.flatnonzero(in_order[1:] == in_order[:-1])
    if not again.size:
        return
    seen: set[bytes] = set()
    for one in sorted({*order[again].tolist(), *order[again + 1].tolist()}):
        text = ids[one].tobytes()
        if new[one] and text in seen:
            new[one] = False
        seen.add(text)
