"""Damage: every row reads back unchanged, or the ledger is refused and says so. Never a reset.

Each is tried on a ledger that was closed, and on one that a kill left with its log.
"""

import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import hubbub
from hubbub import rows
from hubbub.generation import FILE_NAME as SIDECAR
from hubbub.ledger import Ledger
from hubbub.rows import Status, Switch
from hubbub.schema import TABLES, VERSION
from hubbub.state_file import FILE_NAME as LEDGER
from tests import lives
from tests.bundles import Operator, make_bundle
from tests.devices import Clock, Device
from tests.lives import FRESH

LOG = f"{LEDGER}-wal"
PAGE = 4_096
Files = Mapping[str, bytes]


class State(NamedTuple):
    """The files of a state directory, before a life's end and at it, and what they say."""

    older: Files
    files: Files
    says: Mapping[str, object]


@pytest.fixture(scope="module", params=["closed", "killed"])
def state(
    request: pytest.FixtureRequest, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> State:
    folder = tmp_path_factory.mktemp("life")
    bundle = lives.bundle_of_all(operator)
    ledger = Ledger.open(str(folder / "state"))
    lives.adopt(ledger, bundle)
    ledger.close()
    older = files_in(folder / "state")
    ledger = Ledger.open(str(folder / "state"))
    lives.live(ledger, bundle)
    says = lives.everything(ledger)
    if request.param == "killed":
        left = files_in(lives.copy_of(folder / "state", folder / "left"))
        ledger.close()
    else:
        ledger.close()
        left = files_in(folder / "state")
    assert set(left) == {LEDGER, SIDECAR} | ({LOG} if request.param == "killed" else set())
    return State(older, left, says)


def files_in(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def holds(state: State, files: Files, folder: Path) -> bool:
    """Whether a ledger of these files is taken; then it must say what it said.

    If it is not, the error is about one of the files, and they are left as they were.
    """
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    refused_for: str | None = None
    try:
        ledger = Ledger.open(str(folder))
    except hubbub.StateError as refusal:
        refused_for = refusal.path
    if refused_for is not None:
        assert Path(refused_for).parent == folder
        kept = {name: content for name, content in files_in(folder).items() if name in files}
        assert kept == files
        return False
    try:
        assert lives.everything(ledger) == state.says
    finally:
        ledger.close()
    return True


def flipped(files: Files, name: str, place: int, mask: int) -> Files:
    content = bytearray(files[name])
    content[place] ^= mask
    return {**files, name: bytes(content)}


def test_undamaged(state: State, tmp_path: Path) -> None:
    assert holds(state, state.files, tmp_path / "state")


def test_a_byte_of_every_page(state: State, tmp_path: Path) -> None:
    chance = random.Random(20_261_127)  # noqa: S311
    refused = dict.fromkeys(state.files, 0)
    for name, content in state.files.items():
        for page in range(0, len(content), PAGE):
            size = min(PAGE, len(content) - page)
            for place in (0, 3, size - 1, chance.randrange(size)):
                damaged = flipped(state.files, name, page + place, 1 << chance.randrange(8))
                refused[name] += not holds(state, damaged, tmp_path / "state")
    assert refused[LEDGER if LOG not in refused else LOG] > 10


def test_five_hundred_random_bytes(state: State, tmp_path: Path) -> None:
    chance = random.Random(20_261_128)  # noqa: S311
    refused = 0
    for _ in range(250):
        # As many in the sidecar as in a file a hundred times its size.
        name = chance.choice(sorted(state.files))
        place = chance.randrange(len(state.files[name]))
        mask = chance.choice([1 << chance.randrange(8), 0xFF, chance.randrange(1, 256)])
        refused += not holds(state, flipped(state.files, name, place, mask), tmp_path / "state")
    # Most bytes are unused, and harmless; many are not.
    assert 10 < refused < 240


def test_every_byte_of_a_row(state: State, tmp_path: Path) -> None:
    """A flip in a row is found by the row's checksum, wherever the file's structure allows it."""
    name = LOG if LOG in state.files else LEDGER
    entries = state.says["entries"]
    assert isinstance(entries, list)
    report = entries[-1].report
    for where in (report, b"localhost:7443"):
        newest = state.files[name].rindex(where)
        for place in range(newest, newest + len(where)):
            damaged = flipped(state.files, name, place, 1)
            assert not holds(state, damaged, tmp_path / "state"), place


def test_every_page_s_header(state: State, tmp_path: Path) -> None:
    """Where a page says how many rows it has, one less would be a charge less."""
    for page in range(0, len(state.files[LEDGER]), PAGE):
        header = page + (100 if page == 0 else 0)
        for place in range(header, header + 12):
            for mask in (1, 0xFF):
                holds(state, flipped(state.files, LEDGER, place, mask), tmp_path / "state")


def test_truncation_at_every_page(state: State, tmp_path: Path) -> None:
    refused = 0
    for name, content in state.files.items():
        sizes = {*range(0, len(content), PAGE), 1, 99, 512, len(content) - 1}
        for size in sorted(sizes):
            cut = {**state.files, name: content[:size]}
            refused += not holds(state, cut, tmp_path / "state")
    assert refused > 10


def test_a_file_that_is_gone(state: State, tmp_path: Path) -> None:
    for name in state.files:
        rest = {other: content for other, content in state.files.items() if other != name}
        assert not holds(state, rest, tmp_path / "state"), name


def mixtures(state: State) -> Iterator[Files]:
    """An older ledger put back, alone or with everything else that was there."""
    yield {**state.files, LEDGER: state.older[LEDGER]}
    yield {LEDGER: state.older[LEDGER], SIDECAR: state.files[SIDECAR]}


def test_an_older_ledger_put_back(state: State, tmp_path: Path) -> None:
    first, second = (holds(state, files, tmp_path / "state") for files in mixtures(state))
    # The log that a kill left holds everything that came after the older ledger.
    assert first is (LOG in state.files)
    assert not second


def test_an_older_log_put_back(state: State, operator: Operator, tmp_path: Path) -> None:
    """With its ledger, and with the newest."""
    folder = tmp_path / "life"
    ledger = Ledger.open(str(folder))
    lives.adopt(ledger, lives.bundle_of_all(operator))
    older = files_in(folder)
    ledger.close()
    for ledger_file in (older[LEDGER], state.files[LEDGER]):
        mixed = {LEDGER: ledger_file, LOG: older[LOG], SIDECAR: state.files[SIDECAR]}
        assert not holds(state, mixed, tmp_path / "state")


@pytest.mark.parametrize("content", [b"", b"\0" * PAGE, b"x" * 10_000, b"SQLite format 3\0"])
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LEDGER).write_bytes(content)
    with pytest.raises(hubbub.StateCorrupt):
        Ledger.open(str(tmp_path))
    assert (tmp_path / LEDGER).read_bytes() == content


def test_another_program_s_database_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / LEDGER)
    connection.execute("CREATE TABLE report (source)")
    connection.close()
    with pytest.raises(hubbub.StateCorrupt, match="not a Hubbub ledger"):
        Ledger.open(str(tmp_path))


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    Ledger.open(str(tmp_path)).close()
    connection = sqlite3.connect(tmp_path / LEDGER)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(hubbub.StateCorrupt, match=f"is {VERSION + 1}; this SDK reads {VERSION}"):
        Ledger.open(str(tmp_path))


