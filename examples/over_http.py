"""Hubbub's mechanisms without its client: 150 devices report over plain HTTP.

Of Hubbub only hubbub.exact, hubbub.mechanisms and hubbub.randomness are used, which need nothing
but the standard library, as does the rest of this file. What the client would see to is here in
its shortest form: see docs/mechanisms.md, and what is left out there.

Run as `python examples/over_http.py`.
"""

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from hubbub.exact import Certificate, Epsilon
from hubbub.mechanisms import RandomisedResponse
from hubbub.randomness import SYSTEM

# What device and collector have agreed on, for ever: another question gets another name.
QUESTION: Final = "lunch.today"
VALUES: Final = ("soup", "salad", "pasta", "nothing")
EPSILON: Final = Epsilon.parse("2")
BUDGET: Final = Epsilon.parse("4")  # of a device's life: it answers twice
MECHANISM: Final = RandomisedResponse.calibrate(len(VALUES), EPSILON)

ID_BYTES: Final = 16
# Where a report is put: its question, round and id. The payload is the body.
REPORT: Final = re.compile(
    rf"/{re.escape(QUESTION)}/\d{{1,6}}/[0-9a-f]{{{2 * ID_BYTES}}}", re.ASCII
)
CREATED, KNOWN, REFUSED = 201, 200, 400

# Sends a report's bytes for a round, and tells whether they are safe at the other end.
Send = Callable[[int, bytes], bool]


class Device:
    """Answers each round once, within its budget. Its folder is its memory.

    A round's file is made before there is a report: that it is there is what was charged. In it
    is the report, until the collector has it. One process, one thread.
    """

    def __init__(self, folder: Path) -> None:
        if not Certificate(EPSILON, MECHANISM.ratio).holds:
            raise ValueError(f"{MECHANISM} tells more than ε = {EPSILON.text}")
        self._folder = folder

    def record(self, number: int, value: int) -> bool:
        """Randomise a value and keep the report; False: the round is answered, or too dear."""
        answered = self._rounds()
        if number in answered or (1 + len(answered)) * EPSILON.charge > BUDGET.charge:
            return False
        # Fails if the file is there. A crash from here on costs the report, never the budget.
        with (self._folder / str(number)).open("xb") as file:
            _sync(self._folder)
            file.write(SYSTEM.digits(ID_BYTES) + MECHANISM.randomise(value, SYSTEM))
            file.flush()
            os.fsync(file.fileno())
        return True

    def send(self, send: Send) -> bool:
        """Send what waits, the same bytes every time. Tells whether nothing waits any more."""
        for number in self._rounds():
            file = self._folder / str(number)
            report = file.read_bytes()
            # A report that a crash cut short was never sent; nobody misses it.
            if len(report) == ID_BYTES + MECHANISM.payload_size:
                if not send(number, report):
                    return False
                file.write_bytes(b"")
        return True

    def _rounds(self) -> list[int]:
        return sorted(int(file.name) for file in self._folder.iterdir())


def _sync(folder: Path) -> None:
    """Make it durable that a file is in the folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def over_http(port: int) -> Send:
    """The transport: one PUT a report, which does no harm if it is done again."""

    def send(number: int, report: bytes) -> bool:
        path = f"/{QUESTION}/{number}/{report[:ID_BYTES].hex()}"
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("PUT", path, body=report[ID_BYTES:])
            return connection.getresponse().status in (CREATED, KNOWN)
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    return send


class Collector(ThreadingHTTPServer):
    """Keeps every report once, however often it comes. In memory: a real one makes it durable
    before it answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.payloads: dict[str, bytes] = {}
        """By path."""
        self.answers_to_lose = 0
        """How many of its next answers get lost on the way."""
        self._lock = threading.Lock()

    def take(self, path: str, payload: bytes) -> int:
        """Keep a report; returns the HTTP status."""
        if not REPORT.fullmatch(path):
            return REFUSED
        try:
            MECHANISM.supported(payload)
        except ValueError:
            return REFUSED
        with self._lock:
            if path in self.payloads:
                return KNOWN
            self.payloads[path] = payload
            return CREATED


class _Handler(BaseHTTPRequestHandler):
    server: Collector  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_PUT(self) -> None:
        status = REFUSED
        if self.headers["Content-Length"] == str(MECHANISM.payload_size):
            status = self.server.take(self.path, self.rfile.read(MECHANISM.payload_size))
        if self.server.answers_to_lose:
            self.server.answers_to_lose -= 1
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """No log of who sent when."""


class Estimate(NamedTuple):
    """Of the share of devices that have a value; unbiased, so it may be below 0."""

    share: float
    error: float
    """One standard error."""


def estimates(payloads: Collection[bytes]) -> dict[str, Estimate]:
    """What the reports say together, for each label."""
    p, q = map(float, MECHANISM.support)
    n = len(payloads)
    counts = Counter(value for payload in payloads for value in MECHANISM.supported(payload))
    seen = {label: counts[value] / n for value, label in enumerate(VALUES)}
    return {
        label: Estimate((share - q) / (p - q), sqrt(share * (1 - share) / n) / (p - q))
        for label, share in seen.items()
    }


def main() -> None:
    eaten = [0] * 75 + [1] * 45 + [2] * 30
    with Collector() as collector, TemporaryDirectory() as folder:
        threading.Thread(target=collector.serve_forever).start()
        send = over_http(collector.server_port)
        collector.answers_to_lose = 20
        for number, value in enumerate(eaten):
            place = Path(folder, str(number))
            place.mkdir()
            device = Device(place)
            device.record(0, value)
            while not device.send(send):
                pass  # a real device waits, longer each time, and for a time that it draws
        collector.shutdown()
    print(f"{len(collector.payloads)} reports, ε = {EPSILON.text}")
    print(f"{'':<10}{'truth':>7}{'estimate':>10}   one standard error")
    for value, (label, estimate) in enumerate(estimates(collector.payloads.values()).items()):
        truth = eaten.count(value) / len(eaten)
        print(f"{label:<10}{truth:>7.1%}{estimate.share:>10.1%} ± {estimate.error:.1%}")


if __name__ == "__main__":
    main()
