"""The clock, and the ends of rounds."""

from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import strategies as st

from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.store import StoreUnavailable
from tests.aggregator.model.choices import FAULTS, MEMBERS, NAMES, NUMBERS, step
from tests.aggregator.model.collection import Collection
from tests.aggregator.model.ground import Member
from tests.aggregator.model.metrics import DAY, HOUR, metrics
from tests.aggregator.model.stacks import Fault


class Rounds(Collection):
    """Rules by which time passes and rounds close."""

    @step(seconds=st.sampled_from([1, 60, 300, 600, HOUR, HOUR, DAY]), back=st.booleans())
    def turn_the_clock(self, seconds: int, back: bool) -> None:
        self.now = max(0, self.now - seconds if back else self.now + seconds)

    @step(name=NAMES, number=NUMBERS, opening=st.booleans(), by=st.sampled_from([-0.5, 0, 0.5]))
    def turn_the_clock_to_an_edge(self, name: str, number: int, opening: bool, by: float) -> None:
        asked = metrics()[name]
        self._turn_to_an_edge(asked, number % asked.rounds, opening=opening, by=by)

    @step(place=MEMBERS, fault=st.sampled_from([None, None, Fault.NOT_BEGUN, Fault.UNDONE]))
    def close_due_rounds(self, place: int, fault: Fault | None) -> None:
        member = self._member(place)
        due = {
            (digest, number)
            for digest, number in self.model.open_rounds
            if digest in member.view.digests and self.model.asked[digest].over(number, self.now)
        }
        with self._failing(member, fault if due else None):
            member.stack.close_due_rounds()
        if fault is None:
            for key in due:
                self.model.rounds[key].close(self.now)
            member.announced += len(due)
        self._touched |= due

    @step(place=MEMBERS, name=NAMES, number=NUMBERS, fault=FAULTS)
    def close_a_round_by_hand(
        self, place: int, name: str, number: int, fault: Fault | None
    ) -> None:
        member, asked = self._member(place), metrics()[name]
        close = member.stack.close_round
        if asked.digest not in member.view.digests or number >= asked.rounds:
            with pytest.raises(Refused, match=r"there is no metric|rounds? 0"):
                close(name, number)
            return
        if self.now < asked.begins(number):
            with pytest.raises(Refused, match="has not begun yet"):
                close(name, number)
            return
        with self._failing(member, fault):
            answer = close(name, number)
        self._touched.add((asked.digest, number))
        if fault not in (Fault.NOT_BEGUN, Fault.UNDONE):
            one = self.model.round((asked.digest, number))
            before = one.closed
            one.close(self.now)
            if fault is None:
                assert (answer.round, answer.n, answer.closed_now) == (number, one.n, not before)
                member.announced += 1

    @contextmanager
    def _failing(self, member: Member, fault: Fault | None) -> Any:
        """Within it, the store fails so; it must be told."""
        member.stack.store.fault = fault
        try:
            if fault is None:
                yield
            else:
                with pytest.raises(StoreUnavailable, match=str(fault)):
                    yield
        finally:
            member.stack.store.fault = None
