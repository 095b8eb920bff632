"""A ledger of an earlier version becomes today's: nothing is lost, and no budget comes back."""

import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

import hubbub
from hubbub.charging import Charge
from hubbub.digest import sha256
from hubbub.exact import CHARGE_UNIT
from hubbub.generation import FILE_NAME as SIDECAR
from hubbub.ledger import Ledger
from hubbub.rows import BundleRecord, Departure, Entry, Status
from hubbub.state_file import FILE_NAME as LEDGER
from tests import lives
from tests.bundles import Operator
from tests.lives import FRESH

# Version 1, word for word.
SCHEMA = """
CREATE TABLE operator (
    key TEXT PRIMARY KEY, revision INTEGER NOT NULL, bundle BLOB NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE contract (
    metric TEXT PRIMARY KEY, digest BLOB NOT NULL, contract BLOB NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE budget (
    source TEXT PRIMARY KEY, charge INTEGER NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE report (
    source TEXT NOT NULL, metric TEXT NOT NULL, round INTEGER NOT NULL, digest BLOB NOT NULL,
    charge INTEGER NOT NULL, recorded_at INTEGER NOT NULL, status INTEGER NOT NULL, report BLOB,
    key_id BLOB, sealed BLOB, destination TEXT, left_at INTEGER, checksum INTEGER NOT NULL,
    PRIMARY KEY (source, metric, round)
) WITHOUT ROWID;
PRAGMA application_id = 0x68756231;
PRAGMA user_version = 1;
"""


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return lives.bundle_of_all(operator)


@pytest.fixture
def state(bundle: hubbub.Bundle, tmp_path: Path) -> Path:
    """A state of version 1: a report that waits, one that was sent, one counted, one withdrawn."""
    folder = tmp_path / "state"
    folder.mkdir()
    connection = sqlite3.connect(folder / LEDGER)
    connection.executescript(SCHEMA)
    write(connection, "operator", (bundle.operator, 1, sha256(bundle.signed)))
    for metric in bundle.metrics.values():
        write(connection, "contract", (metric.name, metric.digest, metric.contract))
    write(connection, "budget", ("health", 30 * CHARGE_UNIT))
    asked = ("health", FRESH)
    digest = bundle.metrics[FRESH].digest
    left = (b"a key id", b"sealed", "here", 40)
    for number, (status, report, departure) in enumerate(
        [
            (2, b"counted", (b"a key id", None, "here", 30)),
            (1, b"sent", left),
            (5, None, (None, None, None, None)),
            (0, b"waits", (None, None, None, None)),
        ]
    ):
        row = (*asked, number, digest, CHARGE_UNIT, 1_000 + number, status, report, *departure)
        write(connection, "report", row)
    connection.commit()
    connection.close()
    return folder


def write(connection: sqlite3.Connection, table: str, row: Sequence[object]) -> None:
    places = ", ".join("?" * (len(row) + 1))
    checksum = zlib.crc32(ascii(list(row)).encode())
    connection.execute(f"INSERT INTO {table} VALUES ({places})", (*row, checksum))  # noqa: S608


def check(ledger: Ledger, bundle: hubbub.Bundle) -> None:
    digest = bundle.metrics[FRESH].digest
    said = [
        (Status.COUNTED, b"counted"),
        (Status.SENT, b"sent"),
        (Status.WITHDRAWN, None),
        (Status.WAITING, b"waits"),
    ]
    assert ledger.entries() == [
        Entry("health", FRESH, n, digest, CHARGE_UNIT, 1_000 + n, 1_000 + n, status, report)
        for n, (status, report) in enumerate(said)
    ]
    assert ledger.departures() == [
        Departure("health", FRESH, 0, b"a key id", "here", None, 30),
        Departure("health", FRESH, 1, b"a key id", "here", b"sealed", 40),
    ]
    assert ledger.accounts() == {"health": 4 * CHARGE_UNIT}
    assert ledger.budgets() == {"health": 30 * CHARGE_UNIT}
    assert set(ledger.contracts()) == set(bundle.metrics)
    assert [entry.round for entry in ledger.outbox()] == [1, 3]


