"""What a real aggregator counted of what programs were told they had recorded."""

import sqlite3
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hubbub import Client, Outcome
from hubbub.rows import Status
from tests.bundles import Operator, make_metric
from tests.devices import PATIENCE, entries
from tests.processes import ServeProcess


class Collection:
    """A real aggregator and its bundle, in a folder; the state of the one device there is."""

    def __init__(
        self,
        operator: Operator,
        folder: Path,
        names: Sequence[str],
        *,
        source: str = "health",
        epsilon: str = "0.001",
    ) -> None:
        self.operator = operator
        self.folder = folder
        self._source = source
        self.bundle_file = folder / "metrics.hubbub"
        self.state = folder / "state"
        self._store = folder / "store.sqlite3"
        # Rounds of a second, so that reports leave within one.
        now = int(time.time())
        self._metrics = [
            make_metric(
                name, epsilon=epsilon, source=source, starts=now, periodic=(1, 50_000, 3_600)
            )
            for name in names
        ]

    @contextmanager
    def served(self) -> Generator[ServeProcess]:
        """The aggregator, and a bundle that leads to it."""
        self.bundle_file.write_bytes(self.operator.sign(self._metrics))
        with ServeProcess(self.operator, self.bundle_file, self._store) as serve:
            endpoint = f"localhost:{serve.public.rpartition(':')[2]}"
            self.bundle_file.write_bytes(self.operator.sign(self._metrics, endpoint=endpoint))
            yield serve
            assert serve.terminate() == 0

    def send_the_rest(self) -> None:
        """One more start, which sends what programs left when they ended."""
        with Client(
            self.bundle_file,
            operator_key=self.operator.key,
            state_dir=self.state,
            budgets={self._source: "8"},
        ) as client:
            assert client.flush(PATIENCE)

    def judge(self, told: Sequence[str]) -> None:
        """Nothing lost, nothing doubled; `told`: the names of the outcomes that `record` gave."""
        kept = entries(self.state)
        ids = [entry.report[:16] for entry in kept if entry.report is not None]
        assert Counter(entry.status for entry in kept) == {Status.COUNTED: len(kept)}
        assert len(set(ids)) == len(kept) == told.count(Outcome.STORED.name)
        with sqlite3.connect(self._store) as store:
            packed = b"".join(some for (some,) in store.execute("SELECT ids FROM counted_ids"))
        store.close()
        assert sorted(packed[at : at + 16] for at in range(0, len(packed), 16)) == sorted(ids)
