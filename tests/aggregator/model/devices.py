"""Devices with a real client, and a network that loses what they send."""

from collections.abc import Sequence
from itertools import cycle

from hypothesis import strategies as st

from hubbub.sealing import context
from hubbub.v1 import report_pb2
from tests.aggregator.model.choices import DEVICES, FATES, MEMBERS, NAMES, step
from tests.aggregator.model.collection import Collection
from tests.aggregator.model.device import Answer, Device
from tests.aggregator.model.ground import Fate, Member
from tests.aggregator.model.metrics import metrics


class Devices(Collection):
    """Rules of what devices do."""

    def _device(self, which: int) -> Device:
        if which not in self._devices:
            folder = self._folder / f"device-{which}"
            self._devices[which] = Device(folder, self.signed[-1], metrics(), lambda: self.now)
        return self._devices[which]

    @step(which=DEVICES, name=NAMES, value=st.sampled_from("abcd"))
    def a_device_records(self, which: int, name: str, value: str) -> None:
        self._device(which).record(metrics()[name], value)

    @step(which=DEVICES)
    def a_device_restarts(self, which: int) -> None:
        """With an app that may know a newer bundle."""
        self._device(which).restart(self.signed[-1])

    @step(which=DEVICES, place=MEMBERS, fates=st.lists(FATES, min_size=1, max_size=4))
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