def test_it_is_upgraded_in_place(bundle: hubbub.Bundle, state: Path) -> None:
    ledger = Ledger.open(str(state))
    check(ledger, bundle)
    fingerprint = sha256(bundle.signed)
    assert ledger.bundles() == [BundleRecord(bundle.operator, 1, fingerprint, None, False, None)]
    assert lives.adopt(ledger, bundle) == bundle.signed
    assert ledger.bundles()[0].signed == bundle.signed
    assert lives.record(ledger, bundle.metrics[FRESH], 3) is Charge.ALREADY_ANSWERED
    assert lives.record(ledger, bundle.metrics[FRESH], 4) is Charge.CHARGED
    sent = ledger.outbox()[0]
    assert ledger.depart(sent, b"a key id", b"other", "here", 50) == b"sealed"
    ledger.close()
    ledger = Ledger.open(str(state))
    assert ledger.accounts() == {"health": 5 * CHARGE_UNIT}
    ledger.close()
    assert sorted(path.name for path in state.iterdir()) == [SIDECAR, LEDGER]


def test_looking_at_it_writes_nothing(bundle: hubbub.Bundle, state: Path) -> None:
    before = (state / LEDGER).read_bytes()
    ledger = Ledger.open_to_read(str(state))
    check(ledger, bundle)
    ledger.close()
    assert {path.name: path.read_bytes() for path in state.iterdir()} == {LEDGER: before}


def test_a_copy_of_version_1_put_back_is_refused(bundle: hubbub.Bundle, state: Path) -> None:
    old = (state / LEDGER).read_bytes()
    ledger = Ledger.open(str(state))
    lives.adopt(ledger, bundle)
    lives.record(ledger, bundle.metrics[FRESH], 4)
    ledger.close()
    (state / LEDGER).write_bytes(old)
    for open_it in (Ledger.open, Ledger.open_to_read):
        with pytest.raises(hubbub.StateRolledBack):
            open_it(str(state))
    assert (state / LEDGER).read_bytes() == old


def test_a_damaged_one_is_refused_and_left_as_it_is(state: Path) -> None:
    content = bytearray((state / LEDGER).read_bytes())
    content[content.index(b"counted")] ^= 1
    (state / LEDGER).write_bytes(content)
    with pytest.raises(hubbub.StateCorrupt, match="'report' was altered"):
        Ledger.open(str(state))
    assert (state / LEDGER).read_bytes() == content


def test_version_2_is_upgraded_and_every_row_stays(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """It was today's, but for the total and what keeps it."""
    folder = tmp_path / "state"
    ledger = Ledger.open(str(folder))
    lives.live(ledger, bundle)
    says = lives.everything(ledger)
    ledger.close()
    make_version_2(folder)
    old = (folder / LEDGER).read_bytes()
    for open_it in (Ledger.open_to_read, Ledger.open, Ledger.open):
        ledger = open_it(str(folder))
        assert lives.everything(ledger) == says
        ledger.close()
    ledger = Ledger.open(str(folder))
    assert lives.record(ledger, bundle.metrics[FRESH], 20) is Charge.CHARGED
    ledger.close()
    Ledger.open(str(folder)).close()
    (folder / LEDGER).write_bytes(old)
    with pytest.raises(hubbub.StateRolledBack):
        Ledger.open(str(folder))


def make_version_2(folder: Path) -> None:
    with closing(sqlite3.connect(folder / LEDGER)) as connection:
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        (number,) = connection.execute("SELECT number FROM generation").fetchone()
        connection.execute("DROP TABLE generation")
        connection.execute(
            "CREATE TABLE generation (number INTEGER NOT NULL, checksum INTEGER NOT NULL)"
        )
        write(connection, "generation", (number,))
        connection.execute("PRAGMA user_version = 2")
        connection.commit()
