"""What an aggregator takes in: reports a second, durable and counted once, and what limits them.

A real `hubbub serve` over TLS, with SQLite and, where a server is to be had, with PostgreSQL. Each
figure stands beside what it cannot exceed, measured alternately in the same run: an empty gRPC
server with the same TLS, threads and limits that is sent the same requests; or how fast one
processor opens sealed reports. Ratios are medians over the turns. The client writes HTTP/2 frames
that were made before (tests/flood.py) and is on the other processor than a single server; what it
costs is shown, as is what the server's process costs.

Run as `python benchmarks/ingest.py [singles] [batches] [large]`; all three take about five minutes.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import grpc
import pytest

# The operator, the server's process and the client are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.empty_server import empty_server
from hubbub.bundle import Bundle
from hubbub.sealing import context, seal
from hubbub.v1 import report_pb2
from hubbub_aggregator.keys import load_opening_keys
from hubbub_aggregator.listeners import SUBMIT
from tests import postgres
from tests.bundles import Operator, make_bundle, make_metric
from tests.flood import flood
from tests.overload import resident
from tests.processes import ServeProcess

OVERLOADED: Final = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
TURNS: Final = 5
SINGLES: Final = 4_000
BATCH: Final = 1_000
# As many requests at once, of one report each and of BATCH: none is turned away for want of time,
# where nothing else keeps the processors.
AT_ONCE, BATCHES_AT_ONCE = 128, 4
# How many are counted before it is measured.
LARGE: Final = 5_000_000
MEASURED: Final = 500_000
FEW: Final = [f"value {number}" for number in range(4)]
MANY: Final = [f"value {number}" for number in range(1_024)]

Requests = Callable[[int], Iterable[bytes]]
"""So many requests, serialised, none of which was sent before."""


def line(what: str, *figures: str) -> None:
    print(f"{what:<54}" + "".join(f"{figure:>12}" for figure in figures), flush=True)


# Requests.


def sealed_requests(bundle: Bundle, name: str, size: int) -> Requests:
    """Of `size` sealed reports each."""
    metric, key = bundle.metrics[name], bundle.sealing_keys[0]
    payload = bytes(metric.mechanism.payload_size)

    def request() -> bytes:
        sealed = b"".join(
            seal(key, metric.digest, 0, os.urandom(16) + payload) for _ in range(size)
        )
        return report_pb2.SubmitReportsRequest(
            digest=metric.digest, key_id=key.key_id, sealed=sealed
        ).SerializeToString()

    return lambda count: [request() for _ in range(count)]


def plain_requests(bundle: Bundle, name: str, size: int) -> Requests:
    """Of `size` reports each, as they are; made when they are sent."""
    metric = bundle.metrics[name]
    payloads = os.urandom(size * metric.mechanism.payload_size)
    if metric.name == "few":
        payloads = bytes(size)

    def request() -> bytes:
        return report_pb2.SubmitReportsRequest(
            digest=metric.digest, ids=os.urandom(16 * size), payloads=payloads
        ).SerializeToString()

    return lambda count: (request() for _ in range(count))


# Servers.


def cpu_seconds(pid: int) -> float:
    """What a process has used, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Measured(NamedTuple):
    """Of one turn."""

    rate: float
    """Requests a second."""
    server: float
    """Microseconds of the server's processor time, for a request."""
    client: float
    """Microseconds of ours."""


def measure(pid: int, address: str, ca: bytes, requests: Iterable[bytes], at_once: int) -> Measured:
    """Send requests, each of which must be answered; that some are turned away is said."""
    before, ours, began = cpu_seconds(pid), time.process_time(), time.perf_counter()
    answered = turned_away = 0
    for answer in flood(address, SUBMIT, requests, authority=ca, connections=2, in_flight=at_once):
        if answer.status == OVERLOADED:
            turned_away += 1
            continue
        if answer.status or not answer.message:
            raise RuntimeError(f"a request was not answered: status {answer.status}")
        answered += 1
    seconds = time.perf_counter() - began
    if turned_away:
        print(f"  {turned_away} of {turned_away + answered} were turned away", flush=True)
    return Measured(
        answered / seconds,
        (cpu_seconds(pid) - before) / answered * 1e6,
        (time.process_time() - ours) / answered * 1e6,
    )


def ratio(mine: Sequence[Measured], theirs: Sequence[Measured]) -> float:
    return median(one.rate / other.rate for one, other in zip(mine, theirs, strict=True))


# What is measured.


def show_singles(operator: Operator, bundle: Bundle, ca: bytes, folder: Path) -> None:
    """One report to a request, each answered when it is durable."""
    print(f"\none report to a request, {AT_ONCE} at once")
    line("", "requests/s", "server µs", "client µs", "ratio")
    path = folder / "bundle"
    with (
        empty_server(operator.folder, 0) as (empty, nowhere),
        ServeProcess(
            operator,
            path,
            folder / "singles",
            flags=["--take-plain"],
            prefix=("taskset", "-c", "0"),
        ) as serve,
    ):
        os.sched_setaffinity(0, {1})
        for what, made, goal in (
            ("plain", plain_requests(bundle, "few", 1), "0.70"),
            ("sealed", sealed_requests(bundle, "few", 1), "0.55"),
        ):
            bare, real = [], []
            for turn in range(TURNS + 1):
                for pid, address, found in (
                    (empty, nowhere, bare),
                    (serve.pid, serve.public, real),
                ):
                    measured = measure(pid, address, ca, list(made(SINGLES)), AT_ONCE)
                    if turn:
                        found.append(measured)
            show(what, real, f"{ratio(real, bare):.2f}")
            show("  limit: an empty gRPC server", bare, f"(goal {goal})")
        os.sched_setaffinity(0, {0, 1})


