"""No acknowledgement leaves before what it says is on the disk: told from the system calls."""

import contextlib
import os
import signal
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2
from hubbub_aggregator.listeners import SUBMIT
from tests import strace
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.flood import flood
from tests.overload import OVERLOADED
from tests.processes import ServeProcess

COUNTED = report_pb2.REPORT_STATUS_COUNTED
# Reports of a request: one, as devices send, then some, as gateways do; in turn.
SIZES = (1, 9)


class Sent(NamedTuple):
    """A request: the reports' ids, and its bytes."""

    ids: list[bytes]
    request: bytes


def requests_of(bundle: Bundle, reports: int) -> list[Sent]:
    made: list[Sent] = []
    while reports > 0:
        ids = [os.urandom(16) for _ in range(SIZES[len(made) % len(SIZES)])]
        request = make_request(bundle, "few", [(one, b"\1") for one in ids])
        made.append(Sent(ids, request.SerializeToString()))
        reports -= len(ids)
    return made


def data_frames(calls: Sequence[strace.Call]) -> Iterator[tuple[int, bytes, int]]:
    """Stream, content, and when the first byte began to leave, of HTTP/2 frames with data."""
    stream = b"".join(call.data for call in calls)
    starts = [0]
    for call in calls:
        starts.append(starts[-1] + len(call.data))
    place = 0
    while place < len(stream):
        size = int.from_bytes(stream[place : place + 3], "big")
        if stream[place + 3] == 0:
            number = int.from_bytes(stream[place + 5 : place + 9], "big")
            # The call with the frame's first byte, whatever of it came later.
            which = bisect_left(starts, place + 1) - 1
            yield number, stream[place + 9 : place + 9 + size], calls[which].began
        place += 9 + size


def assert_durable_before_acknowledged(
    operator: Operator, tmp_path: Path, reports: int, *, in_flight: int
) -> None:
    bundle = make_bundle(operator, make_metric("few", mechanism="optimised-unary"))
    path, output = tmp_path / "metrics.hubbub", tmp_path / "strace"
    path.write_bytes(bundle.signed)
    sent = requests_of(bundle, reports)
    with (
        ServeProcess(
            operator,
            path,
            tmp_path / "s",
            # Without TLS, so that answers can be read off what is sent.
            flags=["--insecure-loopback"],
            prefix=strace.prefix(output),
        ) as serve,
        contextlib.ExitStack() as stack,
    ):
        pid = strace.traced(serve.pid)
        # Whatever comes: a process outlives the strace that traces it.
        stack.callback(_kill, pid)
        # What each stream was about, of each connection, one after the other.
        rounds: list[dict[int, Sent]] = []
        left = sent
        while left:
            messages = [one.request for one in left]
            answers = list(flood(serve.public, SUBMIT, messages, in_flight=in_flight))
            assert {answer.status for answer in answers} <= {0, OVERLOADED}
            rounds.append({answer.stream: left[answer.number] for answer in answers})
            # Traced, it is slow, and may find that there are too many.
            left = [left[answer.number] for answer in answers if answer.status == OVERLOADED]
        os.kill(pid, signal.SIGTERM)
        assert serve.wait() == 0
        # It is gone, and its number may be another's.
        stack.pop_all()

    calls = list(strace.calls(output))
    written = [one for one in calls if one.file.endswith("s-wal>") and one.data]
    syncs = [
        one for one in calls if one.file.endswith("s-wal>") and one.name in ("fsync", "fdatasync")
    ]
    # When each half of an id was written first: a page may end within one, but not in both.
    durable = durable_times(written, syncs, [half for one in sent for half in halves(one.ids)])
    # In the order of their first answers.
    connections = dict.fromkeys(one.file for one in calls if one.name in ("sendmsg", "sendto"))
    acknowledged = 0
    for connection, asked in zip(connections, rounds, strict=True):
        frames = data_frames([one for one in calls if one.file == connection])
        for number, content, began in frames:
            statuses = report_pb2.SubmitReportsResponse.FromString(content[5:]).statuses
            # Streams are counted in odd numbers, from 1.
            ids = asked[number].ids
            assert list(statuses) == [COUNTED] * len(ids)
            for one in ids:
                times = [durable[half] for half in halves([one]) if half in durable]
                assert times, "an id was acknowledged and never written"
                assert min(times) < began
            acknowledged += len(ids)
    assert acknowledged == sum(len(one.ids) for one in sent) >= reports
    # Group commits: else it would prove little.
    assert 2 < len(syncs) < len(sent)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def halves(ids: Sequence[bytes]) -> list[bytes]:
    return [half for one in ids for half in (one[:8], one[8:])]


def durable_times(
    written: Sequence[strace.Call], syncs: Sequence[strace.Call], wanted: Sequence[bytes]
) -> dict[bytes, int]:
    """When a flush had ended that had begun after a text's first write had ended."""
    left, found = set(wanted), dict[bytes, int]()
    begins = [one.began for one in syncs]
    assert begins == sorted(begins)
    for write in written:
        # At every place, since nobody knows how the store packs them.
        here = {write.data[at : at + 8] for at in range(len(write.data) - 7)} & left
        after = bisect_left(begins, write.ended)
        if after < len(syncs):
            found.update(dict.fromkeys(here, syncs[after].ended))
        left -= here
    return found


def test_reports_are_flushed_before_they_are_acknowledged(
    operator: Operator, tmp_path: Path
) -> None:
    assert_durable_before_acknowledged(operator, tmp_path, 400, in_flight=24)


@pytest.mark.soak
def test_acknowledgement_of_ten_thousand_reports(operator: Operator, tmp_path: Path) -> None:
    assert_durable_before_acknowledged(operator, tmp_path, 10_000, in_flight=24)
