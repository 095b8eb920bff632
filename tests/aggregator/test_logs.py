"""Logs: an object a line, and nothing in any of them that somebody sent."""

import io
import json
import logging
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from sqlalchemy.exc import IntegrityError

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2_grpc
from hubbub_aggregator import logs
from hubbub_aggregator.logs import LogFormat, Speaker
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import COMMAND

TIMEOUT = 30
QUOTED = "6a1f-payload-of-ipv4:203.0.113.9"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Where logs go, in place of standard error."""
    root, hook = logging.getLogger(), threading.excepthook
    ours = logging.getLogger("hubbub_aggregator")
    handlers, level, our_level = root.handlers, root.level, ours.level
    stream = io.StringIO()
    yield stream
    root.handlers, threading.excepthook = handlers, hook
    root.setLevel(level)
    ours.setLevel(our_level)


def fail() -> None:
    """As the database's driver does, which quotes the parameters of its statement."""
    try:
        raise KeyError(QUOTED)
    except KeyError as error:
        raise IntegrityError("INSERT", {"report_id": QUOTED}, error) from error


@pytest.mark.parametrize("form", LogFormat)
class TestNothingThatSomebodySent:
    def test_is_in_a_trace(self, form: LogFormat, stream: io.StringIO) -> None:
        logs.set_up(form, stream)
        try:
            fail()
        except IntegrityError:
            logging.getLogger("hubbub_aggregator.committer").exception("a commit failed")
        said = stream.getvalue()
        assert QUOTED not in said
        for expected in ("a commit failed", "IntegrityError", "KeyError", "test_logs.py", " fail"):
            assert expected in said

    @pytest.mark.parametrize("name", ["grpc", "grpc._server", "sqlalchemy.engine", "asyncio"])
    def test_is_in_what_others_log(self, form: LogFormat, stream: io.StringIO, name: str) -> None:
        logs.set_up(form, stream)
        try:
            raise ValueError(QUOTED)
        except ValueError as error:
            logging.getLogger(name).exception("calling for %s: %s", QUOTED, error)
        said = stream.getvalue()
        assert QUOTED not in said
        assert f"{name.partition('.')[0]} logged a fault" in said
        assert "ValueError" in said

    def test_is_in_a_thread_that_dies(self, form: LogFormat, stream: io.StringIO) -> None:
        logs.set_up(form, stream)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        assert QUOTED not in stream.getvalue()
        assert "a thread ended by a fault" in stream.getvalue()


def test_json_has_an_event_and_fields(stream: io.StringIO) -> None:
    logs.set_up(LogFormat.JSON, stream)
    log = logging.getLogger("hubbub_aggregator.tls")
    log.error("two\nlines", extra={"event": "what", "fields": {"n": 3}})
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert entry.pop("time").endswith("Z")
    assert entry == {"level": "error", "event": "what", "message": "two lines", "n": 3}


def test_a_speaker_flushes_a_line(stream: io.StringIO) -> None:
    Speaker(LogFormat.TEXT, stream).say("ready", "ready, then", n=1)
    Speaker(LogFormat.JSON, stream).say("ready", "ready, then", n=1)
    text, line = stream.getvalue().splitlines()
    assert text == "ready, then"
    entry = json.loads(line)
    del entry["time"]
    assert entry == {"level": "info", "event": "ready", "n": 1}


class TestAProcess:
    @pytest.fixture
    def bundle(self, operator: Operator, tmp_path: Path) -> Bundle:
        bundle = make_bundle(operator, make_metric())
        (tmp_path / "metrics.hubbub").write_bytes(bundle.signed)
        return bundle

    def test_writes_nothing_but_objects(
        self, operator: Operator, bundle: Bundle, tmp_path: Path
    ) -> None:
        process = subprocess.Popen(
            [
                *(COMMAND, "serve", str(tmp_path / "metrics.hubbub"), "--log-format", "json"),
                *("--keys", str(operator.folder), "--store", str(tmp_path / "s")),
                *("--listen", "127.0.0.1:0", "--private-listen", "127.0.0.1:0"),
                *("--lame-duck", "0"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            assert process.stdout is not None
            entries: list[dict[str, Any]] = []
            for line in process.stdout:
                entries.append(json.loads(line))
                if entries[-1]["event"] == "ready":
                    self._provoke(operator, bundle, entries, tmp_path)
                    process.terminate()
        assert process.returncode == 0
        assert {"listening", "metric", "store", "certificate", "ready", "stopped"} <= {
            entry["event"] for entry in entries
        }
        # The store was gone for a while, which the operator hears of, once.
        (failure,) = [entry for entry in entries if entry["event"] == "committer"]
        assert failure["level"] == "error"
        assert entries[-1]["totals"]["REPORT_STATUS_COUNTED"] == 1
        assert "127.0.0.1:" not in json.dumps([e for e in entries if e["event"] != "listening"])

    def _provoke(
        self, operator: Operator, bundle: Bundle, entries: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        (address,) = [entry["address"] for entry in entries if entry.get("listener") == "public"]
        authority = (operator.folder / "ca.crt").read_bytes()
        request = make_request(bundle, "health.self_rated")
        with grpc.secure_channel(address, grpc.ssl_channel_credentials(authority)) as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            # Bytes that are no request: gRPC's own logger has something to say.
            submit = channel.unary_unary("/hubbub.v1.ReportService/SubmitReports")
            with pytest.raises(grpc.RpcError):
                submit(os.urandom(64) + b"\xff" * 64, timeout=TIMEOUT)
            stub.SubmitReports(request, timeout=TIMEOUT)
            (tmp_path / "s").rename(tmp_path / "elsewhere")
            for _ in range(3):
                with pytest.raises(grpc.RpcError):
                    stub.SubmitReports(request, timeout=TIMEOUT)

    def test_says_why_it_does_not_start(
        self, operator: Operator, bundle: Bundle, tmp_path: Path
    ) -> None:
        run = subprocess.run(
            [
                *(COMMAND, "serve", str(tmp_path / "metrics.hubbub"), "--log-format", "json"),
                *("--keys", str(operator.folder), "--store", str(tmp_path / "no" / "s")),
                *("--listen", "127.0.0.1:0", "--private-listen", "127.0.0.1:0"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 1
        (line,) = run.stderr.splitlines()
        entry = json.loads(line)
        assert (entry["level"], entry["event"]) == ("error", "refused")
        assert "cannot be created" in entry["message"]
