"""What the SDK costs the device that it is a guest on: a start, a record, a report on its way.

Processor time is the process's own, of all its threads, and the median of turns that are taken
alternately; ratios are medians over the turns, so that they hold even where the machine's speed
changes. A record is one of a metric's rounds: checked, randomised, charged and put into the
outbox. It is not sealed; that is done when the report leaves, and stands on a line of its own.
With its state in memory a client has no upload thread; in a directory it has one, which finds
that nothing is due, and is left out on a line of its own.

Beside it stand two packages that are not needed, each measured where it can be imported:

* Glean, Mozilla's telemetry SDK: `record` of an event with one extra, until Glean's own thread
  has appended it to a file, without a sync. It neither randomises nor keeps account.
* pure-LDP: `privatise`, for the same k and ε, from seeded generators. It neither keeps nor sends.

Tried were glean-sdk 71.0.0 and pure-ldp 1.2.0; the latter imports scikit-learn and statsmodels
without asking for them, and its local hashing fails with xxhash 4 (3.8.2 works).

Run as `python benchmarks/device.py`; it takes about a minute.
"""

import importlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any, Final

# The operator, the aggregator's process and the contracts are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import startup
from hubbub import Bundle, Client
from hubbub.limits import CLOCK_SKEW, REPORT_ID_BYTES
from hubbub.randomness import SYSTEM
from hubbub.sealing import seal
from hubbub.testing import Aggregator
from hubbub.transport import GrpcTransport, Refused
from hubbub.v1 import report_pb2
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeProcess

TURNS: Final = 15
# Of one device in one turn, each of a round of its own.
RECORDS: Final = 300
SEALS: Final = 100
# Of one device in one turn, in a directory.
QUESTIONS: Final = 200
# In one request.
BATCH: Final = 50
LIMIT_MICROSECONDS: Final = 60
LIMIT_SYNCS: Final = 2

# So that all rounds of a turn can be paid for.
EPSILON: Final = "0.05"
FEW, MANY = [f"value {number}" for number in range(5)], [f"value {number}" for number in range(128)]
DAILY: Final = (86_400, RECORDS, 86_400)
# Asked today. A report leaves within a day: of a turn's hardly ever one is due while it lasts.
TODAY: Final = (86_400, 100_000, 86_400)
RANDOMISED: Final = "randomised response, k = 5"
UNARY: Final = "optimised unary encoding, k = 128"
HASHED: Final = "local hashing, k = 128"
MEMOISED: Final = "memoised randomised response, k = 5"
CONTRACTS: Final = {
    RANDOMISED: make_metric(
        "few", values=FEW, mechanism="randomised-response", epsilon=EPSILON, periodic=DAILY
    ),
    UNARY: make_metric(
        "many", values=MANY, mechanism="optimised-unary", epsilon=EPSILON, periodic=DAILY
    ),
    HASHED: make_metric(
        "hashed", values=MANY, mechanism="local-hashing", epsilon=EPSILON, periodic=DAILY
    ),
    MEMOISED: make_metric(
        "memoised",
        values=FEW,
        mechanism="memoised-randomised-response",
        permanent="2",
        periodic=DAILY,
    ),
}
IN_MEMORY: Final = "record in memory, {}"
IN_DIRECTORY: Final = f"record in a directory, {RANDOMISED}"
ALONE: Final = "randomise alone, {}"
GLEAN: Final = "Glean's record"
PURE_LDP: Final = "pure-LDP's privatise, {}"
# What each is compared with, and how it is installed.
PEERS: Final = {GLEAN: (IN_DIRECTORY, "glean-sdk")} | {
    PURE_LDP.format(what): (ALONE.format(what), "pure-ldp scikit-learn statsmodels 'xxhash<4'")
    for what in (RANDOMISED, UNARY, HASHED)
}

# What is done, and how many times: in each turn once, between what is not timed.
Turn = Callable[[], AbstractContextManager[tuple[Callable[[], object], int]]]


