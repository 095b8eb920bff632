"""Aggregators that share a store, the model of it, and how both are sent a request."""

import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2
from hubbub_aggregator.keys import OpeningKey, add_sealing_key
from hubbub_aggregator.store import Store
from tests.aggregator.model.choices import LISTED
from tests.aggregator.model.device import Device
from tests.aggregator.model.ground import SCRATCH, STEP, Fate, Ground, Member, Sending
from tests.aggregator.model.metrics import HOUR, START, metrics
from tests.aggregator.model.modelled import SKEW, Asked, Model, RoundKey, Taken, View
from tests.aggregator.model.stacks import Fault, Stack
from tests.aggregator.stores import run
from tests.bundles import make_bundle


class Collection(RuleBasedStateMachine):
    """What all rules share."""

    ground: Ground

    def __init__(self) -> None:
        super().__init__()
        self._ending = ExitStack()
        self._location = self._ending.enter_context(self.ground.locations())
        folder = self._ending.enter_context(tempfile.TemporaryDirectory(dir=SCRATCH))
        self._folder = Path(folder)
        self.now: float = START
        self.model = Model(metrics().values(), STEP)
        self.keys: list[OpeningKey] = []
        self.signed: list[Bundle] = []
        self.members: list[Member] = []
        self._writers = 0
        self._graves: list[Stack] = []
        self._ids: list[bytes] = []
        self._unanswered: list[Sending] = []
        self._devices: dict[int, Device] = {}
        # Which rounds' rows are to be looked at.
        self._touched: set[RoundKey] = set()
        # Whether the last step ended as it should.
        self._sound = False
        self._began = False

    @initialize(names=LISTED, hybrid=st.booleans(), hour=st.integers(0, 4))
    def begin(self, names: set[str], hybrid: bool, hour: int) -> None:
        self.now = START + hour * HOUR
        self._publish(names, hybrid=hybrid)
        for _ in range(self.ground.members):
            self.members.append(self._started(self.signed[-1], take_plain=True))
        self._began = True

    def _started(self, bundle: Bundle, *, take_plain: bool) -> Member:
        self._writers += 1
        keys = {key.key_id: key for key in self.keys}
        held = {key.key_id: keys[key.key_id] for key in bundle.sealing_keys}
        stack = Stack(
            self._location,
            bundle,
            held,
            lambda: self.now,
            writer=self._writers,
            step=STEP,
            take_plain=take_plain,
        )
        self.model.revision = bundle.revision
        for name, metric in bundle.metrics.items():
            assert self.model.names.setdefault(name, metric.digest) == metric.digest
        # All that any bundle has listed, as far as this one can know.
        digests = frozenset(self.model.names.values())
        assert stack.digests == digests
        suites = {key.key_id: key.suite for key in held.values()}
        return Member(stack, View(digests, suites, take_plain))

    def _publish(self, names: set[str], *, hybrid: bool | None, retire: bool = False) -> None:
        """Sign another bundle; with a new key first, if `hybrid` says which kind."""
        revision = len(self.signed) + 1
        listed = list(self.signed[-1].sealing_keys) if self.signed else []
        if hybrid is not None:
            self.keys.append(add_sealing_key(self._folder, hybrid=hybrid, now=float(revision)))
            listed.insert(0, self.keys[-1].sealing_key)
        if retire and len(listed) > 1:
            listed.pop()
        contracts = [metrics()[name].metric.contract for name in sorted(names)]
        self.signed.append(
            make_bundle(self.ground.operator, *contracts, revision=revision, sealing_keys=listed)
        )

    def _member(self, place: int) -> Member:
        return self.members[place % len(self.members)]

    def _turn_to_an_edge(self, asked: Asked, number: int, *, opening: bool, by: float) -> None:
        """To where a round begins to take reports, or takes no more, if it ever closes."""
        closes = asked.closes(number)
        self.now = (asked.begins(number) - SKEW if opening or closes is None else closes) + by

    def _send(self, member: Member, sending: Sending, fate: Fate) -> None:
        """Let it have its fate, and see that the answer is right."""
        if fate is Fate.REQUEST_LOST:
            self._unanswered.append(sending)
            return
        self._submit(member, sending.request, fate)
        if fate is not Fate.ANSWERED:
            self._unanswered.append(sending)

    def _submit(
        self, member: Member, request: report_pb2.SubmitReportsRequest, fate: Fate
    ) -> bytes | str:
        """A request that arrives: what is answered, which is right."""
        judged = self.model.judge(member.view, request, self.now)
        member.stack.store.fault = fate.fault
        said = member.stack.submit(request)
        member.stack.store.fault = None
        if not isinstance(judged, str):
            self._touched.add((request.digest, request.round))
        expected = self._settled(member, judged, fate.fault)
        assert said == expected, (said, expected)
        self._count(member, said)
        return said

    def _count(self, member: Member, said: bytes | str) -> None:
        if isinstance(said, str):
            counts = Counter([f"REFUSAL_REASON_{said}"])
        else:
            counts = Counter(report_pb2.ReportStatus.Name(one) for one in said)
        member.totals += counts
        self.ground.seen += counts

    def _settled(
        self, member: Member, judged: Taken | bytes | str, fault: Fault | None
    ) -> bytes | str:
        """What must be said, and what is counted by it."""
        if not isinstance(judged, Taken):
            return judged
        if fault in (Fault.NOT_BEGUN, Fault.UNDONE):
            return "STORE_UNAVAILABLE"
        shown = self.model.round(judged.key).shown
        statuses = self.model.commit(judged, self.now)
        if fault is Fault.DONE:
            return "STORE_UNAVAILABLE"
        if statuses is None:
            member.view.closed.add(judged.key)
            return "ROUND_CLOSED"
        member.announced += self.model.rounds[judged.key].shown is not shown
        return statuses

    def _kept(self, store: Store, key: RoundKey) -> list[bytes]:
        """The retained payloads of a round, commit by commit."""
        rows = run(
            store,
            "SELECT payloads FROM retained JOIN round ON round_id = round.id "
            "WHERE digest = :digest AND number = :number ORDER BY retained.id",
            {"digest": key[0], "number": key[1]},
        )
        return [bytes(row[0]) for row in rows]
