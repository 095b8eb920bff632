"""A device of the state machine: a real client with its state in a folder, and what it must say."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from hubbub import Bundle, Client, Outcome
from hubbub.errors import UnknownMetric
from hubbub.rows import Status
from hubbub.transport import Refused
from hubbub.upload import FINAL, SETTLED
from tests.aggregator.model.modelled import Asked, Report

# Longer than any flush: who is told to come again comes with the next one.
_LATER: Final = 3_600.0

Answer = bytes | str | None
"""A status each, the reason of a refusal, or None: nothing was heard."""


class Wire:
    """A Transport that hands over to the machine, and has its clients wait for the next flush."""

    destination = "localhost:7443"

    def __init__(self) -> None:
        self.deliver: Callable[[bytes, int, bytes, bytes], Answer] = lambda *_: None
        self.fetch: Callable[[], bytes | None] = lambda: None

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        answer = self.deliver(digest, round_number, key_id, sealed)
        if isinstance(answer, bytes):
            return answer
        raise Refused(answer or "UNAVAILABLE", _LATER)

    def fetch_bundle(self, timeout: float) -> bytes:
        bundle = self.fetch()
        if bundle is None:
            raise Refused("UNAVAILABLE", _LATER)
        return bundle

    def close(self) -> None:
        """Nothing: there is no connection."""


class Device:
    """A client, and every round that it must have answered, once."""

    def __init__(
        self, folder: Path, bundle: Bundle, sources: Iterable[str], clock: Callable[[], float]
    ) -> None:
        """`sources`: what the app has budgets for, also such as only later bundles ask about."""
        self._folder = folder
        self._bundle = bundle
        self._sources = list(sources)
        self._clock = clock
        self.wire = Wire()
        self.answers: dict[tuple[str, int], Status] = {}
        """By metric and round, what must have become of the report."""
        self.left: dict[tuple[str, int], Report] = {}
        """What left for each of them."""
        self._client = self._start()

    def _start(self) -> Client:
        clock = self._clock

        class Obedient(Client):
            _clock = staticmethod(clock)

            def _wake(self) -> None:
                """Sends when it is told to, and not by itself."""

        return Obedient(
            self._bundle,
            operator_key=self._bundle.operator,
            state_dir=self._folder,
            budgets=dict.fromkeys(self._sources, "20"),
            transport=self.wire,
        )

    def restart(self, bundle: Bundle) -> None:
        """With a newer app, which knows that bundle."""
        self.close()
        self._bundle = bundle
        self._client = self._start()

    def record(self, asked: Asked, value: str) -> None:
        name, number = asked.metric.name, self._round(asked)
        try:
            handle = self._client.metric(name)
        except UnknownMetric:
            assert name not in self._client._bundle.metrics
            return
        outcome = handle.record(value)
        if number is None:
            assert outcome is Outcome.NOT_ASKED_NOW
            return
        key = name, number
        if outcome:
            assert key not in self.answers
            self.answers[key] = Status.WAITING
        elif key in self.answers:
            assert outcome is Outcome.ALREADY_ANSWERED
        else:
            # By a clock that was set back: from before it began to answer.
            assert asked.metric.is_series, outcome
            assert outcome is Outcome.NOT_JOINED

    def _round(self, asked: Asked) -> int | None:
        """The round that is asked now; the first is, a little before it begins."""
        now = self._clock()
        if now < asked.starts - 300:
            return None
        if not asked.every:
            return None if asked.ends is not None and now >= asked.ends else 0
        number = max(0, int(now - asked.starts) // asked.every)
        return number if number < asked.rounds else None

    def leaves(self, asked: Asked, number: int, report: Report) -> None:
        """See that it is the only one for its round."""
        key = asked.metric.name, number
        assert key in self.answers
        assert self.left.setdefault(key, report) == report
        self.answers[key] = Status.SENT

    def hears(self, asked: Asked, number: int, answer: Answer) -> None:
        key = asked.metric.name, number
        if isinstance(answer, bytes):
            (status,) = answer
            self.answers[key] = SETTLED[status]
        elif answer is not None and answer in FINAL:
            self.answers[key] = FINAL[answer]

    def flush(self) -> None:
        self._client.flush(60)

    def agrees(self) -> None:
        """Compare its ledger with what it must have done."""
        entries = self._client._ledger.entries()
        said = {(entry.metric, entry.round): entry.status for entry in entries}
        assert len(said) == len(entries)
        assert said == self.answers, (said, self.answers)

    def close(self) -> None:
        self._client.close()
