# ruff: noqa: S311  chance decides what is sent, not what is secret
"""What was sent once already: the same again, or changed."""

import random

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from tests.aggregator.model.choices import FATES, MEMBERS, NAMES, NUMBERS, SEEDS, SENDINGS, step
from tests.aggregator.model.ground import Fate, Sending
from tests.aggregator.model.metrics import metrics
from tests.aggregator.model.uploads import Uploads


class Replays(Uploads):
    """Rules that send again."""

    @step(place=MEMBERS, sending=SENDINGS, fate=FATES)
    def replay(self, place: int, sending: Sending, fate: Fate) -> None:
        self._send(self._member(place), sending, fate)

    @precondition(lambda self: self._unanswered)
    @step(place=MEMBERS, which=st.integers(0, 7), fate=FATES)
    def send_again(self, place: int, which: int, fate: Fate) -> None:
        sending = self._unanswered.pop(which % len(self._unanswered))
        self._send(self._member(place), sending, fate)

    @step(place=MEMBERS, sending=SENDINGS, bit=st.integers(0, 2**16 - 1))
    def replay_with_a_bit_flipped(self, place: int, sending: Sending, bit: int) -> None:
        request = sending.copy()
        if request.sealed:
            request.sealed = _flipped(request.sealed, bit)
            self._send(self._member(place), Sending(request, sending.metric, ()), Fate.ANSWERED)

    @step(
        place=MEMBERS,
        sending=SENDINGS,
        mutation=st.sampled_from(
            ["digest", "metric", "round", "key", "other key", "length", "both"]
        ),
        by=st.integers(1, 255),
    )
    def replay_for_something_else(
        self, place: int, sending: Sending, mutation: str, by: int
    ) -> None:
        """The same bytes, said to be of another metric, round or key, or not whole."""
        request = sending.copy()
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
        target=SENDINGS,
        place=MEMBERS,
        sending=SENDINGS,
        number=NUMBERS,
        other=st.one_of(st.none(), NAMES),
        seed=SEEDS,
        fate=FATES,
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
        chance, member = random.Random(seed), self._member(place)
        asked = metrics()[other or sending.metric]
        reports = [(one, self._payload(chance, asked)) for one, _ in sending.reports]
        made = self._sealed(asked, number % asked.rounds, reports, member.key)
        self._send(member, made, fate)
        return made


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8 % len(changed)] ^= 1 << bit % 8
    return bytes(changed)
