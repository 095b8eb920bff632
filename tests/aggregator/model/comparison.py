"""What must hold after every step."""

import time

from hypothesis.stateful import invariant

from hubbub.rows import Status
from hubbub_aggregator.store import Store
from tests.aggregator.model.collection import Collection
from tests.aggregator.model.device import Device
from tests.aggregator.model.ground import Member
from tests.aggregator.model.metrics import metrics
from tests.aggregator.model.modelled import RoundKey
from tests.aggregator.stores import run


class Comparison(Collection):
    """Compares all that a store holds with all that the model says."""

    @invariant()
    def agrees(self) -> None:
        self._sound = False
        if self._began and self.members:
            self.ground.steps += 1
            self._compare()
        self._sound = self._began

    def _compare(self) -> None:
        for member in self.members:
            assert member.stack.counters.totals() == dict(sorted(member.totals.items()))
            _wait_for_announcements(member)
        # Whichever is asked, it says the same.
        store = self.members[len(self._touched) % len(self.members)].stack.store
        opened = store.open_rounds()
        assert len(opened) == len(set(opened))
        assert set(opened) == self.model.open_rounds
        # As rows: to read the contracts themselves takes longer than all else, and starts do it.
        assert dict(run(store, "SELECT name, digest FROM contract")) == self.model.names
        for key in self.model.rounds:
            self._compare_shown(store, key)
        for key in self._touched & self.model.rounds.keys():
            self._compare_rows(store, key)
        for digest, number in self._touched - self.model.rounds.keys():
            assert store.published(digest, number) is None
        self._touched.clear()
        for device in self._devices.values():
            self._compare_device(device)

    def _compare_device(self, device: Device) -> None:
        device.agrees()
        for (name, number), status in device.answers.items():
            if status is Status.COUNTED:
                report_id, payload = device.left[name, number]
                key = metrics()[name].digest, number
                assert self.model.rounds[key].counted[report_id] == payload

    def _compare_shown(self, store: Store, key: RoundKey) -> None:
        """What readers see."""
        one, published = self.model.rounds[key], store.published(*key)
        assert published is not None
        assert published.closed == one.closed
        snapshot, shown = published.snapshot, one.shown
        assert (snapshot is None) == (shown is None)
        if snapshot is None or shown is None:
            return
        tally = snapshot.tally
        assert (tally.n, tally.plain, snapshot.as_of) == (shown.n, shown.plain, shown.as_of)
        assert tuple(tally.cells.tolist()) == shown.cells

    def _compare_rows(self, store: Store, key: RoundKey) -> None:
        """What is counted, which no reader may see before it is in a snapshot."""
        one, values = self.model.rounds[key], {"digest": key[0], "number": key[1]}
        of_round = "JOIN round ON round_id = round.id WHERE digest = :digest AND number = :number"
        tallies = run(store, f"SELECT n, plain, cells FROM tally {of_round}", values)  # noqa: S608
        assert sum(n for n, _, _ in tallies) == one.n
        assert sum(plain for _, plain, _ in tallies) == one.plain
        cells = [0] * one.asked.cells
        for _, _, counts in tallies:
            for cell in range(len(cells)):
                cells[cell] += int.from_bytes(counts[8 * cell : 8 * cell + 8], "little")
        assert tuple(cells) == one.cells()
        if one.closed:
            assert len(tallies) <= 1
            assert one.shown_n == one.n
        rows = run(store, f"SELECT ids FROM counted_ids {of_round}", values)  # noqa: S608
        ids = b"".join(bytes(row[0]) for row in rows)
        held = sorted(ids[at : at + 16] for at in range(0, len(ids), 16))
        # When it closes, they are forgotten.
        assert held == ([] if one.closed else sorted(one.counted))
        commits = [b"".join(sorted(commit)) for commit in one.commits] if one.asked.retain else []
        assert self._kept(store, key) == commits
        if one.asked.retain and one.shown is not None:
            arrays = store.retained(*key, one.shown.n, one.asked.size)
            said = b"".join(array.tobytes() for array in arrays)
            assert said == b"".join(commits)[: one.shown.n * one.asked.size]


def _wait_for_announcements(member: Member) -> None:
    """Those who watch are woken a moment after the answers are out."""
    deadline = time.monotonic() + 30
    while member.stack.announced < member.announced:
        assert time.monotonic() < deadline
        time.sleep(0.001)
