"""`hubbub doctor`: everything it is asked to find, and that it leaves no trace."""

import json
import os
import re
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2_grpc
from hubbub_aggregator.doctor import disk, keys_folder, machine
from hubbub_aggregator.doctor.findings import Finding, Level
from hubbub_aggregator.doctor.machine import look_at_clock, look_at_limits
from hubbub_aggregator.keys import add_certificates, add_sealing_key
from hubbub_aggregator.store import Store
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeProcess
from tests.typed import Ran, typed

TIMEOUT = 30
YEAR = 31_536_000


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


class Place:
    """A folder as an aggregator's operator has it."""

    def __init__(self, operator: Operator, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(operator.folder, folder / "keys")
        (folder / "keys" / "operator.key").unlink()
        self.operator = Operator(folder / "keys", operator.signing_key)
        self.store = folder / "s" / "hubbub.sqlite3"
        self.store.parent.mkdir()
        self.path = folder / "metrics.hubbub"
        self.put(make_bundle(self.operator, make_metric()))
        self.flags = [
            *("--keys", self.operator.folder, "--store", self.store),
            *("--listen", free_port(), "--private-listen", free_port()),
        ]

    def put(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.path.write_bytes(bundle.signed)

    def adopt(self, bundle: Bundle | None = None) -> None:
        """Leave a store behind that has seen a bundle."""
        with closing(Store(str(self.store), writer=1, publish_step=1)) as store:
            store.adopt(bundle or self.bundle, now=0)

    def doctor(self, *flags: object) -> Ran:
        return typed("doctor", self.path, *self.flags, *flags)

    def found(self, *flags: object) -> list[dict[str, Any]]:
        ran = self.doctor("--format", "json", *flags)
        assert ran.stderr == ""
        findings: list[dict[str, Any]] = json.loads(ran.stdout)["findings"]
        problems = [row for row in findings if row["level"] == "problem"]
        assert ran.returncode == bool(problems)
        return findings

    def trouble(self, *flags: object) -> dict[str, str]:
        """Whatever is not ok, by its subject; that root looks is no trouble of the place."""
        return {
            row["subject"]: f"{row['level']}: {row['text']}"
            for row in self.found(*flags)
            if row["level"] != "ok" and not row["text"].startswith("root may read")
        }

    def state(self) -> dict[str, tuple[Any, ...]]:
        """Every file below, and what a change of it would change."""
        return {
            str(path): (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
            for path in [self.folder, *sorted(self.folder.rglob("*"))]
            for status in [path.stat()]
        } | {f"{path}*": (path.read_bytes(),) for path in self.store.parent.iterdir()}


@pytest.fixture
def place(operator: Operator, tmp_path: Path) -> Place:
    return Place(operator, tmp_path)


def test_nothing_is_wrong(place: Place) -> None:
    place.adopt()
    assert place.trouble() == {}
    subjects = {row["subject"] for row in place.found()}
    assert subjects == {
        *("python", "clock", "keys", "bundle", "certificate", "store", "disk", "limits"),
        *("public port", "private port"),
    }
    ran = place.doctor()
    assert ran.returncode == 0
    *lines, empty, summary = ran.stdout.splitlines()
    assert all(line.startswith(("ok ", "warning ")) for line in lines)
    assert (empty, summary[:13]) == ("", "problems: 0, ")


def test_without_a_bundle(place: Place) -> None:
    place.adopt()
    ran = typed("doctor", *place.flags)
    assert ran.returncode == 0
    assert "revision 1 is in force" in ran.stdout


class TestItLeavesNoTrace:
    def test_where_there_is_no_store(self, place: Place) -> None:
        before = place.state()
        assert any("makes it, empty" in row["text"] for row in place.found())
        assert place.state() == before

    def test_of_a_store_that_nobody_has_open(self, place: Place) -> None:
        place.adopt()
        before = place.state()
        place.found()
        assert place.state() == before

    def test_of_one_that_a_killed_aggregator_left(self, place: Place) -> None:
        with ServeProcess(place.operator, place.path, place.store) as serve:
            self._send(serve, place)
            serve.kill()
        before = place.state()
        assert f"{place.store}-wal" in before
        # What the log beside it holds was read all the same: nothing else knows the bundle.
        assert any("revision 1 is in force" in row["text"] for row in place.found())
        assert place.state() == before

    def test_of_an_older_schema(self, place: Place) -> None:
        place.adopt()
        with closing(sqlite3.connect(place.store)) as connection:
            connection.execute("UPDATE hubbub_store SET schema_version = 1")
            connection.commit()
        before = place.state()
        assert any("brings it up to date" in row["text"] for row in place.found())
        assert place.state() == before

    def _send(self, serve: ServeProcess, place: Place) -> None:
        with serve.public_channel() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            stub.SubmitReports(make_request(place.bundle, "health.self_rated"), timeout=TIMEOUT)


class TestKeys:
    def test_no_folder(self, place: Place) -> None:
        shutil.rmtree(place.operator.folder)
        assert "`hubbub keygen" in place.trouble()["keys"]

    @pytest.mark.parametrize("name", [".", "server.key"])
    def test_that_this_user_may_not_read(
        self, place: Place, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Root may, who runs these tests at times; so the answer is made up."""
        withheld = place.operator.folder / name
        monkeypatch.setattr(os, "access", lambda path, _: Path(path) != withheld)
        assert f"may not read {withheld}; let them" in place.trouble()["keys"]

    def test_the_operators_key_lies_about(self, place: Place) -> None:
        (place.operator.folder / "operator.key").write_text("")
        (place.operator.folder / "operator.key").chmod(0o600)
        assert place.trouble()["keys"].startswith("warning: ")

    @pytest.mark.parametrize(("mode", "level"), [(0o604, "problem"), (0o640, "warning")])
    def test_others_may_read(self, place: Place, mode: int, level: str) -> None:
        (place.operator.folder / "server.key").chmod(mode)
        assert place.trouble()["keys"].startswith(level)
        assert "chmod 600" in place.trouble()["keys"]

    def test_a_key_the_bundle_does_not_list(self, place: Place) -> None:
        add_sealing_key(place.operator.folder, hybrid=False, now=time.time())
        assert "which the bundle does not list" in place.trouble()["bundle"]


class TestCertificates:
    @pytest.mark.parametrize(
        ("age", "said"), [(2 * YEAR, "problem: it expired on"), (380 * 86_400, "warning: it exp")]
    )
    def test_that_end(self, place: Place, age: float, said: str) -> None:
        add_certificates(place.operator.folder, [], now=time.time() - age)
        assert place.trouble()["certificate"].startswith(said)
        assert place.trouble("--insecure-loopback") == {}

    def test_for_another_host(self, place: Place) -> None:
        place.put(make_bundle(place.operator, make_metric(), endpoint="a.example.org:7443"))
        said = place.trouble()["certificate"]
        assert said.startswith("problem: devices connect to a.example.org")
        add_certificates(place.operator.folder, ["*.example.org"], now=time.time())
        assert place.trouble() == {}

    def test_of_another_authority(self, place: Place, tmp_path: Path) -> None:
        other = Operator.create(tmp_path / "other")
        for name in ("server.key", "server.crt"):
            shutil.copy(other.folder / name, place.operator.folder / name)
        assert "was not issued by" in place.trouble()["certificate"]

    def test_that_do_not_fit(self, place: Place) -> None:
        old = (place.operator.folder / "server.crt").read_bytes()
        add_certificates(place.operator.folder, [], now=time.time())
        (place.operator.folder / "server.crt").write_bytes(old)
        assert "is not the certificate of server.key" in place.trouble()["certificate"]

    @pytest.mark.parametrize(
        ("name", "host", "covers"),
        [
            ("a.example", "A.example", True),
            ("*.example", "a.example", True),
            ("*.example", "a.b.example", False),
            ("::1", "0:0::1", True),
            ("127.0.0.1", "127.0.0.2", False),
        ],
    )
    def test_hosts_are_compared_as_clients_do(self, name: str, host: str, covers: bool) -> None:
        assert keys_folder._covers(name, host) is covers


class TestBundles:
    def test_missing(self, place: Place) -> None:
        place.path.unlink()
        assert "cannot read" in place.trouble()["bundle"]

    def test_of_another_operator(self, place: Place, tmp_path: Path) -> None:
        stranger = Operator.create(tmp_path / "stranger")
        place.path.write_bytes(make_bundle(stranger, make_metric()).signed)
        assert "is not signed by" in place.trouble()["bundle"]

    def test_that_is_over(self, place: Place) -> None:
        place.put(make_bundle(place.operator, make_metric(ends=1_000_000)))
        assert "no metric in it takes reports" in place.trouble()["bundle"]


class TestStores:
    def test_no_folder(self, place: Place) -> None:
        assert "mkdir" in place.trouble("--store", place.folder / "no" / "s")["store"]

    def test_an_empty_file(self, place: Place) -> None:
        place.store.touch()
        assert "which a store never is" in place.trouble()["store"]

    def test_something_else(self, place: Place) -> None:
        place.store.write_text("Dear diary\n" * 1_000)
        assert "is no SQLite database, and so no store" in place.trouble()["store"]
        place.store.unlink()
        assert "is not a Hubbub store" in place.trouble("--store", place.folder)["store"]
        with closing(sqlite3.connect(place.store)) as connection:
            connection.execute("CREATE TABLE diary (day)")
        assert "is not a Hubbub store" in place.trouble()["store"]

    def test_a_damaged_page(self, place: Place) -> None:
        place.adopt()
        data = bytearray(place.store.read_bytes())
        data[4_096:] = os.urandom(len(data) - 4_096)
        place.store.write_bytes(data)
        assert "is damaged" in place.trouble()["store"]

    def test_a_newer_schema(self, place: Place) -> None:
        place.adopt()
        with closing(sqlite3.connect(place.store)) as connection:
            connection.execute("UPDATE hubbub_store SET schema_version = 99")
            connection.commit()
        assert "run a newer Hubbub" in place.trouble()["store"]

    def test_another_operators(self, place: Place, tmp_path: Path) -> None:
        place.adopt(make_bundle(Operator.create(tmp_path / "stranger"), make_metric()))
        assert "belongs to another operator" in place.trouble()["store"]

    def test_a_higher_revision(self, place: Place) -> None:
        place.adopt(make_bundle(place.operator, make_metric(), revision=3))
        assert "revision 3 has been in force" in place.trouble()["store"]

    def test_another_of_the_same_revision(self, place: Place) -> None:
        place.adopt(make_bundle(place.operator, make_metric("another")))
        assert "another bundle of revision 1" in place.trouble()["store"]

    def test_a_changed_definition(self, place: Place) -> None:
        place.adopt()
        place.put(make_bundle(place.operator, make_metric(epsilon="2"), revision=2))
        assert "needs a new name" in place.trouble()["store"]

    def test_little_room(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        place.adopt()
        monkeypatch.setattr(disk, "LEAST_FREE", 1 << 60)
        found = place.trouble("--archive", place.folder)
        assert "make room, until then reports are refused" in found["disk"]
        assert "make room, until then rounds whose" in found["archive disk"]

    @pytest.mark.parametrize("listening", [True, False])
    def test_a_server_is_reached_and_its_password_not_told(
        self, place: Place, *, listening: bool
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            if not listening:
                server.close()
            location = f"postgresql://hubbub:hunter2@127.0.0.1:{port}/hubbub"
            rows = [r for r in place.found("--store", location) if r["subject"] == "store"]
        assert [row["level"] for row in rows] == ["ok" if listening else "problem"]
        assert "hunter2" not in json.dumps(rows)


class TestMachines:
    def test_a_clock_that_lost_its_battery(self) -> None:
        (found,) = look_at_clock(86_400.0, [])
        assert found.level is Level.PROBLEM
        assert "1970-01-02" in found.text

    def test_a_clock_that_is_behind(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.touch()
        (found,) = look_at_clock(time.time() - 3_600, [path])
        assert found.level is Level.PROBLEM
        (found,) = look_at_clock(time.time(), [path])
        assert found.level is Level.OK

    @pytest.mark.parametrize(("soft", "level"), [(1_024, Level.WARNING), (4_096, Level.OK)])
    def test_files(self, monkeypatch: pytest.MonkeyPatch, soft: int, level: Level) -> None:
        monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (soft, soft))
        (found,) = look_at_limits(64, 16)
        assert found.level is level


class TestPorts:
    def test_taken_by_something_else(self, place: Place) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            # Neither answers; each is asked for as long as it takes to be sure.
            found = place.trouble("--private-listen", address, "--metrics-listen", address)
        for subject in ("private port", "metrics port"):
            assert found[subject].startswith(f"problem: {address} is taken")

    def test_no_address_of_this_machine(self, place: Place) -> None:
        found = place.trouble("--listen", "192.0.2.1:7443")
        assert "is no address of this machine" in found["public port"]

    @pytest.mark.parametrize(
        ("made", "said"),
        [
            ("folder", "can be written"),
            ("file", "is no folder"),
            ("", "be made"),
            ("nothing above", "; mount its disk, mkdir it, or give"),
        ],
    )
    def test_the_archive(self, place: Place, tmp_path: Path, made: str, said: str) -> None:
        folder = tmp_path / "archive"
        if made == "folder":
            folder.mkdir()
        elif made == "file":
            folder.touch()
        elif made:
            folder = folder / "archive"
        found = {row["subject"]: row["text"] for row in place.found("--archive", folder)}
        assert said in found["archive"]

    def test_plaintext_beyond_loopback(self, place: Place) -> None:
        found = place.trouble("--private-listen", "0.0.0.0:0")
        assert "add --private-tls" in found["settings"]


class TestARunningAggregator:
    @pytest.fixture
    def serve(self, place: Place) -> Iterator[ServeProcess]:
        with ServeProcess(
            place.operator, place.path, place.store, flags=["--metrics-listen", "0"]
        ) as serve:
            place.flags[5], place.flags[7] = serve.public, serve.private
            place.flags += ["--metrics-listen", serve.address("metrics")]
            yield serve

    def test_is_asked_how_it_is(self, place: Place, serve: ServeProcess) -> None:
        before = place.state()
        assert place.trouble() == {}
        texts = [row["text"] for row in place.found()]
        assert f"an aggregator serves at {serve.public}" in texts
        assert f"an aggregator serves at {serve.private}" in texts
        assert any(text.startswith("version ") for text in texts)
        assert {path: state[0] for path, state in place.state().items()}.keys() == before.keys()
        assert serve.terminate() == 0

    def test_has_an_older_bundle(self, place: Place, serve: ServeProcess) -> None:
        place.put(make_bundle(place.operator, make_metric(), revision=2))
        assert "restart it with the newer one" in place.trouble()["aggregator"]

    def test_has_another_store(self, place: Place, serve: ServeProcess) -> None:
        found = place.trouble("--store", place.folder / "another")
        assert "give the same --store to both" in found["aggregator"]

    def test_archives_nothing(self, place: Place, serve: ServeProcess) -> None:
        found = place.trouble("--archive", place.folder)
        assert found["aggregator"].startswith("problem: it archives nothing, and a round")
        assert f"restart it with --archive {place.folder}" in found["aggregator"]

    def test_has_lost_its_store(self, place: Place, serve: ServeProcess) -> None:
        place.store.rename(place.folder / "elsewhere")
        with serve.public_channel() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            with pytest.raises(grpc.RpcError):
                stub.SubmitReports(make_request(place.bundle, "health.self_rated"), timeout=TIMEOUT)
        texts = [row["text"] for row in place.found() if row["level"] == "problem"]
        assert any(text.startswith("nothing is counted since 20") for text in texts)


def test_a_finding_is_one_sentence_of_one_line(place: Place) -> None:
    place.store.touch()
    for row in place.found():
        assert Finding(**row).text.count("\n") == 0


def test_takes_every_flag_of_serve() -> None:
    """So that a command line that fails can be looked at by its first word alone."""
    taken = {
        command: set(re.findall(r"--[a-z][a-z-]+", typed(command, "--help").stdout))
        for command in ("serve", "doctor")
    }
    assert taken["serve"] <= taken["doctor"]
