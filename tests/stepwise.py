"""A device that is killed before its first step, its second, and so on to the last of its life.

Run as `python -m tests.stepwise FOLDER`, where FOLDER holds metrics.hubbub and operator.pub.
Leaves a directory for each number of steps:

    state/     what the kill left
    before/    the ledger, with its log, as it was before each report was recorded: before/0, …
    left       a line for each report that left, written before it does: its round, its bytes

and stops after the first life that came to its end.
"""

import os
import shutil
import sys
from pathlib import Path

from hubbub import Bundle
from hubbub.ledger import Ledger
from hubbub.rows import Status, Switch
from hubbub.state_file import FILE_NAME
from tests import lives, steps

ROUNDS = 2


def live(bundle: Bundle, folder: Path) -> None:
    """Record, and let leave; opt out, and come back; each of it in a start of its own."""
    state = folder / "state"
    for number in range(ROUNDS):
        ledger = Ledger.open(str(state))
        lives.adopt(ledger, bundle)
        lives.enrol(ledger, bundle.metrics[lives.MEMOISED])
        keep(state, folder / "before" / str(number))
        lives.record(ledger, bundle.metrics[lives.FRESH], number)
        for entry in ledger.outbox():
            sealed = ledger.depart(entry, b"a key id", entry.report or b"", "here", 5_000)
            if sealed is not None:
                with (folder / "left").open("a") as left:
                    left.write(f"{entry.round} {sealed.hex()}\n")
                ledger.settle(entry, Status.COUNTED)
        if number == 0:
            ledger.set_switch(Switch.OPTED_OUT, 6_000)
            ledger.set_switch(Switch.ON, 7_000)
        ledger.close()


def keep(state: Path, folder: Path) -> None:
    """Copy what an owner might put back: the ledger and its log."""
    folder.mkdir(parents=True)
    for file in state.glob(f"{FILE_NAME}*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, folder)


def main(folder: Path) -> None:
    key = (folder / "operator.pub").read_text().strip()
    bundle = Bundle.load(folder / "metrics.hubbub", operator_key=key)
    number, status = 0, -1
    while status != 0:
        place = folder / f"{number:03}"
        place.mkdir()
        child = os.fork()
        if child == 0:
            steps.kill_before(number)
            live(bundle, place)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
