# ruff: noqa: S311  chance decides what is sent, not what is secret
"""Reports, and uploads of them."""

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from hubbub.bundle import SealingKey
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
from tests.aggregator.model.metrics import START, metrics
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
        self, asked: Asked, number: int, reports: Sequence[Report], key: SealingKey
    ) -> Sending:
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
        # Any that there ever was; the newest if it is 0.
        sealing_key = self.keys[-1 - key % len(self.keys)].sealing_key
        sending = self._sealed(asked, number, self._reports(asked, n, seed), sealing_key)
        self._send(self._member(place), sending, fate)
        return sending

    @step(target=SENDINGS, place=MEMBERS, name=NAMES, n=SIZES, seed=SEEDS, fate=FATES)
    def upload_to_the_round_of_now(
        self, place: int, name: str, n: int, seed: int, fate: Fate
    ) -> Sending:
        member, asked = self._member(place), metrics()[name]
        reports = self._reports(asked, n, seed)
        sending = self._sealed(asked, self._round_of_now(asked), reports, member.key)
        self._send(member, sending, fate)
        return sending

    def _round_of_now(self, asked: Asked) -> int:
        """The one that is asked now, or else the nearest."""
        number = int(self.now - START) // asked.every if asked.every else 0
        return min(max(0, number), asked.rounds - 1)

    @step(
        place=MEMBERS,
        name=st.sampled_from([name for name, asked in metrics().items() if asked.closes(0)]),
        number=NUMBERS,
        opening=st.booleans(),
        by=st.sampled_from([-0.05, 0, 0.05]),
    )
    def upload_as_a_round_opens_or_closes(
        self, *, place: int, name: str, number: int, opening: bool, by: float
    ) -> None:
        """A moment before it, then, or a moment after."""
        member, asked = self._member(place), metrics()[name]
        number %= asked.rounds
        self._turn_to_an_edge(asked, number, opening=opening, by=by)
        reports = self._reports(asked, 1, number)
        self._send(member, self._sealed(asked, number, reports, member.key), Fate.ANSWERED)

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
        """All of one aggregator and round: what it remembers of before must not be believed.

        Then what failed is sent again.
        """
        member, asked = self._member(place), metrics()[name]
        number, sendings = self._round_of_now(asked), list[Sending]()
        for turn, fate in enumerate([Fate.ANSWERED, fault, Fate.ANSWERED]):
            reports = self._reports(asked, 1 + seed % 9, seed + turn)
            sendings.append(self._sealed(asked, number, reports, member.key))
            self._send(member, sendings[-1], fate)
        self._send(member, sendings[1], Fate.ANSWERED)

    @step(place=MEMBERS, name=NAMES, number=NUMBERS)
    def nothing_that_opens(self, place: int, name: str, number: int) -> None:
        """Nobody's key, or another's bytes: told for each report."""
        member, asked = self._member(place), metrics()[name]
        sending = self._sealed(asked, 0, self._reports(asked, 1, number), member.key)
        request = sending.copy()
        request.sealed = bytes(len(request.sealed)) * (1 if number < 4 else 1_001)
        self._send(member, Sending(request, name, ()), Fate.ANSWERED)
