"""Devices to be killed: a process that forks one after another, and kills each at a moment
drawn by chance, or before a step of its ledger drawn by chance.

Run as `python -m tests.killable FOLDER KILLS SEED`. FOLDER holds metrics.hubbub and
operator.pub; the devices leave in it:

    state/      the ledger, the same for all of them
    received    a line for every submission, written by the receiving side before it answers
    stored      a line for every report that `record` said was stored
    midway      a line for every kill before a step

A line is written by one system call, so a killed device leaves it whole or not at all.
"""

import importlib
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hubbub import Bundle
from hubbub.transport import Refused
from tests import steps
from tests.devices import HASTY, Clock, Device

# One device lives for about this many seconds: some rounds, some tries.
LIFE = 0.1
NAMES = ("a", "b", "c")
ROUNDS = 10_000
# About as many steps, in which a kill may come first.
STEPS = 150
# How many rounds later the next device lives, about.
STRIDE = 10


class Line:
    """A file that lines are added to."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, *fields: object) -> None:
        os.write(self._descriptor, " ".join(map(str, fields)).encode() + b"\n")


class Unsteady:
    """The receiving side: notes what comes, then answers well, badly or not at all."""

    destination = "localhost:7443"

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._received = Line(folder / "received")
        self._chance = chance

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        self._received.write(digest.hex(), round_number, key_id.hex(), sealed.hex())
        if self._chance.random() < 0.3:
            raise Refused("UNAVAILABLE")
        return [self._chance.choice([1, 2])]

    def close(self) -> None:
        pass


def live(bundle: Bundle, folder: Path, begin: int, chance: random.Random) -> None:
    """Record and send until killed; the clock mostly goes on, and sometimes back."""
    clock, stored = Clock(), Line(folder / "stored")
    transport = Unsteady(folder, chance)
    budgets = {"health": "32"}
    while True:
        with Device(
            bundle,
            folder / "state",
            clock=clock,
            source=HASTY,
            transport=transport,
            budgets=budgets,
        ) as client:
            for round_number in range(begin, begin + 5):
                clock.now = 10 * round_number
                for name in NAMES:
                    if client.metric(name).record("good"):
                        stored.write(name, round_number)
                if chance.random() < 0.5:
                    client.flush(0.01)
        begin = max(0, begin + chance.randrange(-5, 10))


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    key = (folder / "operator.pub").read_text().strip()
    bundle = Bundle.load(folder / "metrics.hubbub", operator_key=key)
    # What a first report loads, so that the children need not.
    importlib.import_module("hubbub.sealing")
    midway = Line(folder / "midway")
    for number in range(kills):
        seed, delay = chance.randrange(1 << 32), chance.uniform(0, 2 * LIFE)
        child = os.fork()
        if child == 0:
            if number % 2:
                steps.kill_before(seed % STEPS)
            live(bundle, folder, STRIDE * number, random.Random(seed))  # noqa: S311
        time.sleep(delay)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            midway.write(number)
        else:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if status != signal.SIGKILL:
            sys.exit("a device could not live on what a kill left")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
