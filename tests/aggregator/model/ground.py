"""What machines run on, and what passes between them and aggregators."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from hubbub.bundle import SealingKey
from hubbub.v1 import report_pb2
from tests.aggregator.model.modelled import Report, View
from tests.aggregator.model.stacks import Fault, Stack
from tests.bundles import Operator

# Of how many reports more a snapshot is taken.
STEP: Final = 25

# What is tested is not the disk, and memory is faster where there is a file system in it.
SCRATCH: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


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

    def copy(self) -> report_pb2.SubmitReportsRequest:
        """The request, to be changed."""
        return report_pb2.SubmitReportsRequest.FromString(self.request.SerializeToString())


@dataclass
class Member:
    """An aggregator, and what the model says of it."""

    stack: Stack
    view: View
    totals: Counter[str] = field(default_factory=Counter)
    announced: int = 0
    """How often those who watch must have been woken, at least."""

    @property
    def key(self) -> SealingKey:
        """The one that its bundle has devices seal to."""
        return self.stack.bundle.sealing_keys[0]


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
