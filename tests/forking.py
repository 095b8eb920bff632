"""Two processes that fork again and again while their threads record, all on one ledger.

Run as `python -m tests.forking FOLDER FORKS THREADS`, where FOLDER holds metrics.hubbub and
operator.pub. It leaves in FOLDER:

    state/     the ledger
    stored     a line for every report that a process was told is stored: metric, round
    failed     a line for every error

Every tenth child outlives its parents' ledgers, and records when they have closed theirs.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hubbub import Bundle, StateError
from hubbub.charging import Charge
from hubbub.contract import Metric
from hubbub.ledger import Ledger
from tests import lives
from tests.killable import Line

# A metric for each thread and each kind of child, so that rounds need no agreeing on.
NAMES = [f"m{number}" for number in range(40)]
CHILD, LATE = NAMES[-2:]


class Device:
    """A process's ledger, and what it was told."""

    def __init__(self, folder: Path, parity: int) -> None:
        key = (folder / "operator.pub").read_text().strip()
        self.bundle = Bundle.load(folder / "metrics.hubbub", operator_key=key)
        self.state = str(folder / "state")
        self.ledger = Ledger.open(self.state)
        lives.adopt(self.ledger, self.bundle)
        self._stored, self._failed = Line(folder / "stored"), Line(folder / "failed")
        self._parity = parity

    def record(self, name: str, number: int, ledger: Ledger | None = None) -> None:
        """Record once; the two parents have every other round each."""
        metric: Metric = self.bundle.metrics[name]
        round_number = 2 * number + self._parity
        try:
            if lives.record(ledger or self.ledger, metric, round_number) is Charge.CHARGED:
                self._stored.write(name, round_number)
        except StateError as error:
            self._failed.write(name, round_number, type(error).__name__, error.reason)


def fork(work: Callable[[], None]) -> int:
    """Do it in a child; return its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def child(device: Device, number: int) -> None:
    """Use what was inherited, and something of one's own; end without closing half the time."""
    device.record(CHILD, number)
    own = Ledger.open(device.state)
    device.record(CHILD, number + 1, own)
    own.close()
    if number % 4:
        device.ledger.close()


def late(device: Device, number: int, wait: int) -> None:
    """Record when the parents have closed their ledgers."""
    device.record(LATE, 2 * number)
    os.read(wait, 1)
    device.record(LATE, 2 * number + 1)
    if number % 20:
        device.ledger.close()


class Load(NamedTuple):
    """What a parent does, and how it hears and tells."""

    folder: Path
    forks: int
    threads: int
    wait: int
    """Ends when the late children may go on."""
    tell: int
    """Told when the parent's ledger is closed."""


def parent(load: Load, parity: int) -> None:
    """Record in many threads, and fork meanwhile."""
    device = Device(load.folder, parity)
    over = threading.Event()

    def keep_recording(name: str) -> None:
        for number in count():
            if over.is_set():
                return
            device.record(name, number)

    recorders = [
        threading.Thread(target=keep_recording, args=(name,)) for name in NAMES[: load.threads]
    ]
    for recorder in recorders:
        recorder.start()
    children: list[int] = []
    for number in range(load.forks):
        if number % 10:
            os.waitpid(fork(lambda number=number: child(device, 2 * number)), 0)  # type: ignore[misc]
        else:
            children.append(fork(lambda number=number: late(device, number, load.wait)))  # type: ignore[misc]
    over.set()
    for recorder in recorders:
        recorder.join()
    device.ledger.close()
    os.write(load.tell, b".")
    for late_child in children:
        os.waitpid(late_child, 0)


def main(folder: Path, forks: int, threads: int) -> None:
    wait, go = os.pipe()
    closed, tell = os.pipe()
    for parity in (0, 1):

        def work(parity: int = parity) -> None:
            os.close(go)
            parent(Load(folder, forks, threads, wait, tell), parity)

        fork(work)
    os.close(tell)
    for _ in range(2):
        os.read(closed, 1)
    os.close(go)
    statuses = [os.wait()[1] for _ in range(2)]
    sys.exit(any(statuses))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