def must(happen: object) -> None:
    if not happen:
        raise RuntimeError("what is to be measured did not happen")


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<62} {figure:>10}  {note}".rstrip(), flush=True)


def microseconds(turns: dict[str, Turn]) -> dict[str, list[float]]:
    """Of processor time, for one time of each, by turns that are taken alternately."""
    found: dict[str, list[float]] = {name: [] for name in turns}
    for turn in range(TURNS + 1):
        for name, begin in turns.items():
            with begin() as (act, times):
                before = time.process_time_ns()
                act()
                spent = time.process_time_ns() - before
            # In the first, what is made once is made.
            if turn:
                found[name].append(spent / 1e3 / times)
    return found


# A record.


def repeated(action: Callable[[], object], times: int = RECORDS) -> Turn:
    """The same, over and over."""

    def act() -> None:
        for _ in range(times):
            action()

    return lambda: nullcontext((act, times))


def recording(operator: Operator, contract: bytes) -> Turn:
    """A device with its state in memory answers every round of a metric."""
    aggregator = Aggregator(*make_bundle(operator, contract).metrics.values())
    (metric,) = aggregator.bundle.metrics.values()
    # As `begin_round` sets them, which is not part of a record.
    moments = [metric.schedule.window(number).opens + CLOCK_SKEW for number in range(RECORDS)]

    @contextmanager
    def begin() -> Iterator[tuple[Callable[[], object], int]]:
        aggregator.now = moments[0]
        with aggregator.client() as client:
            handle = client.metric(metric.name)

            def act() -> None:
                for moment in moments:
                    aggregator.now = moment
                    must(handle.record("value 3"))

            yield act, RECORDS

    return begin


class Threadless(Client):
    """Never starts its upload thread."""

    def _wake(self) -> None:
        """Nobody is woken."""


def on_disk(bundle: Bundle, state: Path, kind: type[Client] = Client) -> Client:
    """A device whose network takes every report in no time."""
    return kind(
        bundle,
        operator_key=bundle.operator,
        state_dir=state,
        budgets={"health": "32"},
        transport=Nowhere(),
    )


def storing(
    operator: Operator, states: Iterator[Path], kind: type[Client] = Client, *, send: bool = False
) -> Turn:
    """A device with its state on disk answers many metrics once; `send`: and sends it all."""
    bundle = make_bundle(operator, *questionnaire())

    @contextmanager
    def begin() -> Iterator[tuple[Callable[[], object], int]]:
        with on_disk(bundle, next(states), kind) as client:
            handles = [client.metric(name) for name in bundle.metrics]

            def act() -> None:
                for handle in handles:
                    must(handle.record("value 3"))
                if send:
                    must(client.flush(60))

            yield act, len(handles)

    return begin


def questionnaire() -> list[bytes]:
    """The contracts of many metrics."""
    return [
        make_metric(
            f"m{number}",
            values=FEW,
            mechanism="randomised-response",
            epsilon=EPSILON,
            periodic=TODAY,
        )
        for number in range(QUESTIONS)
    ]


class Nowhere:
    """Takes every report."""

    destination = "localhost:1"

    def submit(self, *_: object) -> list[int]:
        return [1]

    def fetch_bundle(self, timeout: float) -> bytes:
        raise Refused("UNAVAILABLE")

    def close(self) -> None:
        """Nothing is open."""


def randomising(bundle: Bundle) -> Turn:
    (metric,) = bundle.metrics.values()
    return repeated(lambda: metric.mechanism.randomise(3, SYSTEM))


def sealing(operator: Operator) -> Turn:
    bundle = make_bundle(operator, CONTRACTS[RANDOMISED])
    (metric,), (key,) = bundle.metrics.values(), bundle.sealing_keys
    report = bytes(REPORT_ID_BYTES + metric.mechanism.payload_size)
    return repeated(lambda: seal(key, metric.digest, 0, report), SEALS)


