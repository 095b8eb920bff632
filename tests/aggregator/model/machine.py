"""A state machine over real aggregators that share a store, and the model that must agree.

Every rule does something to both; after every step all that the store holds is compared with all
that the model says. At the end whatever was not answered is sent again, and every round closes.
"""

from tests.aggregator.model.comparison import Comparison
from tests.aggregator.model.devices import Devices
from tests.aggregator.model.ground import Fate
from tests.aggregator.model.replays import Replays
from tests.aggregator.model.rounds import Rounds
from tests.aggregator.model.starts import Starts
from tests.aggregator.model.together import Together


class Machine(Replays, Together, Devices, Rounds, Starts, Comparison):
    """All of the rules. Give it a `ground` in a subclass."""

    def teardown(self) -> None:
        try:
            if self._sound:
                self._end_all()
        finally:
            for device in self._devices.values():
                device.close()
            for stack in [*self._graves, *(member.stack for member in self.members)]:
                stack.close()
            self._ending.close()

    def _end_all(self) -> None:
        """Send what was not answered, close what is open, and see that everything is there once."""
        member = self.members[0]
        for sending in self._unanswered:
            self._send(member, sending, Fate.ANSWERED)
        for device in self._devices.values():
            self._flush(device, member, [Fate.ANSWERED])
        for digest, number in sorted(self.model.open_rounds):
            one = self.model.rounds[digest, number]
            closed = member.stack.store.close_round(digest, number, now=self.now)
            assert (closed.n, closed.closed_now) == (one.n, True)
            one.close(self.now)
            self._touched.add((digest, number))
        self._touched.update(self.model.rounds)
        self._compare()
