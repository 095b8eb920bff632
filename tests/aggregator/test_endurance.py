# ruff: noqa: S311  chance decides what is sent and when to stop, not what is secret
"""An hour at half load, in three parts on the same store, with restarts: nothing drifts.

Run the parts one after the other: each continues where the one before it stopped.
"""

import json
import os
import random
import signal
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.keys import load_signing_key
from tests.bundles import Operator, make_bundle, make_metric
from tests.overload import resident
from tests.processes import ServeProcess
from tests.quick_sealing import QuickSealer

METRIC: Final = "asked.often"
VALUES: Final = 256
BATCH: Final = 200
SENDERS: Final = 4
# A round, and as long again for what is late; seconds.
ROUND: Final = 30
# How long a part sends, and at first finds out how much can be sent; seconds.
SENDING: Final = 17 * 60
MEASURING: Final = 15
# Shortest and longest time between restarts; how long a process has settled; seconds.
RESTARTS: Final = (30, 150)
SETTLED: Final = 25
# How much more the third part may take than the first.
MOST_MEMORY: Final = 20 << 20
MOST_DESCRIPTORS: Final = 4


class Sample(NamedTuple):
    """What a process that has settled takes."""

    memory: int
    """Resident bytes."""
    descriptors: int
    threads: int


def sample(pid: int) -> Sample:
    process = Path(f"/proc/{pid}")
    return Sample(
        resident(pid),
        len(list((process / "fd").iterdir())),
        len(list((process / "task").iterdir())),
    )