@pytest.mark.parametrize("table", TABLES[VERSION])
def test_a_table_that_is_empty_is_found(operator: Operator, tmp_path: Path, table: str) -> None:
    ledger = Ledger.open(str(tmp_path))
    lives.live(ledger, lives.bundle_of_all(operator))
    ledger.close()
    with closing(sqlite3.connect(tmp_path / LEDGER)) as connection:
        # As a page is changed: without the file's own noticing.
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        deleted = connection.execute(f"DELETE FROM {table}")  # noqa: S608
        assert deleted.rowcount > 0
        connection.commit()
    with pytest.raises(hubbub.StateCorrupt):
        Ledger.open(str(tmp_path))


def test_a_row_that_is_an_older_one_is_found(operator: Operator, tmp_path: Path) -> None:
    """One that is sound, and changes no sum of charges: that the owner had not paused."""
    ledger = Ledger.open(str(tmp_path))
    lives.live(ledger, lives.bundle_of_all(operator))
    older = ledger.choice()
    ledger.set_switch(Switch.PAUSED, 2_000)
    ledger.close()
    with closing(sqlite3.connect(tmp_path / LEDGER)) as connection:
        connection.execute("DROP TRIGGER total_owner_update")
        rows.overwrite(connection, "owner", {"switch": older.switch, "changed_at": 800})
        connection.commit()
    with pytest.raises(hubbub.StateCorrupt, match="is an older one"):
        Ledger.open(str(tmp_path))


