"""A network that cannot be relied on: a TCP proxy that delays, cuts, swallows and falls silent."""

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Self


class Fate(Enum):
    """What becomes of a connection."""

    PASSES = "everything arrives"
    IS_SLOW = "everything arrives late"
    IS_RESET = "it is cut in the midst of a request"
    LOSES_ITS_ANSWER = "the request arrives, the answer does not"
    FALLS_SILENT = "nothing arrives any more, for as long as the proxy is told"


# A TLS handshake is smaller, a request of BATCH reports larger.
_IN_THE_MIDST = 8_000


class Proxy:
    """Between clients and one address. Use it as a context manager."""

    def __init__(self, to: str, chance: random.Random, *, silence: float) -> None:
        """`silence`: seconds for which a connection that falls silent stays open."""
        host, _, port = to.rpartition(":")
        self._to = host, int(port)
        self._next = _again_and_again(chance)
        self._silence = silence
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.fates: Counter[Fate] = Counter()
        self.calm = False
        """Whether every connection that begins passes."""
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            fate = Fate.PASSES if self.calm else next(self._next)
            self.fates[fate] += 1
            try:
                server = socket.create_connection(self._to)
            except OSError:
                client.close()
                continue
            _Connection(client, server, fate, self._silence, self._ended).start()


def _again_and_again(chance: random.Random) -> Iterator[Fate]:
    """Each fate as often as any other, in an order that changes."""
    while True:
        fates = list(Fate)
        chance.shuffle(fates)
        yield from fates


class _Connection:
    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        fate: Fate,
        silence: float,
        ended: threading.Event,
    ) -> None:
        self._client = client
        self._server = server
        self._fate = fate
        self._silence = silence
        self._ended = ended
        self._up = 0

    def start(self) -> None:
        for source, target, may in (
            (self._client, self._server, self._may_go_up),
            (self._server, self._client, self._may_come_down),
        ):
            threading.Thread(target=self._pass, args=(source, target, may), daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, may: Callable[[bytes], bool]
    ) -> None:
        with suppress(OSError):
            while octets := source.recv(1 << 14):
                if self._fate is Fate.IS_SLOW:
                    time.sleep(0.05)
                if not may(octets):
                    break
                target.sendall(octets)
        for end in (source, target):
            with suppress(OSError):
                # Both directions, at once and with a reset.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _may_go_up(self, octets: bytes) -> bool:
        self._up += len(octets)
        if self._up < _IN_THE_MIDST:
            return True
        if self._fate is Fate.FALLS_SILENT:
            self._ended.wait(self._silence)
        return self._fate not in (Fate.IS_RESET, Fate.FALLS_SILENT)

    def _may_come_down(self, octets: bytes) -> bool:
        if self._up < _IN_THE_MIDST or self._fate is not Fate.LOSES_ITS_ANSWER:
            return True
        # Until the request has been counted.
        self._ended.wait(1.0)
        return False
