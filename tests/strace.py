"""What a process asked the system to do, in its order, as strace saw it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

_TRACED: Final = "trace=fsync,fdatasync,sendto,sendmsg,write,writev,pwrite64,pwritev,pwritev2"
_UNFINISHED: Final = " <unfinished ...>"
_LINE: Final = re.compile(r"(?P<thread>\d+) +(?P<rest>.*)", re.DOTALL)
_RESUMED: Final = re.compile(r"<\.\.\. \w+ resumed>(?P<rest>.*)", re.DOTALL)
_BEGUN: Final = re.compile(r"(?P<name>\w+)\((?P<file>\d+<[^>]*>*)?(?P<rest>.*)", re.DOTALL)
_HEX: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Call(NamedTuple):
    """One system call."""

    name: str
    file: str
    """Number and path or addresses of the open file it is about."""
    data: bytes
    """What was written of it."""
    began: int
    """Its place among all beginnings and ends, as its end."""
    ended: int


def prefix(output: Path) -> tuple[str, ...]:
    """What goes before a command to trace it; skips the test where that cannot be."""
    if shutil.which("strace") is None:
        pytest.skip("no strace here")
    command = ("strace", "-f", "-yy", "-xx", "-s", "8000000", "-o", str(output), "-e", _TRACED)
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"strace may trace nothing here: {tried.stderr.strip()}")
    return command


def traced(strace: int) -> int:
    """The process that a strace traces, which is its child."""
    return int(Path(f"/proc/{strace}/task/{strace}/children").read_text().split()[0])


def calls(output: Path) -> Iterator[Call]:
    """Every call that succeeded, in the order of their ends."""
    begun: dict[str, tuple[int, str]] = {}
    with output.open() as lines:
        for place, line in enumerate(lines):
            match = _LINE.match(line)
            if match is None:
                continue
            thread, rest = match["thread"], match["rest"].rstrip()
            began = place
            resumed = _RESUMED.match(rest)
            if resumed is not None:
                began, start = begun.pop(thread)
                rest = start + resumed["rest"]
            elif rest.endswith(_UNFINISHED):
                begun[thread] = (place, rest.removesuffix(_UNFINISHED))
                continue
            call = _call(rest, began, place)
            if call is not None:
                yield call


def _call(text: str, began: int, ended: int) -> Call | None:
    match = _BEGUN.match(text)
    arguments, _, result = text.rpartition(" = ")
    if match is None or not result.split()[0].isdigit():
        # A signal, an end, or a failure.
        return None
    file = _HEX_PATH.sub(lambda found: bytes.fromhex(found[1]).decode(), match["file"] or "")
    data = b"".join(bytes.fromhex(one.replace("\\x", "")) for one in _HEX.findall(arguments))
    if match["name"] not in ("fsync", "fdatasync"):
        data = data[: int(result.split()[0])]
    return Call(match["name"], file, data, began, ended)


_HEX_PATH: Final = re.compile(r"\\x([0-9a-f]{2})")
