"""The machine: its clock, and how many files a process may have open."""

import resource
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from google.protobuf.internal import api_implementation

from hubbub.limits import CLOCK_SKEW
from hubbub_aggregator.doctor.findings import About, Finding

_clock, _limits, _python = About("clock"), About("limits"), About("python")

# Before this was written; a machine that lost its battery starts in 1970 or 2000.
_EARLIEST: Final = datetime(2024, 1, 1, tzinfo=UTC).timestamp()

# Beside connections: the store's, logs, libraries.
_OTHER_FILES: Final = 256


def look_at_clock(now: float, files: list[Path]) -> Iterator[Finding]:
    """Against the times of `files`, which this machine or another wrote before now."""
    if now < _EARLIEST:
        yield _clock.problem(
            f"it shows {_words(now)}, so rounds do not open when they should; set it, with NTP"
        )
        return
    newest = max(((path.stat().st_mtime, path) for path in files if path.exists()), default=None)
    if newest is not None and newest[0] > now + CLOCK_SKEW:
        yield _clock.problem(
            f"it shows {_words(now)}, but {newest[1]} was written at {_words(newest[0])}; "
            f"set it, with NTP"
        )
        return
    yield _clock.ok(f"it shows {_words(now)}, no earlier than any file that was looked at")


def look_at_limits(threads: int, calls_per_thread: int) -> Iterator[Finding]:
    """Whether as many devices can be connected as calls are taken."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    calls = threads * calls_per_thread
    needed = calls + _OTHER_FILES
    if soft == resource.RLIM_INFINITY:
        yield _limits.ok("a process may open any number of files")
    elif soft >= needed:
        yield _limits.ok(f"a process may open {soft:,} files")
    else:
        yield _limits.warning(
            f"a process may open {soft:,} files, which is fewer than one each for the {calls:,} "
            f"calls that are taken at once; ulimit -n {needed}, or LimitNOFILE={needed} in its unit"
        )


def look_at_python() -> Iterator[Finding]:
    if api_implementation.Type() == "upb":
        yield _python.ok("protobuf has its compiled parser")
    else:
        yield _python.problem(
            "protobuf runs without its compiled parser, and the aggregator refuses to; unset "
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION or install a protobuf wheel"
        )


def _words(timestamp: float) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M:%S} UTC"
