"""A client that notes what a program records, and sends nothing."""

import weakref
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from hubbub.bundle import Bundle
from hubbub.client import Client, MetricHandle
from hubbub.contract import Metric
from hubbub.outcome import Outcome
from hubbub.rows import Switch
from hubbub.testing.aggregator import Aggregator
from hubbub.testing.metrics import metric as any_metric

_SWITCHED_OFF: Final[Mapping[Switch | None, Outcome]] = {
    Switch.PAUSED: Outcome.PAUSED,
    Switch.OPTED_OUT: Outcome.OPTED_OUT,
}


class Recorded(NamedTuple):
    """One call of `record`."""

    metric: str
    value: object
    """What was given: the true value, which no other client keeps."""
    outcome: Outcome
    """What the program was told."""


class RecordingClient(Client):
    """A `hubbub.Client` for tests: it keeps true values, in memory, and cannot send.

    It knows no rounds and spends no budget: whatever is recorded is "stored", unless
    `will_answer` says otherwise, the client is closed or off, or its owner has paused it or
    opted out. All else is as with a real client.
    """

    def __init__(
        self,
        bundle: Bundle | None = None,
        *,
        budgets: Mapping[str, str] | None = None,
        enabled: bool = True,
    ) -> None:
        """Without a `bundle` every name is a metric's, and every value one of its own.

        `budgets`: as a real client's, which sources are declared; all, if none are given.
        """
        # Knows no metric and so takes no report, should one ever get there.
        nowhere = Aggregator()
        given = bundle or nowhere.bundle
        sources = {metric.source for metric in given.metrics.values()}
        super().__init__(
            given,
            operator_key=given.operator,
            state_dir=None,
            budgets=dict.fromkeys(sources, "32") if budgets is None else budgets,
            enabled=enabled,
            transport=nowhere,
        )
        # Tests seldom close what is nothing but memory.
        weakref.finalize(self, self._ledger.close)
        self.recorded: list[Recorded] = []
        """Everything that was recorded, in order."""
        self._any_metric = bundle is None
        self._answers = deque[Outcome]()

    def will_answer(self, *outcomes: Outcome) -> None:
        """What the next calls of `record` are to be told, one each."""
        self._answers.extend(outcomes)

    def metric(self, name: str) -> MetricHandle:
        if self._any_metric:
            return MetricHandle(self, any_metric(name, ["yes", "no"]))
        return super().metric(name)

    def flush(self, timeout: float = 5.0) -> bool:
        """Send nothing. Returns what a client that reached its aggregator would."""
        return self.enabled and not self._closed

    def _try_to_record(self, metric: Metric, value: object) -> Outcome:
        outcome = self._outcome(metric, value)
        self.recorded.append(Recorded(metric.name, value, outcome))
        return outcome

    def _outcome(self, metric: Metric, value: object) -> Outcome:
        if not self._may_record():
            return self._off()
        off = _SWITCHED_OFF.get(self.switch)
        if off is not None:
            return off
        if self._answers:
            return self._answers.popleft()
        inside = self._any_metric or (
            (value is None or isinstance(value, str)) and metric.domain.index_of(value) is not None
        )
        return Outcome.STORED if inside else Outcome.STORED_OUTSIDE_DOMAIN

    def _enrol(self, metric: Metric) -> None:
        """Nothing: there is no series to pay for."""
