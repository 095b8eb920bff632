"""Bundles, and aggregators that are killed or end and start again."""

from typing import Final

import pytest
from hypothesis import strategies as st

from hubbub.errors import ChangedContract, ForeignOperator, LowerRevision
from hubbub_aggregator.store import Store
from tests.aggregator.model.choices import LISTED, MEMBERS, NAMES, step
from tests.aggregator.model.collection import Collection
from tests.aggregator.model.ground import STEP
from tests.aggregator.model.metrics import START, metrics
from tests.bundles import make_bundle, make_metric

# Dead aggregators keep their connections, as killed ones may for a while; a server has 100.
_GRAVES: Final = 6


class Starts(Collection):
    """Rules of what an operator does."""

    @step(
        names=LISTED,
        hybrid=st.one_of(st.none(), st.booleans()),
        retire=st.booleans(),
    )
    def sign_another_bundle(self, names: set[str], hybrid: bool | None, retire: bool) -> None:
        """No aggregator has it before it is started again."""
        self._publish(names, hybrid=hybrid, retire=retire)

    @step(place=MEMBERS, kill=st.booleans(), take_plain=st.booleans(), newest=st.booleans())
    def restart(self, place: int, kill: bool, take_plain: bool, newest: bool) -> None:
        """Ended in order, or not at all; then another, with the newest bundle or with the same."""
        place %= len(self.members)
        stack = self.members[place].stack
        bundle = self.signed[-1] if newest else stack.bundle
        if kill:
            self._graves.append(stack)
            for dead in self._graves[:-_GRAVES]:
                dead.close()
            del self._graves[:-_GRAVES]
        else:
            stack.close()
        if bundle.revision < self.model.revision:
            with pytest.raises(LowerRevision):
                self._started(bundle, take_plain=take_plain)
            bundle = self.signed[-1]
        self.members[place] = self._started(bundle, take_plain=take_plain)

    @step(what=st.sampled_from(["lower", "same", "changed", "foreign"]), name=NAMES)
    def start_with_a_bundle_that_is_refused(self, what: str, name: str) -> None:
        ground, revision = self.ground, self.model.revision
        operator = ground.operator
        error: type[Exception] = LowerRevision
        contracts = [metrics()[one].metric.contract for one in metrics()]
        match what:
            case "lower":
                revision -= 1
            case "same":
                # Of this revision there is one already, which says something else.
                contracts.append(make_metric("another"))
            case "changed":
                known = name in self.model.names
                error = ChangedContract
                changed = make_metric(name, source="something.else", starts=START)
                contracts = [changed] if known else []
                revision += 1
            case "foreign":
                operator, error = ground.stranger, ForeignOperator
                revision += 1
        if not revision or not contracts:
            return
        bundle = make_bundle(operator, *contracts, revision=revision)
        store = Store(self._location, writer=2**62, publish_step=STEP)
        with pytest.raises(error):
            store.adopt(bundle, now=0)
        store.close()
