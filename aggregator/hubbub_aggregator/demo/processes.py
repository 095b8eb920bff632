"""The demo's processes: a real aggregator and a real page, started and ended with it."""

import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from hubbub_aggregator.commands import CommandError

_STOP_SECONDS: Final = 20


class Addresses(NamedTuple):
    """Where an aggregator listens."""

    public: str
    private: str


@contextmanager
def aggregator(folder: Path, bundle: Path, keys: Path) -> Generator[Addresses]:
    """Run `hubbub serve` on ports that the system gives, for the body."""
    command = [
        *(sys.executable, "-m", "hubbub_aggregator", "serve", str(bundle), "--keys", str(keys)),
        *("--listen", "127.0.0.1:0", "--private-listen", "127.0.0.1:0"),
        *("--store", str(folder / "demo.sqlite3"), "--lame-duck", "0"),
    ]
    with _running(command) as process:
        said: dict[str, str] = {}
        for line in process.stdout or ():
            word, _, rest = line.strip().partition(" ")
            said[word] = rest.split()[0] if rest.split() else ""
            if word == "ready":
                yield Addresses(said["public"], said["private"])
                return
        raise CommandError("the demo's aggregator did not start; its message is above")


@contextmanager
def page(private: str) -> Generator[str]:
    """Run the dashboard for the body; gives its address."""
    command = [sys.executable, "-m", "hubbub_dashboard", "--aggregator", private]
    with _running([*command, "--port", str(_free_port(8501))]) as process:
        for line in process.stdout or ():
            if "http://" in line:
                threading.Thread(target=_pass_on, args=(process.stdout,), daemon=True).start()
                yield line[line.index("http://") :].split()[0]
                return
        raise CommandError("the dashboard did not start; its message is above")


def _pass_on(said: IO[str]) -> None:
    """Show what it says later, above all why a look failed: a full pipe would stop it."""
    # It is closed when the demo ends.
    with suppress(ValueError):
        for line in said:
            sys.stderr.write(line)


@contextmanager
def _running(command: list[str]) -> Generator[subprocess.Popen[str]]:
    # In a session of its own: Ctrl-C reaches the demo alone, which then ends what it started.
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _free_port(preferred: int) -> int:
    """The preferred port, or any if it is taken."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise CommandError("no port is free for the page")
