"""A real `hubbub serve` in a process of its own, on ports the system gives."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import grpc

from tests.bundles import Operator

COMMAND = str(Path(sys.executable).with_name("hubbub"))

# Long enough for a slow machine at its busiest; nothing is measured by it.
PATIENCE = 60.0


def until(true: Callable[[], bool]) -> None:
    """Wait for it, as long as a slow machine may need."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def follow(output: IO[str], lines: list[str]) -> threading.Thread:
    """Go on hearing what a process says, to its end: whoever writes to a full pipe waits."""

    def hear() -> None:
        with output:
            lines.extend(line.rstrip("\n") for line in output)

    # What it leaves behind may hold the pipe's other end for longer than a test should take.
    listener = threading.Thread(target=hear, daemon=True)
    listener.start()
    return listener


class ServeFailed(Exception):
    """`hubbub serve` ended before it was ready; the text is what it said."""


class ServeProcess:
    """`hubbub serve`, ready when constructed. Use it as a context manager."""

    def __init__(
        self,
        operator: Operator,
        bundle: Path,
        store: Path | str,
        *,
        listen: str = "127.0.0.1:0",
        private_listen: str = "127.0.0.1:0",
        flags: Sequence[str] = (),
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        stdin: int | None = None,
    ) -> None:
        """`prefix` goes before the command, `stdin` is no terminal unless it is given one.

        Raises ServeFailed.
        """
        self.operator = operator
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [
                *prefix,
                COMMAND,
                "serve",
                str(bundle),
                *("--keys", str(operator.folder), "--store", str(store)),
                *("--listen", listen, "--private-listen", private_listen, "--lame-duck", "0"),
                *flags,
            ],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._wait_until_ready()
        self._listener = follow(self._output, self.lines)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def public(self) -> str:
        """127.0.0.1:port of the listener that devices reach."""
        return _loopback(self.address("public"))

    @property
    def private(self) -> str:
        """127.0.0.1:port of the listener that analysts reach."""
        return _loopback(self.address("private"))

    def public_channel(self) -> grpc.Channel:
        """A TLS channel, as a device opens it."""
        credentials = grpc.ssl_channel_credentials((self.operator.folder / "ca.crt").read_bytes())
        return grpc.secure_channel(self.public, credentials, _OPTIONS)

    def private_channel(self) -> grpc.Channel:
        """A plaintext channel, as the dashboard opens it."""
        return grpc.insecure_channel(self.private, _OPTIONS)

    def kill(self) -> None:
        """SIGKILL: nothing is finished, nothing is said."""
        self._process.kill()
        self._process.wait()

    def send(self, number: signal.Signals) -> None:
        """A signal."""
        self._process.send_signal(number)

    def terminate(self) -> int:
        """SIGTERM, and the exit status after it; what it said last is in `lines`."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """The exit status, when it has ended; what it said last is in `lines`."""
        status = self._process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        return status

    def __enter__(self) -> "ServeProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    @property
    def _output(self) -> IO[str]:
        if self._process.stdout is None:
            raise ServeFailed("no output to read")
        return self._process.stdout

    def _wait_until_ready(self) -> None:
        for line in self._output:
            self.lines.append(line.rstrip("\n"))
            if self.lines[-1] == "ready":
                return
        self._process.wait()
        self._output.close()
        raise ServeFailed("\n".join(self.lines))

    def address(self, listener: str) -> str:
        """host:port, as it said when it started."""
        return next(line.split()[1] for line in self.lines if line.startswith(f"{listener} "))


# A channel of its own each: gRPC else shares one connection, and its back-off, by address.
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


def _loopback(address: str) -> str:
    return f"127.0.0.1:{address.rpartition(':')[2]}"
