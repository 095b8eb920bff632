"""What commands say of an aggregator that ends in the middle of a call, or of what is none."""

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hubbub_aggregator.commands import health
from tests.bundles import Operator, make_bundle, make_metric
from tests.processes import ServeProcess
from tests.typed import typed


@pytest.fixture(scope="module")
def path(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "metrics.hubbub"
    path.write_bytes(make_bundle(operator, make_metric("lunch")).signed)
    return path


@pytest.fixture(scope="module")
def serve(operator: Operator, path: Path) -> Iterator[ServeProcess]:
    """With TLS on both listeners, on every address."""
    with ServeProcess(
        operator,
        path,
        path.with_name("store"),
        private_listen="0.0.0.0:0",
        flags=["--private-tls"],
    ) as serve:
        yield serve


def said(address: str, *flags: object) -> str:
    """What each command says: all the same, in a line."""
    commands = (["status"], ["health"], ["close", "lunch"], ["estimate", "lunch"])
    texts: set[str] = set()
    for command in commands:
        ran = typed(*command, "--aggregator", address, *flags)
        assert (ran.returncode, ran.stdout) == (1, "")
        texts.add(ran.stderr)
    (text,) = texts
    return text


def test_a_listener_with_tls_wants_its_own_keys(
    serve: ServeProcess, operator: Operator, stranger: Operator
) -> None:
    keys, address = operator.folder, serve.private
    assert typed("status", "--aggregator", address, "--keys", keys).returncode == 0
    assert said(address) == (
        f"hubbub: what listens at {address} hangs up: it wants the --keys of its aggregator, is "
        f"none, or just ended\n"
    )
    assert said(address, "--keys", stranger.folder) == (
        f"hubbub: the certificate of the listener at {address} is not of the keys folder's "
        f"authority; give --keys the folder of that aggregator\n"
    )
    other = f"127.0.0.2:{address.rpartition(':')[2]}"
    assert said(other, "--keys", keys) == (
        f"hubbub: the certificate of the listener at {other} is for other names; use one of "
        f"those, or have one made for this: hubbub keygen KEYS --new-certificate --host 127.0.0.2, "
        f"with every other --host again\n"
    )


def test_the_public_listener_is_not_the_private_one(
    serve: ServeProcess, operator: Operator
) -> None:
    ran = typed("status", "--aggregator", serve.public, "--keys", operator.folder)
    assert ran.stderr == (
        f"hubbub: what listens at {serve.public} does not know this call: it is no private "
        f"listener, or that of another version\n"
    )


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_something_else_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{web.server_port}"
        assert said(address) == (
            f"hubbub: what listens at {address} is no aggregator; give its private listener's "
            f"address\n"
        )
        web.shutdown()
    monkeypatch.setattr(health, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert typed("health", "--aggregator", address).stderr == (
            f"hubbub: the aggregator at {address} does not answer: it hangs, or something else "
            f"listens there\n"
        )


CALLS = {"close": b"CloseRound", "estimate": b"GetEstimates"}


@contextmanager
def deadly(serve: ServeProcess, call: bytes) -> Iterator[str]:
    """An address that passes on what a client sends; a certain call kills the aggregator."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        relay = threading.Thread(target=pass_on, args=(listener, serve, call))
        relay.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        relay.join()


def pass_on(listener: socket.socket, serve: ServeProcess, call: bytes) -> None:
    host, _, port = serve.private.rpartition(":")
    client, _ = listener.accept()
    with client, socket.create_connection((host, int(port))) as server:
        answers = threading.Thread(target=pass_back, args=(server, client))
        answers.start()
        sent = b""
        while call not in sent:
            octets = client.recv(1 << 16)
            sent += octets
            # The call itself is kept back: it might be answered before the end.
            server.sendall(octets if call not in sent else b"")
        serve.kill()
        # Which ends when the aggregator's side of the line does.
        answers.join()


def pass_back(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while octets := server.recv(1 << 16):
            client.sendall(octets)


@pytest.mark.parametrize(
    ("command", "then"),
    [
        (
            "close",
            "; the round may be closed now, or not: see whether it runs with `hubbub status`, and "
            "give the same command again, which says whether it was closed before",
        ),
        ("estimate", ""),
    ],
)
def test_killed_in_the_middle_of_a_call(
    operator: Operator, path: Path, tmp_path: Path, command: str, then: str
) -> None:
    with (
        ServeProcess(operator, path, tmp_path / "store") as serve,
        deadly(serve, CALLS[command]) as address,
    ):
        ran = typed(command, "lunch", "--aggregator", address)
    assert ran.returncode == 1
    assert ran.stderr == (
        f"hubbub: the aggregator at {address} went away before it answered{then}\n"
    )
