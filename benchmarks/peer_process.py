"""Another library, at work in a process and an environment of its own, made for one run."""

import subprocess
import tempfile
import venv
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# pure-LDP does not say that it needs the next two, and breaks with later versions of the last.
PURE_LDP: Final = ("pure-ldp==1.2.0", "scikit-learn", "statsmodels", "xxhash<4")
MULTI_FREQ_LDPY: Final = ("multi-freq-ldpy==0.2.5", "scipy", "xxhash<4")


class Peer:
    """A script that says it is ready, and then answers each line with a line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._answer()

    def ask(self, line: str) -> str:
        """Its answer. Raises RuntimeError if it has stopped."""
        print(line, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> str:
        if self._process.stdout is None or not (line := self._process.stdout.readline()):
            raise RuntimeError("the other library stopped")
        return line


@contextmanager
def peer(requirements: Sequence[str], script: str, *arguments: str) -> Generator[Peer | None]:
    """A script where these requirements are; None, and a line, if they cannot be installed."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        venv.create(folder, with_pip=True)
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        if subprocess.run([*pip, *requirements], check=False, capture_output=True).returncode:
            print(f"{requirements[0]} cannot be installed here: only our side")
            yield None
            return
        process = subprocess.Popen(
            [python, "-W", "ignore", "-c", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield Peer(process)
            finally:
                process.kill()
