"""A wiretap between devices and an aggregator: who has broken the line's encryption.

It has the aggregator's certificate, ends TLS on both sides, and keeps what passes. What TLS adds
to HTTP/2's frames does not hang on what is in them: whoever cannot break it sees no more than
their sizes.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD = 9
# By number. What HTTP/2 says to keep a connection up is of other kinds.
_KINDS = {0: "data", 1: "headers", 3: "reset"}


class Frame(NamedTuple):
    """An HTTP/2 frame that belongs to a request or its answer (RFC 9113, section 4.1)."""

    kind: str
    stream: int
    size: int


class Connection:
    """What passed over one connection."""

    def __init__(self) -> None:
        self.up = bytearray()
        """What the device sent."""
        self.down = bytearray()

    @property
    def frames(self) -> tuple[list[Frame], list[Frame]]:
        """Of requests, and of answers."""
        return _frames(bytes(self.up).removeprefix(_PREFACE)), _frames(bytes(self.down))


def _frames(octets: bytes) -> list[Frame]:
    frames: list[Frame] = []
    while octets:
        size, stream = int.from_bytes(octets[:3], "big"), int.from_bytes(octets[5:_HEAD], "big")
        if octets[3] in _KINDS:
            frames.append(Frame(_KINDS[octets[3]], stream, size))
        octets = octets[_HEAD + size :]
    return frames


class Wiretap:
    """Listens on a port that the system gives. Use it as a context manager."""

    def __init__(self, keys: Path, aggregator: str) -> None:
        """`keys`: the operator's folder; `aggregator`: host:port of its public listener."""
        self.connections: list[Connection] = []
        self._inside = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        self._outside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._outside.load_cert_chain(keys / "server.crt", keys / "server.key")
        for context in (self._inside, self._outside):
            context.set_alpn_protocols(["h2"])
        self._host, _, self._port = aggregator.rpartition(":")
        self._relays: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    @property
    def endpoint(self) -> str:
        """Where devices send."""
        return f"localhost:{self._server.sockets[0].getsockname()[1]}"

    def __enter__(self) -> Self:
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._outside)
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The loop itself holds no task, and one that nobody holds may vanish.
        self._relays.append(self._loop.create_task(self._relay(reader, writer)))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection()
        self.connections.append(connection)
        async with _ended(writer):
            answers, requests = await asyncio.open_connection(
                self._host, int(self._port), ssl=self._inside
            )
            async with _ended(requests):
                await asyncio.gather(
                    _pass(reader, requests, connection.up), _pass(answers, writer, connection.down)
                )


@asynccontextmanager
async def _ended(writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: bytearray
) -> None:
    # gRPC may end a connection without a farewell.
    with suppress(OSError):
        while octets := await reader.read(1 << 16):
            passed += octets
            writer.write(octets)
            await writer.drain()
    writer.close()