def privatising(client_class: str, values: int, **options: Any) -> Turn | None:
    """pure-LDP's, for the same k and ε; None: it is not here, or not with what it needs."""
    try:
        package = importlib.import_module("pure_ldp.frequency_oracles")
        client = getattr(package, client_class)(float(EPSILON), values, **options)
        client.privatise(3)
    except (ImportError, TypeError):
        return None
    return repeated(lambda: client.privatise(3))


@contextmanager
def glean(folder: Path) -> Iterator[Turn | None]:
    """Glean's `record`; None: it is not here."""
    try:
        names = ("glean", "glean.metrics", "glean.testing")
        modules: list[Any] = [importlib.import_module(name) for name in names]
    except ImportError:
        yield None
        return
    package, metrics, testing = modules
    # Nobody listens there, and nothing is sent.
    configuration = package.Configuration(server_endpoint="http://127.0.0.1:1")
    package.Glean.initialize(
        application_id="device",
        application_version="1",
        upload_enabled=True,
        data_dir=folder,
        configuration=configuration,
    )
    # Glean passes over what is for a ping that it does not know.
    metrics.PingType(
        name="device",
        include_client_id=False,
        send_if_empty=False,
        precise_timestamps=True,
        include_info_sections=False,
        schedules_pings=[],
        reason_codes=[],
        uploader_capabilities=[],
    )
    asked = metrics.CommonMetricData(
        category="few",
        name="answered",
        send_in_pings=["device"],
        lifetime=metrics.Lifetime.PING,
        disabled=False,
    )
    event = metrics.EventMetricType(asked, ["answer"])

    extras: Any = metrics.EventExtras

    class Extra(extras):  # type: ignore[misc]
        def to_ffi_extra(self) -> dict[str, str]:
            return {"answer": "value 3"}

    def act() -> None:
        for _ in range(RECORDS):
            event.record(Extra())
        # Waits until its thread has done them all.
        must(event.test_get_num_recorded_errors(testing.ErrorType.INVALID_VALUE) == 0)

    try:
        yield lambda: nullcontext((act, RECORDS))
        must(len(event.test_get_value()) == (TURNS + 1) * RECORDS)
    finally:
        package.Glean.shutdown()


def show_records(operator: Operator, hybrid: Operator, folder: Path) -> None:
    print(f"\n{'processor time of one':<62} {'µs':>10}")
    states = (folder / f"state {number}" for number in count())
    with glean(folder / "glean") as record:
        turns: dict[str, Turn | None] = {
            **{
                IN_MEMORY.format(what): recording(operator, contract)
                for what, contract in CONTRACTS.items()
            },
            GLEAN: record,
            IN_DIRECTORY: storing(operator, states),
            "the same, without the upload thread": storing(operator, states, Threadless),
            "the same, sealed and sent, but for gRPC": storing(operator, states, send=True),
            "seal, X25519": sealing(operator),
            "seal, ML-KEM-768 with X25519": sealing(hybrid),
            **beside(operator, RANDOMISED, "DEClient", len(FEW)),
            **beside(operator, UNARY, "UEClient", len(MANY), use_oue=True),
            **beside(operator, HASHED, "LHClient", len(MANY), use_olh=True),
        }
        found = microseconds({name: turn for name, turn in turns.items() if turn is not None})
    for name in turns:
        note = f"limit {LIMIT_MICROSECONDS}" if name.startswith(IN_MEMORY.format("")) else ""
        if name in PEERS:
            ours, package = PEERS[name]
            if name not in found:
                line(name, "–", f"not installed: pip install {package}")
                continue
            ratios = (mine / theirs for mine, theirs in zip(found[ours], found[name], strict=True))
            note = f"Hubbub's is {median(ratios):.2f} × that"
        line(name, f"{median(found[name]):.1f}", note)


def beside(
    operator: Operator, what: str, client_class: str, values: int, **options: Any
) -> dict[str, Turn | None]:
    """A mechanism alone, and pure-LDP's."""
    return {
        ALONE.format(what): randomising(make_bundle(operator, CONTRACTS[what])),
        PURE_LDP.format(what): privatising(client_class, values, **options),
    }


# What is written.

