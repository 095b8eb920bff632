"""A served bundle whose rounds hold a few hundred reports, for tests of what analysts ask."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hubbub.bundle import Bundle
from hubbub.randomness import SYSTEM
from hubbub.v1 import estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.tally import Tally
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeProcess
from tests.typed import Ran, typed

TIMEOUT = 30

LUNCHES = ("soup", "salad", "pasta", "nothing")

# How many devices have each of a metric's first values, by metric and round.
Crowds = Mapping[tuple[str, int], Sequence[int]]


class Asked:
    """What was served, what came in, and how to ask about it."""

    def __init__(self, serve: ServeProcess, bundle: Bundle, crowds: Crowds) -> None:
        self.bundle = bundle
        self.address = serve.private
        with serve.public_channel() as channel:
            reports = report_pb2_grpc.ReportServiceStub(channel)
            self.tallies = {
                (name, number): self._send(reports, name, number, crowd)
                for (name, number), crowd in crowds.items()
            }
        self.channel = serve.private_channel()
        self.estimates = estimate_pb2_grpc.EstimateServiceStub(self.channel)

    def run(self, *arguments: str) -> Ran:
        """A command that reads the private listener."""
        return typed(*arguments, "--aggregator", self.address)

    def refusal(self, *arguments: str) -> str:
        """The one line in which such a command says what is wrong."""
        run = self.run(*arguments)
        assert run.returncode == 1
        assert run.stderr.startswith("hubbub: ")
        assert run.stderr.count("\n") == 1
        return run.stderr

    def _send(self, reports: Any, name: str, number: int, crowd: Sequence[int]) -> Tally:
        """Count the reports of a crowd; returns how often each value is supported."""
        mechanism = self.bundle.metrics[name].mechanism
        values = [value for value, holders in enumerate(crowd) for _ in range(holders)]
        payloads = [mechanism.randomise(value, SYSTEM) for value in values]
        made = [(os.urandom(16), payload) for payload in payloads]
        answer = reports.SubmitReports(
            make_request(self.bundle, name, made, number), timeout=TIMEOUT
        )
        assert answer.statuses == [report_pb2.REPORT_STATUS_COUNTED] * len(made)
        cells = Tally.empty(mechanism.k).cells
        for payload in payloads:
            cells[mechanism.supported(payload)] += 1
        return Tally(len(made), cells)


@contextmanager
def asked(operator: Operator, folder: Path, crowds: Crowds) -> Generator[Asked]:
    """Serve metrics of every shape that can be asked about, and count the crowds' reports."""
    bundle = make_bundle(
        operator,
        make_metric("lunch.today", values=LUNCHES, epsilon="2"),
        make_metric(
            "lunch.weekly", values=LUNCHES, mechanism="optimised-unary", periodic=(10**9, 4, 10**9)
        ),
        make_metric("dinner", values=("salad", "soup", "stew"), mechanism="subset-selection"),
        make_metric("visits", values=("0", "1", "2", "3"), epsilon="ln 9"),
        make_metric("wide", values=[f"v{i}" for i in range(1_000)]),
        make_metric("silent", values=LUNCHES),
        make_metric("words", open=True, mechanism="local-hashing"),
    )
    (folder / "metrics.hubbub").write_bytes(bundle.signed)
    with ServeProcess(operator, folder / "metrics.hubbub", folder / "store.sqlite3") as serve:
        made = Asked(serve, bundle, crowds)
        with made.channel:
            yield made
