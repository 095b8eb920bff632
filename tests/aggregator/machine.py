# ruff: noqa: S311  chance decides what is sent, not what is secret
"""A state machine over real aggregators that share a store, and the model that must agree.

Every rule does something to both; after every step all that the store holds is compared with all
that the model says. At the end whatever was not answered is sent again, and every round closes.
"""

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, wraps
from itertools import chain, cycle
from operator import le
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle as Sendings,
)
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from hubbub.bundle import Bundle
from hubbub.contract import parse_metric
from hubbub.errors import ChangedContract, ForeignOperator, LowerRevision
from hubbub.rows import Status
from hubbub.sealing import context, seal
from hubbub.v1 import report_pb2
from hubbub_aggregator.keys import OpeningKey, add_sealing_key
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.store import Store, StoreUnavailable
from tests.aggregator.model_device import Answer, Device
from tests.aggregator.modelled import (
    COUNTED,
    DUPLICATE,
    NOT_CANONICAL,
    NOT_OPENED,
    Asked,
    Model,
    Report,
    RoundKey,
    Shown,
    Taken,
    View,
    reader,
)
from tests.aggregator.stacks import Fault, Stack
from tests.aggregator.stores import run
from tests.bundles import Operator, make_bundle, make_metric

START: Final = 1_000_000
STEP: Final = 25
HOUR, DAY = 3_600, 86_400

# What is tested is not the disk, and memory is faster where there is a file system in it.
SCRATCH: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108

# Dead aggregators keep their connections, as killed ones may for a while; a server has 100.
_GRAVES: Final = 6


@cache
def metrics() -> Mapping[str, Asked]:
    """One of each kind, by name."""
    rounds = {"every": HOUR, "rounds": 4, "grace": 600}
    five = [*"abcde"]
    return {
        "once": _asked("once", mechanism="optimised-unary", values=[*"abcdefghij"]),
        "short": _asked(
            "short", ends=START + 2 * DAY, retain=True, mechanism="randomised-response"
        ),
        "hourly": _asked("hourly", **rounds, retain=True, mechanism="optimised-unary", values=five),
        "memo": _asked(
            "memo", **rounds, mechanism="memoised-optimised-unary", values=five, permanent="2"
        ),
        "open": _asked("open", open=True),
        "sets": _asked("sets", mechanism="subset-selection", values=[*"abcdefg"], epsilon="0.5"),
    }


def _asked(name: str, **options: Any) -> Asked:
    schedule = {name: options.pop(name, 0) for name in ("every", "rounds", "grace")}
    periodic = tuple(schedule.values()) if schedule["every"] else None
    contract = make_metric(name, source=name, starts=START, periodic=periodic, **options)
    metric = parse_metric(contract)
    cells, read = reader(metric)
    return Asked(
        metric,
        metric.mechanism.payload_size,
        cells,
        read,
        starts=START,
        rounds=schedule["rounds"] or 1,
        ends=options.get("ends"),
        every=schedule["every"],
        grace=schedule["grace"],
        retain=metric.retain,
    )


class Fate(Enum):
    """What becomes of a request on its way, and of its answer."""

    ANSWERED = "all is well"
    REQUEST_LOST = "it never arrives"
    ANSWER_LOST = "it is answered, and nobody hears it"
    NOT_BEGUN = Fault.NOT_BEGUN
    UNDONE = Fault.UNDONE
    DONE = Fault.DONE

    @property
    def fault(self) -> Fault | None:
        return self.value if isinstance(self.value, Fault) else None


@dataclass(frozen=True)
class Sending:
    """A request, and what is in it."""

    request: report_pb2.SubmitReportsRequest
    metric: str
    reports: Sequence[Report]


@dataclass
class Member:
    """An aggregator, and what the model says of it."""

    stack: Stack
    view: View
    totals: Counter[str] = field(default_factory=Counter)
    announced: int = 0
    """How often those who watch must have been woken, at least."""


@dataclass
class Ground:
    """What machines run on."""

    operator: Operator
    stranger: Operator
    locations: Callable[[], AbstractContextManager[str]]
    """An empty store's place, each time."""
    members: int
    """How many aggregators share a store."""
    steps: int = 0
    """How many steps were executed."""
    seen: Counter[str] = field(default_factory=Counter)
    """What became of reports and requests, by status or reason."""


# All sizes, and often such as are opened one after the other, or by themselves.
_SIZES = st.one_of(st.integers(1, 3), st.integers(1, 40))
_SEEDS = st.integers(0, 2**32 - 1)
_NAMES = st.sampled_from(list(metrics()))
# Of a bundle: most of them, since there is little to say about what no bundle lists.
_LISTED = st.sets(_NAMES, max_size=3).map(lambda left_out: metrics().keys() - left_out)
_NUMBERS = st.integers(0, 4)
_DEVICES = st.integers(0, 1)
_MEMBERS = st.integers(0, 7)
_FATES = st.one_of(st.just(Fate.ANSWERED), st.sampled_from(Fate))
_FAULTS = st.one_of(st.none(), st.sampled_from(Fault))


