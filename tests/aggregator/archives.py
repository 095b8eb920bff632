"""Archives for tests: one metric of every mechanism, counted by a Committer and closed."""

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.domain import text_index
from hubbub.mechanisms import MECHANISMS, MEMOISED
from hubbub.randomness import SYSTEM
from hubbub_aggregator.archive.writing import Archive
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.closing import Closer
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.store import Store
from tests.aggregator.waiting import Waiting
from tests.bundles import make_metric

NOW = 1_000.0
OPEN = "open"
NAMES = (*MECHANISMS, *MEMOISED, OPEN)
ROUNDS = 3

Report = tuple[bytes, bytes]
"""An id and a payload."""


def contract(name: str) -> bytes:
    """A metric that retains its reports, of the mechanism that is its name."""
    if name == OPEN:
        return make_metric(name, open=True, epsilon="4", source=name, periodic=(60, ROUNDS, 60))
    return make_metric(
        name,
        mechanism=name,
        values=[f"value {i}" for i in range(7)],
        permanent="2" if name in MEMOISED else "",
        periodic=(60, ROUNDS, 60),
        source=name,
        retain=True,
    )


def reports_of(metric: Metric, n: int) -> list[Report]:
    """Honest reports of n devices, each with a memo of its own if the mechanism has one."""
    found: list[Report] = []
    for i in range(n):
        value = text_index("tea") if metric.domain.open else i % 3
        mechanism: Any = metric.mechanism
        if metric.mechanism.name in MEMOISED:
            payload = mechanism.respond(mechanism.memorise(SYSTEM), value, SYSTEM)
        else:
            payload = mechanism.randomise(value, SYSTEM)
        found.append((os.urandom(16), payload))
    return found


class Counting:
    """A store with everything between a request that is opened and a round that is closed."""

    def __init__(
        self, bundle: Bundle, location: str, folder: Path | None, *, writer: int = 1
    ) -> None:
        self.bundle = bundle
        self.store = Store(location, writer=writer, publish_step=10)
        self.store.adopt(bundle, now=NOW)
        self.catalogue = Catalogue(bundle, self.store.metrics())
        announcements = Announcements()
        self.committer = Committer(
            self.store, announcements, lambda: NOW, Observations(lambda: NOW)
        )
        archive = None if folder is None else Archive(folder)
        self.closer = Closer(self.catalogue, self.store, archive, announcements)

    def count(
        self, name: str, commits: Sequence[Sequence[Report]], number: int = 0
    ) -> list[bytes | None]:
        """Commit after commit; what became of each one's reports."""
        statuses: list[bytes | None] = []
        for reports in commits:
            one = Waiting(
                self.catalogue.by_name[name],
                number,
                plain=b"".join(report_id + payload for report_id, payload in reports),
            )
            self.committer.commit([one])
            statuses.append(one.wait())
        return statuses

    def close_round(self, name: str, number: int = 0) -> int:
        """Returns how many reports it had."""
        return self.closer.close(self.catalogue.by_name[name], number, NOW).n

    def close(self) -> None:
        self.committer.close()
        self.store.close()


def archived(
    bundle: Bundle, location: str, folder: Path, name: str, commits: Sequence[Sequence[Report]]
) -> bytes:
    """The file that these commits, and the closing of their round, come to."""
    with closing(Counting(bundle, location, folder)) as counting:
        counting.count(name, commits)
        counting.close_round(name)
    (path,) = folder.glob("digest=*/round=0/*.parquet")
    return path.read_bytes()


def shuffled(reports: Sequence[Report]) -> list[Report]:
    return [reports[i] for i in np.random.default_rng().permutation(len(reports))]