def show(what: str, turns: Sequence[Measured], last: str = "", each: int = 1) -> None:
    rate, server, client = (median(one[i] for one in turns) for i in range(3))
    line(what, f"{rate * each:,.0f}", f"{server / each:.2f}", f"{client / each:.2f}", last)


def open_rate(operator: Operator, bundle: Bundle) -> float:
    """Sealed reports that one processor opens in a second, and does nothing else."""
    metric, key = bundle.metrics["few"], bundle.sealing_keys[0]
    opening = load_opening_keys(operator.folder)[key.key_id]
    info = context(metric.digest, 0, key.key_id)
    sealed = [seal(key, metric.digest, 0, os.urandom(16) + b"\1") for _ in range(BATCH)]
    began = time.process_time()
    for one in sealed:
        opening.open(info, one)
    return BATCH / (time.process_time() - began)


def show_batches(operator: Operator, bundle: Bundle, ca: bytes, folder: Path) -> None:
    """Sealed batches, opened in the process that counts and in two others."""
    print(f"\nsealed batches of {BATCH:,}, {BATCHES_AT_ONCE} at once")
    line("", "reports/s", "server µs", "client µs", "ratio")
    made = sealed_requests(bundle, "few", BATCH)
    with ExitStack() as stack:
        served = {
            workers: stack.enter_context(
                ServeProcess(
                    operator,
                    folder / "bundle",
                    folder / f"batches {workers}",
                    flags=["--workers", str(workers)],
                )
            )
            for workers in (0, 2)
        }
        found: dict[int, list[Measured]] = {workers: [] for workers in served}
        bare: list[float] = []
        for turn in range(TURNS + 1):
            for workers, serve in served.items():
                requests = list(made(24))
                measured = measure(serve.pid, serve.public, ca, requests, BATCHES_AT_ONCE)
                if turn:
                    found[workers].append(measured)
            if turn:
                bare.append(open_rate(operator, bundle))
    ratios = [one.rate * BATCH / alone for one, alone in zip(found[0], bare, strict=True)]
    show("opened in the process that counts", found[0], f"{median(ratios):.2f}", BATCH)
    line("  limit: one processor that opens", f"{median(bare):,.0f}", "", "", "(goal 0.80)")
    show("opened in two others", found[2], f"{ratio(found[2], found[0]):.2f}", BATCH)
    line("  limit: both processors, less what the client uses", "", "", "", "(goal 1.6)")


def show_large(operator: Operator, bundle: Bundle, ca: bytes, folder: Path) -> None:
    """Plain batches, when the round has counted millions."""
    print(f"\nplain batches of {BATCH:,}, k = {len(MANY):,}, {BATCHES_AT_ONCE} at once")
    line("", "reports/s", "server µs", "client µs", "goal")
    made = plain_requests(bundle, "many", BATCH)
    with ExitStack() as stack:
        stores = {"SQLite": (str(folder / "large"), "250,000")}
        servers = stack.enter_context(postgres.Servers())
        for kind in postgres.KINDS:
            try:
                server = servers.get(kind)
            except pytest.skip.Exception as missing:
                line(f"{kind}: {missing}")
                continue
            stores[kind] = (stack.enter_context(server.database()), "80,000")
        for name, (store, goal) in stores.items():
            with ServeProcess(operator, folder / "bundle", store, flags=["--take-plain"]) as serve:
                parts = []
                for what, n in (("the first", MEASURED), ("", LARGE), ("the next", MEASURED)):
                    requests = made(n // BATCH)
                    parts = [measure(serve.pid, serve.public, ca, requests, BATCHES_AT_ONCE)]
                    if what:
                        show(f"{name}, {what} {n:,}", parts, goal, BATCH)
            began = time.perf_counter()
            with ServeProcess(operator, folder / "bundle", store) as serve:
                seconds = time.perf_counter() - began
                memory = resident(serve.pid) / 1e6
            line(f"  started again: {seconds:.1f} s, {memory:,.0f} MB")


def main() -> None:
    wanted = set(sys.argv[1:]) or {"singles", "batches", "large"}
    print(f"{os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        operator = Operator.create(folder / "keys")
        bundle = make_bundle(
            operator,
            make_metric("few", values=FEW, mechanism="randomised-response"),
            make_metric("many", values=MANY, mechanism="optimised-unary"),
        )
        (folder / "bundle").write_bytes(bundle.signed)
        ca = (operator.folder / "ca.crt").read_bytes()
        for part, show_part in (
            ("singles", show_singles),
            ("batches", show_batches),
            ("large", show_large),
        ):
            if part in wanted:
                show_part(operator, bundle, ca, folder)


if __name__ == "__main__":
    main()