def step(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A rule; until what must hold was found to hold, there is nothing to be said at the end."""

    def decorate(does: Callable[..., Any]) -> Any:
        @wraps(does)
        def run(machine: "Machine", **given: Any) -> Any:
            machine._sound = False
            return does(machine, **given)

        return rule(**options)(run)

    return decorate


class Machine(RuleBasedStateMachine):
    """Give it a `ground` in a subclass."""

    ground: Ground
    sendings = Sendings("sendings")

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

    # Beginning and ending

    @initialize(names=_LISTED, hybrid=st.booleans(), hour=st.integers(0, 4))
    def begin(self, names: set[str], hybrid: bool, hour: int) -> None:
        self.now = START + hour * HOUR
        self._publish(names, hybrid=hybrid)
        for _ in range(self.ground.members):
            self.members.append(self._started(self.signed[-1], take_plain=True))
        self._began = True

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

    # Reports

    def _reports(self, asked: Asked, n: int, seed: int) -> list[Report]:
        """Some, of which a few have ids that others have, or payloads that no device makes."""
        chance = random.Random(seed)
        made: list[Report] = []
        for _ in range(n):
            report_id = self._id(chance, [report_id for report_id, _ in made])
            made.append((report_id, self._payload(chance, asked)))
        self._ids += [report_id for report_id, _ in made]
        return made

    def _id(self, chance: random.Random, beside: list[bytes]) -> bytes:
        luck = chance.random()
        if luck < 0.05 and beside:
            return chance.choice(beside)
        if luck < 0.10 and self._ids:
            return chance.choice(self._ids)
        if luck < 0.13:
            # Half of it equal, or all of it nothing.
            return bytes(8) + chance.choice((bytes(8), chance.randbytes(8)))
        return chance.randbytes(16)

    def _payload(self, chance: random.Random, asked: Asked) -> bytes:
        payload = chance.randbytes(asked.size)
        if chance.random() >= 0.02:
            while asked.read(payload) is None:
                payload = chance.randbytes(asked.size)
        return payload

    def _sealed(
        self, asked: Asked, number: int, reports: Sequence[Report], key_place: int
    ) -> Sending:
        """Sealed to a key that there ever was, the newest if it is 0."""
        key = self.keys[-1 - key_place % len(self.keys)].sealing_key
        pieces = [seal(key, asked.digest, number, b"".join(report)) for report in reports]
        for piece, report in zip(pieces, reports, strict=True):
            self.model.sealed[asked.digest, number, key.key_id, piece] = report
        request = report_pb2.SubmitReportsRequest(
            digest=asked.digest, round=number, key_id=key.key_id, sealed=b"".join(pieces)
        )
        return Sending(request, asked.metric.name, reports)

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

    # Rules: sending

    @step(
        target=sendings,
        place=_MEMBERS,
        name=_NAMES,
        number=_NUMBERS,
        n=_SIZES,
        seed=_SEEDS,
        key=st.integers(0, 2),
        fate=_FATES,
    )
    def upload(
        self, *, place: int, name: str, number: int, n: int, seed: int, key: int, fate: Fate
    ) -> Sending:
        asked = metrics()[name]
        # Mostly a round that there is.
        number %= asked.rounds + (number > 3)
        sending = self._sealed(asked, number, self._reports(asked, n, seed), key)
        self._send(self._member(place), sending, fate)
        return sending

    @step(target=sendings, place=_MEMBERS, name=_NAMES, n=_SIZES, seed=_SEEDS, fate=_FATES)
    def upload_to_the_round_of_now(
        self, place: int, name: str, n: int, seed: int, fate: Fate
    ) -> Sending:
        asked = metrics()[name]
        number = int(self.now - START) // HOUR if asked.every else 0
        number = min(max(0, number), asked.rounds - 1)
        sending = self._sealed(asked, number, self._reports(asked, n, seed), 0)
        self._send(self._member(place), sending, fate)
        return sending

    @step(target=sendings, place=_MEMBERS, name=_NAMES, n=_SIZES, seed=_SEEDS, fate=_FATES)
    def upload_plain(self, place: int, name: str, n: int, seed: int, fate: Fate) -> Sending:
        asked = metrics()[name]
        reports = self._reports(asked, n, seed)
        ids, said = (b"".join(parts) for parts in zip(*reports, strict=True))
        request = report_pb2.SubmitReportsRequest(digest=asked.digest, ids=ids, payloads=said)
        sending = Sending(request, name, reports)
        self._send(self._member(place), sending, fate)
        return sending

    @step(place=_MEMBERS, sending=sendings, fate=_FATES)
    def replay(self, place: int, sending: Sending, fate: Fate) -> None:
        self._send(self._member(place), sending, fate)

    @precondition(lambda self: self._unanswered)
    @step(place=_MEMBERS, which=st.integers(0, 7), fate=_FATES)
    def send_again(self, place: int, which: int, fate: Fate) -> None:
        sending = self._unanswered.pop(which % len(self._unanswered))
        self._send(self._member(place), sending, fate)

    @step(place=_MEMBERS, name=_NAMES, seed=_SEEDS, fault=st.sampled_from([Fate.DONE, Fate.UNDONE]))
    def a_commit_fails_between_others(self, place: int, name: str, seed: int, fault: Fate) -> None:
        """All of one aggregator and round: what it remembers of before must not be believed."""
        member, asked = self._member(place), metrics()[name]
        for number, fate in enumerate([Fate.ANSWERED, fault, Fate.ANSWERED]):
            reports = self._reports(asked, 1 + seed % 9, seed + number)
            self._send(member, self._sealed(asked, 0, reports, 0), fate)

    @step(place=_MEMBERS, sending=sendings, bit=st.integers(0, 2**16 - 1))
    def replay_with_a_bit_flipped(self, place: int, sending: Sending, bit: int) -> None:
        request = _copy(sending.request)
        if request.sealed:
            request.sealed = _flipped(request.sealed, bit)
            self._send(self._member(place), Sending(request, sending.metric, ()), Fate.ANSWERED)

    @step(
        place=_MEMBERS,
        sending=sendings,
        mutation=st.sampled_from(
            ["digest", "metric", "round", "key", "other key", "length", "both"]
        ),
        by=st.integers(1, 255),
    )
    def replay_for_something_else(
        self, place: int, sending: Sending, mutation: str, by: int
    ) -> None:
        """The same bytes, said to be of another metric, round or key, or not whole."""
        request = _copy(sending.request)
        match mutation:
            case "digest":
                request.digest = _flipped(request.digest, by)
            case "metric":
                others = [one for one in metrics().values() if one.digest != request.digest]
                request.digest = others[by % len(others)].digest
            case "round":
                request.round = request.round + by % 4 if by < 250 else 2**64 - by
            case "key":
                request.key_id = _flipped(request.key_id or bytes(8), by)
            case "other key":
                request.key_id = self.keys[by % len(self.keys)].key_id
            case "length":
                request.sealed, request.ids = request.sealed[by:], request.ids[by:]
            case "both":
                request.sealed, request.payloads = request.sealed or b"x", request.payloads or b"x"
        self._send(self._member(place), Sending(request, sending.metric, ()), Fate.ANSWERED)

    @step(
        target=sendings,
        place=_MEMBERS,
        sending=sendings,
        number=_NUMBERS,
        other=st.one_of(st.none(), _NAMES),
        seed=_SEEDS,
        fate=_FATES,
    )
    def the_same_ids_again(
        self,
        *,
        place: int,
        sending: Sending,
        number: int,
        other: str | None,
        seed: int,
        fate: Fate,
    ) -> Sending:
        """With other payloads, perhaps for another round or metric."""
        chance = random.Random(seed)
        asked = metrics()[other or sending.metric]
        reports = [(one, self._payload(chance, asked)) for one, _ in sending.reports]
        made = self._sealed(asked, number % asked.rounds, reports, 0)
        self._send(self._member(place), made, fate)
        return made

    @step(place=_MEMBERS, name=_NAMES, number=_NUMBERS)
    def nothing_that_opens(self, place: int, name: str, number: int) -> None:
        """Nobody's key, or another's bytes: told for each report."""
        asked = metrics()[name]
        sending = self._sealed(asked, 0, self._reports(asked, 1, number), 0)
        request = _copy(sending.request)
        request.sealed = bytes(len(request.sealed)) * (1 if number < 4 else 1_001)
        self._send(self._member(place), Sending(request, name, ()), Fate.ANSWERED)

    # Rules: at once

    @step(
        name=_NAMES,
        number=_NUMBERS,
        seeds=st.lists(st.tuples(_MEMBERS, _SEEDS), min_size=2, max_size=4),
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
            runs.append((self._member(place), self._sealed(asked, number, again + more, 0)))
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

    # Rules: devices

    def _device(self, which: int) -> Device:
        if which not in self._devices:
            folder = self._folder / f"device-{which}"
            self._devices[which] = Device(folder, self.signed[-1], metrics(), lambda: self.now)
        return self._devices[which]

    @step(which=_DEVICES, name=_NAMES, value=st.sampled_from("abcd"))
    def a_device_records(self, which: int, name: str, value: str) -> None:
        self._device(which).record(metrics()[name], value)

    @step(which=_DEVICES, name=_NAMES)
    def a_device_restarts(self, which: int, name: str) -> None:
        """With an app that may know a newer bundle."""
        self._device(which).restart(self.signed[-1])

    @step(which=_DEVICES, place=_MEMBERS, fates=st.lists(_FATES, min_size=1, max_size=4))
    def a_device_sends(self, which: int, place: int, fates: list[Fate]) -> None:
        self._flush(self._device(which), self._member(place), fates)

    def _flush(self, device: Device, member: Member, fates: Sequence[Fate]) -> None:
        """Send what waits; the requests have these fates in turn."""
        turns = cycle(fates)

        def deliver(digest: bytes, number: int, key_id: bytes, sealed: bytes) -> Answer:
            asked, fate = self.model.asked[digest], next(turns)
            (key,) = (key for key in self.keys if key.key_id == key_id)
            opened = key.open(context(digest, number, key_id), sealed)
            assert opened is not None
            report = opened[:16], opened[16:]
            self.model.sealed[digest, number, key_id, sealed] = report
            device.leaves(asked, number, report)
            if fate is Fate.REQUEST_LOST:
                return None
            request = report_pb2.SubmitReportsRequest(
                digest=digest, round=number, key_id=key_id, sealed=sealed
            )
            answer = self._submit(member, request, fate)
            if fate is Fate.ANSWER_LOST:
                return None
            device.hears(asked, number, answer)
            return answer

        device.wire.deliver = deliver
        device.wire.fetch = lambda: (
            None if next(turns) is Fate.REQUEST_LOST else member.stack.bundle.signed
        )
        device.flush()

    # Rules: time and rounds

    @step(seconds=st.sampled_from([1, 60, 300, 600, HOUR, HOUR, DAY]), back=st.booleans())
    def turn_the_clock(self, seconds: int, back: bool) -> None:
        self.now = max(0, self.now - seconds if back else self.now + seconds)

    @step(name=_NAMES, number=_NUMBERS, edge=st.booleans(), by=st.sampled_from([-0.5, 0, 0.5]))
    def turn_the_clock_to_an_edge(self, name: str, number: int, edge: bool, by: float) -> None:
        asked = metrics()[name]
        number %= asked.rounds
        closes = asked.closes(number)
        self.now = (asked.begins(number) - 300 if edge or closes is None else closes) + by

    @step(place=_MEMBERS, fault=st.sampled_from([None, None, Fault.NOT_BEGUN, Fault.UNDONE]))
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

    @step(place=_MEMBERS, name=_NAMES, number=_NUMBERS, fault=_FAULTS)
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

    # Rules: starts

    @step(
        names=_LISTED,
        hybrid=st.one_of(st.none(), st.booleans()),
        retire=st.booleans(),
    )
    def sign_another_bundle(self, names: set[str], hybrid: bool | None, retire: bool) -> None:
        """No aggregator has it before it is started again."""
        self._publish(names, hybrid=hybrid, retire=retire)

    @step(place=_MEMBERS, kill=st.booleans(), take_plain=st.booleans(), newest=st.booleans())
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

    @step(what=st.sampled_from(["lower", "same", "changed", "foreign"]), name=_NAMES)
    def start_with_a_bundle_that_is_refused(self, what: str, name: str) -> None:
        ground, revision = self.ground, self.model.revision
        operator, error = ground.operator, LowerRevision
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
            store.adopt(bundle)
        store.close()

    # What must hold

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
            _wait_for(lambda member=member: member.stack.announced >= member.announced)
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
        if snapshot is None or shown is None:
            assert snapshot is shown
            return
        tally = snapshot.tally
        assert (tally.n, tally.plain, snapshot.as_of) == (shown.n, shown.plain, shown.as_of)
        assert tuple(tally.cells.tolist()) == shown.cells

    def _kept(self, store: Store, key: RoundKey) -> list[bytes]:
        """The retained payloads of a round, commit by commit."""
        rows = run(
            store,
            "SELECT payloads FROM retained JOIN round ON round_id = round.id "
            "WHERE digest = :digest AND number = :number ORDER BY retained.id",
            {"digest": key[0], "number": key[1]},
        )
        return [bytes(row[0]) for row in rows]

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


def _wait_for(holds: Callable[[], bool]) -> None:
    """Those who watch are woken a moment after the answers are out."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def _copy(request: report_pb2.SubmitReportsRequest) -> report_pb2.SubmitReportsRequest:
    return report_pb2.SubmitReportsRequest.FromString(request.SerializeToString())


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8 % len(changed)] ^= 1 << bit % 8
    return bytes(changed)
