"""Ledgers: damage is refused by a StateError, or everything reads back as it was. Never a reset.

An input is which state directory is damaged, how it is opened, and edits: what is done, to which
file, where, to how many bytes, and with what.
"""

import functools
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from hubbub.errors import StateError
from hubbub.generation import FILE_NAME as SIDECAR
from hubbub.ledger import Ledger
from hubbub.state_file import FILE_NAME as LEDGER
from tests import lives
from tests.fuzz import scratch, states, wal
from tests.fuzz.chance import Chance

LONGEST = 512
PAGE: Final = 4_096
LOG: Final = f"{LEDGER}-wal"
_FILES: Final = (LEDGER, LOG, SIDECAR)
# What is done: see _edited.
_OPERATIONS: Final = 8
_HEAD: Final = 7
# How it is opened: bits of the second byte.
_TO_READ, _SOUND_LOG = 1, 2


class Edit(NamedTuple):
    """One thing done to one file."""

    operation: int
    name: str
    place: int
    size: int
    content: bytes


@functools.cache
def _states() -> Mapping[str, states.Files]:
    return states.load()


@functools.cache
def _says(form: str) -> Mapping[str, object]:
    """What the state that a form was made from says."""
    # What was put back is told from what was there.
    folder = _written(_states()["closed" if form == "reset" else form])
    ledger = Ledger.open(str(folder))
    try:
        return lives.everything(ledger)
    finally:
        ledger.close()


def _written(files: states.Files) -> Path:
    folder = scratch.folder() / "state"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def execute(data: bytes, *, thorough: bool = True) -> None:
    if len(data) < 2:
        return
    form = states.FORMS[data[0] % len(states.FORMS)]
    files, edits = dict(_states()[form]), list(_edits(data[2:]))
    says = _says(form)
    for edit in edits:
        _apply(edit, files)
    if data[1] & _SOUND_LOG and LOG in files:
        files[LOG] = wal.with_checksums(files[LOG])
    folder = _written(files)
    try:
        ledger = (
            Ledger.open_to_read(str(folder)) if data[1] & _TO_READ else Ledger.open(str(folder))
        )
    except StateError as refusal:
        assert str(refusal)
        assert form == "reset" or edits or data[1] & _SOUND_LOG
        return
    try:
        found = lives.everything(ledger)
    finally:
        ledger.close()
    # Who damages both can put back an older ledger, and the number that belongs to it.
    if SIDECAR in {edit.name for edit in edits}:
        return
    assert found == says


def _edits(data: bytes) -> Iterator[Edit]:
    while len(data) > _HEAD:
        operation, name, size = data[0] % _OPERATIONS, _FILES[data[1] % 3], data[5]
        yield Edit(operation, name, int.from_bytes(data[2:5], "big"), size, data[6 : 6 + size])
        data = data[6 + size :]


def _apply(edit: Edit, files: dict[str, bytes]) -> None:
    content = files.get(edit.name)
    if content is None:
        if edit.operation == 0:
            files[edit.name] = edit.content
        return
    if edit.operation == 1:
        del files[edit.name]
        return
    files[edit.name] = _edited(edit, bytearray(content))


def _edited(edit: Edit, content: bytearray) -> bytes:
    place = edit.place % (len(content) + 1)
    end = min(len(content), place + edit.size)
    match edit.operation:
        case 2:
            del content[place:]
        case 3:
            del content[place:end]
        case 4:
            content[place:place] = edit.content
        case 5:
            # A page in the place of another.
            page = place // PAGE * PAGE
            source = edit.size * PAGE % (len(content) + 1)
            content[page : page + PAGE] = content[source : source + PAGE].ljust(PAGE, b"\0")
        case 6:
            content[place:end] = bytes(end - place)
        case 7:
            for at, byte in zip(range(place, end), edit.content, strict=False):
                content[at] ^= byte
        case _:
            content[place : place + len(edit.content)] = edit.content
    return bytes(content)


def _encoded(edit: Edit) -> bytes:
    which, place = _FILES.index(edit.name), min(edit.place, (1 << 24) - 1)
    head = bytes([edit.operation, which]) + place.to_bytes(3, "big") + bytes([edit.size])
    return head + edit.content[: edit.size].ljust(edit.size, b"\0")


def seeds() -> list[bytes]:
    flips = [Edit(7, name, place, 4, b"\1\2\4\1") for name in _FILES for place in (0, 24, 2_000)]
    ends = [Edit(2, name, PAGE, 2, b"") for name in _FILES]
    inputs = [bytes([form, how]) for form in range(3) for how in range(4)]
    return inputs + [bytes([form, 0]) + _encoded(e) for form in range(2) for e in flips + ends]


def mutate(data: bytes, chance: Chance) -> bytes:
    if len(data) < 2 or chance.happens(0.05):
        return chance.octets(data)
    head, edits = bytearray(data[:2]), list(_edits(data[2:]))
    if chance.happens(0.2):
        head[0] = chance.pick((0, 0, 0, 1, 1, 1, 2))
        head[1] = chance.pick((0, 0, 0, 0, _TO_READ, _TO_READ, _SOUND_LOG, _TO_READ | _SOUND_LOG))
    if edits and chance.happens(0.3):
        del edits[chance.randrange(len(edits))]
    if edits and chance.happens(0.5):
        place = chance.randrange(len(edits))
        edits[place] = _other(edits[place], chance)
    elif len(edits) < 6:
        edits.append(_new(bytes(head), chance))
    return bytes(head) + b"".join(map(_encoded, edits))


def _new(head: bytes, chance: Chance) -> Edit:
    files = _states()[states.FORMS[head[0] % 3]]
    name = chance.pick((LEDGER, LEDGER, LOG if LOG in files else LEDGER, SIDECAR))
    # Where pages and frames begin is what the rest hangs on.
    length = len(files.get(name, b"x"))
    start = chance.randrange(0, length, PAGE) if name != LOG else 32 + chance.randrange(57) * 4_120
    place = start + chance.pick((0, 8, 24, chance.randrange(128), chance.randrange(PAGE)))
    size = chance.pick((1, 1, 2, 4, 16))
    operation = chance.pick((0, 0, 7, 7, 7, 7, 5, 6, 3, 4, 2, chance.randrange(_OPERATIONS)))
    return Edit(operation, name, place, size, chance.randbytes(size))


def _other(edit: Edit, chance: Chance) -> Edit:
    match chance.randrange(4):
        case 0:
            return edit._replace(place=max(0, edit.place + chance.randint(-8, 8)))
        case 1:
            return edit._replace(operation=chance.randrange(_OPERATIONS))
        case 2:
            return edit._replace(size=chance.randint(1, 32))
        case _:
            return edit._replace(content=chance.octets(edit.content))
