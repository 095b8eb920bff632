"""Commands as a person types them, but in this process: an interpreter takes a second to start."""

import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from hubbub_aggregator.app import run


class Ran(NamedTuple):
    """What came of a command, under the names that `subprocess` has for it."""

    returncode: int
    stdout: str
    stderr: str


def typed(*arguments: object, cwd: Path | None = None) -> Ran:
    """Run `hubbub` with these arguments, in a folder if one is given."""
    output, errors = io.StringIO(), io.StringIO()
    words = ["hubbub", *map(str, arguments)]
    with (
        chdir(cwd or Path.cwd()),
        mock.patch.object(sys, "argv", words),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        status = _status(errors)
    return Ran(status, output.getvalue(), errors.getvalue())


def _status(errors: io.StringIO) -> int:
    """The exit status, as the interpreter makes it of what ends the command."""
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, str):
            errors.write(f"{end.code}\n")
            return 1
        return end.code or 0
    return 0