class Crowd:
    """Senders at a rate, who do not give up; what was acknowledged, by round and value."""

    def __init__(self, operator: Operator, bundle: Bundle, address: str) -> None:
        self._authority = (operator.folder / "ca.crt").read_bytes()
        self._bundle = bundle
        self._metric = bundle.metrics[METRIC]
        self._address = address
        self._sealers: dict[int, QuickSealer] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self.acknowledged: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self.batches = 0
        self.tries = 0
        self.faults: list[str] = []

    @contextmanager
    def sending(self, rate: float | None) -> Iterator[None]:
        """So many reports a second, or as many as there can be, while the body runs."""
        self._ending.clear()
        threads = [
            threading.Thread(target=self._send_all, args=(random.Random(i), rate))
            for i in range(SENDERS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ending.set()
            for thread in threads:
                thread.join()

    def _send_all(self, chance: random.Random, rate: float | None) -> None:
        pause = 0.0 if rate is None else BATCH * SENDERS / rate
        channel = self._channel()
        due = time.monotonic() + chance.random() * pause
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            # What was missed while nobody listened is not made up for.
            due = max(due + pause, time.monotonic() - 1)
            channel = self._send(channel, chance)
        channel.close()

    def _send(self, channel: grpc.Channel, chance: random.Random) -> grpc.Channel:
        number = self._metric.schedule.round_at(time.time())
        assert number is not None
        values = chance.choices(range(VALUES), k=BATCH)
        request = self._request(number, values)
        while True:
            self.tries += 1
            try:
                stub = report_pb2_grpc.ReportServiceStub(channel)
                answer = stub.SubmitReports(request, timeout=5)
            except grpc.RpcError as error:
                if error.code() not in (
                    grpc.StatusCode.UNAVAILABLE,
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    grpc.StatusCode.CANCELLED,
                ):
                    self.faults.append(f"{error.code()}: {error.details()}")
                    return channel
                channel.close()
                time.sleep(chance.uniform(0.1, 0.5))
                channel = self._channel()
                continue
            with self._lock:
                self.acknowledged[number].update(values)
                self.batches += 1
            if set(answer.statuses) - {
                report_pb2.REPORT_STATUS_COUNTED,
                report_pb2.REPORT_STATUS_DUPLICATE,
            }:
                self.faults.append(f"statuses {set(answer.statuses)}")
            return channel

    def _request(self, number: int, values: list[int]) -> report_pb2.SubmitReportsRequest:
        with self._lock:
            if number not in self._sealers:
                self._sealers[number] = QuickSealer(self._bundle, METRIC, number)
        sealer, size = self._sealers[number], self._metric.mechanism.payload_size
        return report_pb2.SubmitReportsRequest(
            digest=self._metric.digest,
            round=number,
            key_id=self._bundle.sealing_keys[0].key_id,
            sealed=b"".join(
                sealer.seal(os.urandom(16) + (1 << value).to_bytes(size, "little"))
                for value in values
            ),
        )

    def _channel(self) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(self._authority)
        return grpc.secure_channel(
            self._address, credentials, (("grpc.use_local_subchannel_pool", 1),)
        )


class Part:
    """One of three, on what the others left in a folder."""

    def __init__(self, folder: Path, operator: Operator, bundle: Bundle) -> None:
        self._folder = folder
        self._operator = operator
        self._bundle = bundle
        self._samples: list[Sample] = []
        self._restarts: Counter[str] = Counter()
        self._serve = self._start("127.0.0.1:0")
        self._began = time.monotonic()

    def run(self, chance: random.Random) -> dict[str, float]:
        """Send, stop and start, count; the figures of it."""
        crowd = Crowd(self._operator, self._bundle, self._serve.public)
        try:
            with crowd.sending(None):
                time.sleep(MEASURING)
            measured = crowd.batches
            capacity = measured * BATCH / MEASURING
            with crowd.sending(capacity / 2):
                self._restart_now_and_then(chance)
            self._settle_and_count(crowd)
        finally:
            self._serve.__exit__()
        assert not crowd.faults, crowd.faults[:5]
        memory = [one.memory for one in self._samples]
        half = len(memory) // 2
        return {
            "reports": sum(sum(counts.values()) for counts in crowd.acknowledged.values()),
            "capacity, reports/s": capacity,
            "load": (crowd.batches - measured) * BATCH / SENDING / capacity,
            "tries per batch": crowd.tries / crowd.batches,
            "kills": self._restarts["kill"],
            "terminations": self._restarts["terminate"],
            "memory": statistics.median(memory),
            "memory, first half": statistics.median(memory[:half]),
            "memory, second half": statistics.median(memory[half:]),
            "most memory": max(memory),
            "descriptors": statistics.median(one.descriptors for one in self._samples),
            "most descriptors": max(one.descriptors for one in self._samples),
            "threads": statistics.median(one.threads for one in self._samples),
            "store": sum(path.stat().st_size for path in self._folder.glob("store*")),
        }

    def _start(self, listen: str) -> ServeProcess:
        return ServeProcess(
            self._operator, self._folder / "metrics.hubbub", self._folder / "store", listen=listen
        )

    def _restart_now_and_then(self, chance: random.Random) -> None:
        end = time.monotonic() + SENDING
        restart = time.monotonic() + chance.uniform(*RESTARTS)
        while time.monotonic() < end:
            time.sleep(1)
            if time.monotonic() - self._began > SETTLED:
                self._samples.append(sample(self._serve.pid))
            if time.monotonic() > restart:
                self._restart(chance.choice(("kill", "terminate")))
                restart = time.monotonic() + chance.uniform(*RESTARTS)

    def _restart(self, how: str) -> None:
        self._restarts[how] += 1
        address = self._serve.public
        if how == "kill":
            self._serve.kill()
        else:
            self._serve.send(signal.SIGTERM)
            assert self._serve.wait() == 0
        self._serve.__exit__()
        self._serve = self._start(address)
        self._began = time.monotonic()

    def _settle_and_count(self, crowd: Crowd) -> None:
        """Wait until every round is closed; then each value was counted as often as was said."""
        time.sleep(2 * ROUND + 5)
        with self._serve.private_channel() as channel:
            estimates = estimate_pb2_grpc.EstimateServiceStub(channel)
            for number, expected in sorted(crowd.acknowledged.items()):
                answer = estimates.GetEstimates(
                    estimate_pb2.GetEstimatesRequest(metric=METRIC, round=number), timeout=30
                ).estimates
                counts = {i: row.count for i, row in enumerate(answer.values) if row.count}
                assert counts == expected, f"round {number}"
                assert answer.n == sum(expected.values())


@pytest.fixture(scope="module")
def folder(pytestconfig: pytest.Config) -> Path:
    """Stays from one run to the next, since the parts may be run one at a time."""
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir("endurance")


def begin(folder: Path) -> None:
    """An empty store, and a metric whose first round begins now."""
    for old in [*folder.glob("store*"), folder / "figures.json"]:
        with suppress(FileNotFoundError):
            old.unlink()
    if not (folder / "keys").exists():
        Operator.create(folder / "keys")
    metric = make_metric(
        METRIC,
        values=[f"value {i}" for i in range(VALUES)],
        mechanism="optimised-unary",
        periodic=(ROUND, 1_000, ROUND),
        starts=int(time.time()),
    )
    operator = Operator(folder / "keys", load_signing_key(folder / "keys"))
    (folder / "metrics.hubbub").write_bytes(make_bundle(operator, metric).signed)


def run_part(folder: Path, number: int) -> list[dict[str, float]]:
    """The figures of this part, after those of the parts before it."""
    operator = Operator(folder / "keys", load_signing_key(folder / "keys"))
    path = folder / "metrics.hubbub"
    bundle = Bundle.verify(path.read_bytes(), operator_key=operator.key)
    figures = folder / "figures.json"
    before: list[dict[str, float]] = json.loads(figures.read_text()) if figures.exists() else []
    assert len(before) >= number, "the parts before this one have not been run"
    here = Part(folder, operator, bundle).run(random.Random(number))
    all_figures = [*before[:number], here]
    figures.write_text(json.dumps(all_figures))
    for name in here:
        print(f"{name:<24}" + "".join(f"{part[name]:>18,.2f}" for part in all_figures))
    return all_figures


@pytest.mark.soak
def test_endurance_first_part(folder: Path) -> None:
    begin(folder)
    run_part(folder, 0)


@pytest.mark.soak
def test_endurance_second_part(folder: Path) -> None:
    assert_no_drift(run_part(folder, 1))


@pytest.mark.soak
def test_endurance_third_part(folder: Path) -> None:
    assert_no_drift(run_part(folder, 2))


def assert_no_drift(parts: list[dict[str, float]]) -> None:
    first, last = parts[0], parts[-1]
    assert last["memory"] - first["memory"] < MOST_MEMORY
    assert last["most descriptors"] - first["most descriptors"] <= MOST_DESCRIPTORS