_TRACED: Final = """
import sys
from hubbub import Client
file, key, state, questions = sys.argv[1:]
with Client(file, operator_key=key, state_dir=state, budgets={"health": "32"}) as client:
    names = [f"m{number}" for number in range(int(questions))]
    assert client.metric(names.pop()).record("value 3")
    open(state + "/begin", "wb").close()
    for name in names:
        assert client.metric(name).record("value 3")
    open(state + "/end", "wb").close()
"""


def show_writes(operator: Operator, folder: Path) -> None:
    records = QUESTIONS - 1
    print(f"\nfor one of {records} records, in a directory")
    strace = which("strace")
    if strace is None:
        line("writes and syncs", "–", "not measured: needs strace")
        return
    bundle, trace, state = folder / "traced.hubbub", folder / "trace", folder / "traced"
    bundle.write_bytes(operator.sign(questionnaire()))
    watched = "trace=openat,write,pwrite64,pwritev,ftruncate,fsync,fdatasync,sync_file_range,msync"
    arguments = [str(bundle), operator.key, str(state), str(QUESTIONS)]
    command = [sys.executable, "-c", _TRACED, *arguments]
    subprocess.run(
        [strace, "-f", "-y", "-s", "0", "-o", str(trace), "-e", watched, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=True,
        capture_output=True,
    )
    calls = trace.read_text().splitlines()
    begin, end = (
        next(n for n, call in enumerate(calls) if "openat" in call and f"/{mark}" in call)
        for mark in ("begin", "end")
    )
    # Not the upload's thread, which may have something to send meanwhile.
    thread = calls[begin].split()[0]
    ours = [
        call
        for call in calls[begin:end]
        if call.startswith(f"{thread} ") and f"<{state}" in call and "openat" not in call
    ]
    kinds = Counter(
        "syncs" if "sync" in call else "writes" if "write" in call else "others" for call in ours
    )
    sizes = (re.search(r'""\.\.\., (\d+)', call) for call in ours)
    written = sum(int(size[1]) for size in sizes if size is not None)
    line("writes", f"{kinds['writes'] / records:.2f}")
    line("bytes written", f"{written / records:,.0f}")
    line("fsyncs", f"{kinds['syncs'] / records:.2f}", f"limit {LIMIT_SYNCS}")


def show_growth(operator: Operator, folder: Path) -> None:
    """How much larger the state directory is afterwards, for one record."""
    bundle, state = make_bundle(operator, *questionnaire()), folder / "grown"
    first, *rest = bundle.metrics

    def size() -> int:
        return sum(file.stat().st_size for file in state.iterdir())

    def show(when: str) -> None:
        line(f"bytes the directory grows by, {when}", f"{(size() - before) / len(rest):,.0f}")

    with on_disk(bundle, state) as client:
        must(client.metric(first).record("value 3"))
    before = size()
    with on_disk(bundle, state) as client:
        for name in rest:
            must(client.metric(name).record("value 3"))
        show("log included, until it is merged")
    show("closed, which merges the log")
    with on_disk(bundle, state) as client:
        must(client.flush(60))
    show("sent and closed")


# What is sent.


class Meter:
    """Passes a connection's bytes on, and counts them. Use it as a context manager."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._to = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"localhost:{self._listener.getsockname()[1]}"
        self.up = 0
        self.down = 0

    def __enter__(self) -> "Meter":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                device, _ = self._listener.accept()
                aggregator = socket.create_connection(self._to)
                for end in (device, aggregator):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for way in ((device, aggregator, "up"), (aggregator, device, "down")):
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, way: str) -> None:
        with suppress(OSError):
            while octets := source.recv(1 << 16):
                setattr(self, way, getattr(self, way) + len(octets))
                target.sendall(octets)
        for end in (source, target):
            end.close()


def row(what: str, *figures: float) -> None:
    """Of the table of bytes."""
    cells = (f"{figure:>9,.{1 if isinstance(figure, float) else 0}f}" for figure in figures)
    print(f"{what:<50}{''.join(cells)}", flush=True)


def show_bytes(operator: Operator, hybrid: Operator, folder: Path) -> None:
    """A device sends one report to a request; the last row is what the wire also permits."""
    print(f"\n{'bytes of one report, and by TCP for it':<50}", end="")
    print(
        "".join(f"{name:>9}" for name in ("payload", "with id", "sealed", "request", "up", "down"))
    )
    # Of a series' rounds, whose reports leave when they are over.
    seconds = (1, 600, 600)
    contracts = {
        RANDOMISED: make_metric("few", values=FEW, mechanism="randomised-response"),
        UNARY: make_metric("many", values=MANY, mechanism="optimised-unary"),
        "subset selection, k = 128": make_metric("s", values=MANY, mechanism="subset-selection"),
        HASHED: make_metric("hashed", values=MANY, mechanism="local-hashing"),
        MEMOISED: make_metric(
            "memoised",
            values=FEW,
            mechanism="memoised-randomised-response",
            permanent="2",
            starts=int(time.time()),
            periodic=seconds,
        ),
    }
    for suite, keys in (("X25519", operator), ("ML-KEM-768 with X25519", hybrid)):
        file = folder / f"{suite}.hubbub"
        # The first is for what comes once: the handshake, and a look for a newer bundle.
        metrics = [make_metric("first", values=FEW), *contracts.values()]
        file.write_bytes(keys.sign(metrics))
        with (
            ServeProcess(keys, file, folder / f"{suite}.sqlite3") as serve,
            Meter(serve.public) as meter,
        ):
            bundle = make_bundle(keys, *metrics, endpoint=meter.endpoint)
            transport = GrpcTransport(bundle.endpoint, bundle.certificate_authority)
            with Client(
                bundle,
                operator_key=bundle.operator,
                state_dir=None,
                budgets={"health": "32"},
                transport=transport,
            ) as client:
                for what, name in zip(
                    [f"the first, {suite}", *contracts], bundle.metrics, strict=True
                ):
                    before = meter.up, meter.down
                    must(client.metric(name).record("value 3"))
                    (waiting,) = client.preview()
                    while client.preview():
                        must(client.flush(30))
                        # Until it is due, acknowledged, and gRPC has said to itself what it says.
                        time.sleep(0.3)
                    request = make_request(bundle, name, round_number=waiting.round)
                    payload = bundle.metrics[name].mechanism.payload_size
                    row(
                        what,
                        payload,
                        REPORT_ID_BYTES + payload,
                        len(request.sealed),
                        request.ByteSize(),
                        meter.up - before[0],
                        meter.down - before[1],
                    )
            show_batch(bundle, transport, meter)
            transport.close()
            must(serve.terminate() == 0)


def show_batch(bundle: Bundle, transport: GrpcTransport, meter: Meter) -> None:
    """Many reports in one request, of randomised response: bytes for each."""
    mechanism = bundle.metrics["few"].mechanism
    reports = [(os.urandom(REPORT_ID_BYTES), mechanism.randomise(3, SYSTEM)) for _ in range(BATCH)]
    request = make_request(bundle, "few", reports)
    before = meter.up, meter.down
    statuses = transport.submit(
        request.digest, request.round, request.key_id, request.sealed, timeout=30
    )
    must(list(statuses) == [report_pb2.REPORT_STATUS_COUNTED] * BATCH)
    time.sleep(0.3)
    row(
        f"  {BATCH} in one request, for each",
        mechanism.payload_size,
        REPORT_ID_BYTES + mechanism.payload_size,
        len(request.sealed) // BATCH,
        request.ByteSize() / BATCH,
        (meter.up - before[0]) / BATCH,
        (meter.down - before[1]) / BATCH,
    )


def main() -> None:
    startup.main()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        operator = Operator.create(folder / "keys")
        hybrid = Operator.create(folder / "hybrid keys", hybrid=True)
        show_records(operator, hybrid, folder)
        show_writes(operator, folder)
        show_growth(operator, folder)
        show_bytes(operator, hybrid, folder)


if __name__ == "__main__":
    main()
