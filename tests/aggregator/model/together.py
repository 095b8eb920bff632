# ruff: noqa: S311  chance decides what is sent, not what is secret
"""Requests at once, of which nobody can say before who wins."""

import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from operator import le

from hypothesis import strategies as st

from tests.aggregator.model.choices import MEMBERS, NAMES, NUMBERS, SEEDS, step
from tests.aggregator.model.ground import STEP, Member, Sending
from tests.aggregator.model.metrics import metrics
from tests.aggregator.model.modelled import (
    COUNTED,
    DUPLICATE,
    NOT_CANONICAL,
    NOT_OPENED,
    RoundKey,
    Shown,
    Taken,
)
from tests.aggregator.model.uploads import Uploads


class Together(Uploads):
    """A rule that sends several, and learns what came of them."""

    @step(
        name=NAMES,
        number=NUMBERS,
        seeds=st.lists(st.tuples(MEMBERS, SEEDS), min_size=2, max_size=4),
    )
    def several_at_once(self, name: str, number: int, seeds: list[tuple[int, int]]) -> None:
        """Requests that have ids in common: which of them counts an id, nobody can say before."""
        asked = metrics()[name]
        number %= asked.rounds
        key = asked.digest, number
        common = self._reports(asked, 12, seeds[0][1])
        runs: list[tuple[Member, Sending]] = []
        for place, number_of_seed in seeds:
            chance = random.Random(number_of_seed)
            again = [
                (one, self._payload(chance, asked)) for one, _ in common if chance.random() < 0.7
            ]
            more = self._reports(asked, chance.randrange(1, 9), number_of_seed ^ 1)
            member = self._member(place)
            runs.append((member, self._sealed(asked, number, again + more, member.key)))
        judged = [self.model.judge(member.view, one.request, self.now) for member, one in runs]
        with ThreadPoolExecutor(len(runs)) as pool:
            said = list(pool.map(lambda run: run[0].stack.submit(run[1].request), runs))
        taken: list[tuple[Taken, bytes]] = []
        for (member, _), expected, answer in zip(runs, judged, said, strict=True):
            self._count(member, answer)
            if isinstance(expected, str):
                assert answer == expected
            elif key in self.model.rounds and self.model.rounds[key].closed:
                # What holds nothing to count is told so too, if it waited beside another of these.
                assert answer in ("ROUND_CLOSED", expected)
                if answer == "ROUND_CLOSED":
                    member.view.closed.add(key)
            elif isinstance(expected, bytes):
                assert answer == expected
            else:
                assert isinstance(answer, bytes)
                taken.append((expected, answer))
        if taken:
            self._learn(key, taken)

    def _learn(self, key: RoundKey, taken: Sequence[tuple[Taken, bytes]]) -> None:
        """See that each id was counted once, and take over who won and where snapshots fell."""
        self._touched.add(key)
        one, added = self.model.round(key), dict[bytes, bytes]()
        lost: set[bytes] = set()
        for request, statuses in taken:
            for report, status in zip(request.reports, statuses, strict=True):
                if report is None:
                    assert status == NOT_OPENED
                elif one.asked.read(report[1]) is None:
                    assert status == NOT_CANONICAL
                elif status == COUNTED:
                    assert report[0] not in one.counted.keys() | added.keys()
                    added[report[0]] = report[1]
                else:
                    assert status == DUPLICATE
                    lost.add(report[0])
        assert lost <= one.counted.keys() | added.keys()
        one.counted.update(added)
        store = self.members[0].stack.store
        if one.asked.retain:
            rows = self._kept(store, key)[len(one.commits) :]
            size = one.asked.size
            groups = [[row[at : at + size] for at in range(0, len(row), size)] for row in rows]
            assert Counter(added.values()) == Counter(chain.from_iterable(groups))
            one.commits += groups
        else:
            one.commits.append(list(added.values()))
        published = store.published(*key)
        if published is not None and published.snapshot is not None:
            tally, before = published.snapshot.tally, one.shown_n
            if tally.n != before:
                assert before + STEP <= tally.n <= one.n
                cells = tuple(tally.cells.tolist())
                least = one.shown.cells if one.shown is not None else (0,) * one.asked.cells
                assert all(map(le, least, cells))
                assert all(map(le, cells, one.cells()))
                assert tally.n < one.n or cells == one.cells()
                one.shown = Shown(tally.n, cells, tally.plain, self.now)
        assert one.n < one.shown_n + STEP
