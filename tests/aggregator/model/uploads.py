# ruff: noqa: S311  chance decides what is sent, not what is secret
"""Reports, and uploads of them."""

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from hubbub.sealing import seal
from hubbub.v1 import report_pb2
from tests.aggregator.model.choices import (
    FATES,
    MEMBERS,
    NAMES,
    NUMBERS,
    SEEDS,
    SENDINGS,
    SIZES,
    step,
)
from tests.aggregator.model.collection import Collection
from tests.aggregator.model.ground import Fate, Sending
from tests.aggregator.model.metrics import HOUR, START, metrics
from tests.aggregator.model.modelled import Asked, Report


class Uploads(Collection):
    """Rules that send what was not sent before."""

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

    @step(
        target=SENDINGS,
        place=MEMBERS,
        name=NAMES,
        number=NUMBERS,
        n=SIZES,
        seed=SEEDS,
        key=st.integers(0, 2),
        fate=FATES,
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

    @step(target=SENDINGS, place=MEMBERS, name=NAMES, n=SIZES, seed=SEEDS, fate=FATES)
    def upload_to_the_round_of_now(
        self, place: int, name: str, n: int, seed: int, fate: Fate
    ) -> Sending:
        asked = metrics()[name]
        number = int(self.now - START) // HOUR if asked.every else 0
        number = min(max(0, number), asked.rounds - 1)
        sending = self._sealed(asked, number, self._reports(asked, n, seed), 0)
        self._send(self._member(place), sending, fate)
        return sending

    @step(target=SENDINGS, place=MEMBERS, name=NAMES, n=SIZES, seed=SEEDS, fate=FATES)
    def upload_plain(self, place: int, name: str, n: int, seed: int, fate: Fate) -> Sending:
        asked = metrics()[name]
        reports = self._reports(asked, n, seed)
        ids, said = (b"".join(parts) for parts in zip(*reports, strict=True))
        request = report_pb2.SubmitReportsRequest(digest=asked.digest, ids=ids, payloads=said)
        sending = Sending(request, name, reports)
        self._send(self._member(place), sending, fate)
        return sending

    @step(place=MEMBERS, name=NAMES, seed=SEEDS, fault=st.sampled_from([Fate.DONE, Fate.UNDONE]))
    def a_commit_fails_between_others(self, place: int, name: str, seed: int, fault: Fate) -> None:
        """All of one aggregator and round: what it remembers of before must not be believed."""
        member, asked = self._member(place), metrics()[name]
        for number, fate in enumerate([Fate.ANSWERED, fault, Fate.ANSWERED]):
            reports = self._reports(asked, 1 + seed % 9, seed + number)
            self._send(member, self._sealed(asked, 0, reports, 0), fate)

    @step(place=MEMBERS, name=NAMES, number=NUMBERS)
    def nothing_that_opens(self, place: int, name: str, number: int) -> None:
        """Nobody's key, or another's bytes: told for each report."""
        asked = metrics()[name]
        sending = self._sealed(asked, 0, self._reports(asked, 1, number), 0)
        request = sending.copy()
        request.sealed = bytes(len(request.sealed)) * (1 if number < 4 else 1_001)
        self._send(self._member(place), Sending(request, name, ()), Fate.ANSWERED)