def test_a_table_that_was_made_otherwise_is_found(operator: Operator, tmp_path: Path) -> None:
    """Found by fuzzing: a letter of a column's name. Rows are read without it, and not written."""
    ledger = Ledger.open(str(tmp_path))
    lives.live(ledger, lives.bundle_of_all(operator))
    ledger.close()
    content = (tmp_path / LEDGER).read_bytes()
    for made in (b"asked_at INTEGER", b"SET total = total + NEW", b"WHERE status IN"):
        at = content.index(made)
        damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        (tmp_path / LEDGER).write_bytes(damaged)
        with pytest.raises(hubbub.StateCorrupt):
            Ledger.open(str(tmp_path))


def pages_of(content: bytes) -> list[bytes]:
    return [content[place : place + PAGE] for place in range(0, len(content), PAGE)]


def test_every_older_page_is_found(operator: Operator, tmp_path: Path) -> None:
    """Sound pages of the same file's past, at every step of a life: one of them, or all but one."""
    folder = tmp_path / "life"
    bundle = lives.bundle_of_all(operator)
    ledger = Ledger.open(str(folder))
    lives.live(ledger, bundle)
    ledger.close()
    moments = [files_in(folder)]
    steps: list[Callable[[Ledger], object]] = [
        lambda ledger: lives.record(ledger, bundle.metrics[FRESH], 20),
        lives.depart,
        lambda ledger: ledger.settle(ledger.outbox()[-1], Status.COUNTED),
        lambda ledger: ledger.set_switch(Switch.PAUSED, 2_000),
        lambda ledger: ledger.note_refresh(2_001),
        lambda ledger: lives.adopt(ledger, lives.bundle_of_all(operator, 2), fetched=True),
        lambda ledger: ledger.set_switch(Switch.OPTED_OUT, 2_002),
    ]
    tried = refused = 0
    for step in steps:
        ledger = Ledger.open(str(folder))
        step(ledger)
        says = lives.everything(ledger)
        ledger.close()
        files = files_in(folder)
        for past in moments:
            for mixed in mixed_with(files[LEDGER], past[LEDGER]):
                damaged = State(past, {**files, LEDGER: mixed}, says)
                tried += 1
                refused += not holds(damaged, damaged.files, tmp_path / "state")
        moments.append(files)
    # Of some pages only bytes that nothing uses are different.
    assert refused > 0.8 * tried > 100


def mixed_with(content: bytes, past: bytes) -> Iterator[bytes]:
    """One page of the past among today's, or one of today's among those of the past."""
    newest, older = pages_of(content), pages_of(past)
    # The first says what else there is, and has changed in nothing but a count.
    differ = [page for page in range(1, len(older)) if older[page] != newest[page]]
    for page in differ:
        yield b"".join([*newest[:page], older[page], *newest[page + 1 :]])
        if len(differ) > 2:
            put_back = set(differ) - {page}
            yield b"".join(older[i] if i in put_back else at for i, at in enumerate(newest))


# When it was killed, the log has them all anew.
@pytest.mark.parametrize("state", ["closed"], indirect=True)
def test_an_empty_page_in_the_place_of_each(state: State, tmp_path: Path) -> None:
    """Found by fuzzing: a sound page of no rows, of an index or of a table."""
    newest = pages_of(state.files[LEDGER])
    for page in range(1, len(newest)):
        for kind in (b"\x0a", b"\x0d"):
            empty = kind + b"\0" * 4 + PAGE.to_bytes(2, "big") + b"\0" * (PAGE - 7)
            damaged = b"".join([*newest[:page], empty, *newest[page + 1 :]])
            holds(state, {**state.files, LEDGER: damaged}, tmp_path / "state")


def test_damage_while_it_runs_is_not_raised_and_found_at_the_next_start(
    operator: Operator, tmp_path: Path
) -> None:
    bundle = make_bundle(operator)
    with Device(bundle, tmp_path, clock=Clock(9_000)) as client:
        for file in (tmp_path / LEDGER, tmp_path / LOG):
            with file.open("r+b") as content:
                content.write(b"\xff" * file.stat().st_size)
        client.metric("health.self_rated").record("good")
        client.flush(0.1)
        client.preview()
        client.enabled = False
    with pytest.raises(hubbub.StateError):
        Device(bundle, tmp_path)
