"""A gRPC client that costs next to nothing, so that it is the server that is measured.

HTTP/2 frames are written by hand (RFC 9113), from requests that were serialised before. gRPC's
own client takes as long for a call as the server does, and shares its processor.
"""

import selectors
import socket
import ssl
import struct
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
# What a server may send us before it must wait: as much as there can be.
_LARGEST_WINDOW: Final = (1 << 31) - 1
_FIRST_WINDOW: Final = 65_535
_CHUNK: Final = 1 << 18
_STATUS: Final = b"grpc-status"
_PUSHBACK: Final = b"grpc-retry-pushback-ms"
_REFUSED_STREAM: Final = 7
_CANCEL: Final = 8
# Not gRPC's: the connection ended, or the stream was reset, before an answer.
LOST: Final = -1


class Answer(NamedTuple):
    """What came of one request."""

    number: int
    """Of the request, counted from 0."""
    status: int
    """A gRPC status code; LOST: there was none."""
    message: bytes
    """The response, serialised; empty without one."""
    seconds: float
    """From when it was to be sent to when the answer was read."""
    pushback: float | None = None
    """Seconds after which it may be sent again, if the server says so."""
    stream: int = 0
    """Of HTTP/2, on its connection, that it was answered on."""


class _Stream:
    __slots__ = ("began", "body", "message", "number", "pushback", "rest", "status", "window")

    def __init__(self, number: int, message: bytes, window: int, began: float) -> None:
        self.number = number
        self.message = message
        self.rest = b"\0" + len(message).to_bytes(4, "big") + message
        self.window = window
        self.began = began
        self.body = b""
        self.status = LOST
        self.pushback: float | None = None


class _Connection:
    """One HTTP/2 connection; not thread-safe."""

    def __init__(self, address: str, path: str, authority: bytes | None) -> None:
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host.strip("[]"), int(port)))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket: socket.socket = plain
        if authority is not None:
            context = ssl.create_default_context(cadata=authority.decode())
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self._headers = _request_headers(path, tls=authority is not None)
        self._streams: dict[int, _Stream] = {}
        # Those whose request has not been written whole, for want of a window.
        self._blocked = deque[int]()
        self._next = 1
        self.window = self._first_window = _FIRST_WINDOW
        self._frame = 1 << 14
        self._most = 100
        self._unread = b""
        self._consumed = 0
        self._out = bytearray()
        self.ended = False
        # No more requests are taken; those under way are answered still.
        self.leaving = False
        self._out += _PREFACE
        # No dynamic table, so that a status can be read off its bytes; and no push.
        settings = ((1, 0), (2, 0), (4, _LARGEST_WINDOW))
        self._put(_SETTINGS, 0, 0, b"".join(struct.pack(">HI", *one) for one in settings))
        self._put(_WINDOW, 0, 0, struct.pack(">I", _LARGEST_WINDOW - _FIRST_WINDOW))
        self.flush()
        self.socket.setblocking(False)

    @property
    def free(self) -> bool:
        """Whether one more request may be sent."""
        full = len(self._streams) >= self._most or self._blocked
        return not (self.ended or self.leaving or full)

    @property
    def waiting(self) -> int:
        return len(self._streams)

    @property
    def full(self) -> bool:
        """Whether something is left to write."""
        return bool(self._out)

    def send(self, number: int, message: bytes, began: float | None = None) -> None:
        stream, self._next = self._next, self._next + 2
        self._put(_HEADERS, _END_HEADERS, stream, self._headers)
        began = began or time.perf_counter()
        self._streams[stream] = _Stream(number, message, self._first_window, began)
        self._pump(stream)

    def stall(self, begun: bytes, *, end: bool) -> None:
        """Begin a request, send so much of it, and no more; or end it there."""
        stream, self._next = self._next, self._next + 2
        self._put(_HEADERS, _END_HEADERS | (end and not begun), stream, self._headers)
        self._streams[stream] = _Stream(stream, b"", self._first_window, time.perf_counter())
        self._streams[stream].rest = b""
        if begun:
            self._put(_DATA, _END_STREAM if end else 0, stream, begun)

    def cancel(self) -> None:
        """Reset whatever is under way."""
        for stream in self._streams:
            self._put(_RESET, 0, stream, struct.pack(">I", _CANCEL))
        self._streams.clear()

    def flush(self) -> None:
        """Write what the system takes."""
        try:
            while self._out:
                sent = self.socket.send(bytes(self._out[:_CHUNK]))
                del self._out[:sent]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
            return
        except OSError:
            self.ended = True

    def receive(self) -> list[Answer]:
        """What has come; of a connection that ended, everything that waits is LOST."""
        pieces = [self._unread]
        try:
            while True:
                piece = self.socket.recv(_CHUNK)
                if not piece:
                    self.ended = True
                    break
                pieces.append(piece)
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        except OSError:
            self.ended = True
        answers = self._read(b"".join(pieces))
        if self.ended:
            answers += [self._answer(stream) for stream in list(self._streams)]
        self.flush()
        return answers

    def close(self) -> None:
        self.socket.close()

    def _put(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._out += len(payload).to_bytes(3, "big") + bytes((kind, flags))
        self._out += stream.to_bytes(4, "big") + payload

    def _pump(self, number: int) -> None:
        """Write of a request what windows allow."""
        stream = self._streams.get(number)
        while stream is not None and stream.rest:
            size = min(len(stream.rest), stream.window, self.window, self._frame)
            if size <= 0:
                self._blocked.append(number)
                return
            part, stream.rest = stream.rest[:size], stream.rest[size:]
            stream.window -= size
            self.window -= size
            self._put(_DATA, 0 if stream.rest else _END_STREAM, number, part)

    def _read(self, data: bytes) -> list[Answer]:
        answers: list[Answer] = []
        place = 0
        while len(data) - place >= 9:
            size = int.from_bytes(data[place : place + 3], "big")
            end = place + 9 + size
            if end > len(data):
                break
            kind, flags = data[place + 3], data[place + 4]
            stream = int.from_bytes(data[place + 5 : place + 9], "big") & _LARGEST_WINDOW
            self._take(kind, flags, stream, data[place + 9 : end], answers)
            place = end
        self._unread = data[place:]
        return answers

    def _take(
        self, kind: int, flags: int, number: int, payload: bytes, answers: list[Answer]
    ) -> None:
        stream = self._streams.get(number)
        if kind == _DATA and stream is not None:
            stream.body += payload
            self._consumed += len(payload)
            if self._consumed > 1 << 24:
                self._put(_WINDOW, 0, 0, struct.pack(">I", self._consumed))
                self._consumed = 0
        elif kind == _HEADERS and stream is not None:
            status, pushback = _number(payload, _STATUS), _number(payload, _PUSHBACK)
            if status is not None:
                stream.status = status
            if pushback is not None:
                stream.pushback = pushback / 1_000
        elif kind == _RESET and stream is not None:
            if int.from_bytes(payload, "big") != _REFUSED_STREAM or self.leaving:
                answers.append(self._answer(number))
                return
            # Nobody has looked at it: a new connection was asked too much at once.
            del self._streams[number]
            self.send(stream.number, stream.message, stream.began)
        elif kind == _SETTINGS and not flags & _ACK:
            self._settle(payload)
        elif kind == _PING and not flags & _ACK:
            self._put(_PING, _ACK, 0, payload)
        elif kind == _GOAWAY:
            self.leaving = True
        elif kind == _WINDOW:
            self._widen(stream if number else self, int.from_bytes(payload, "big"))
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM and stream is not None:
            answers.append(self._answer(number))

    def _settle(self, payload: bytes) -> None:
        for place in range(0, len(payload), 6):
            name, value = struct.unpack_from(">HI", payload, place)
            if name == 3:
                self._most = value
            elif name == 4:
                for stream in self._streams.values():
                    stream.window += value - self._first_window
                self._first_window = value
            elif name == 5:
                self._frame = value
        self._put(_SETTINGS, _ACK, 0, b"")
        self._unblock()

    def _widen(self, what: "_Stream | _Connection | None", more: int) -> None:
        if what is not None:
            what.window += more
            self._unblock()

    def _unblock(self) -> None:
        for _ in range(len(self._blocked)):
            self._pump(self._blocked.popleft())

    def _answer(self, number: int) -> Answer:
        stream = self._streams.pop(number)
        seconds = time.perf_counter() - stream.began
        return Answer(
            stream.number, stream.status, stream.body[5:], seconds, stream.pushback, number
        )


class Stalls:
    """A connection of requests that are begun and never sent whole; a context manager."""

    def __init__(self, address: str, path: str, authority: bytes | None) -> None:
        self._connection = _Connection(address, path, authority)
        self._ended = 0

    def begin(self, count: int, begun: bytes, *, end: bool = False) -> None:
        """Begin so many, each with its first bytes; with `end` there are no others."""
        for _ in range(count):
            self._connection.stall(begun, end=end)
        self._write()

    def cancel(self) -> None:
        """Cancel all of them."""
        self._connection.cancel()
        self._write()

    def ended(self) -> int:
        """How many the server has given up by now."""
        self._ended += len(self._connection.receive())
        return self._ended

    def _write(self) -> None:
        while self._connection.full:
            self._connection.flush()

    def __enter__(self) -> "Stalls":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _request_headers(path: str, *, tls: bool) -> bytes:
    """In HPACK (RFC 7541), by its table of usual ones, and literally."""

    def literal(name: bytes, value: bytes) -> bytes:
        return name + bytes((len(value),)) + value

    return b"".join(
        (
            b"\x83",  # :method POST
            b"\x87" if tls else b"\x86",  # :scheme
            literal(b"\x04", path.encode()),
            literal(b"\x01", b"localhost"),
            literal(b"\x0f\x10", b"application/grpc"),
            literal(b"\x00\x02te", b"trailers"),
        )
    )


def _number(headers: bytes, name: bytes) -> int | None:
    """What a header says that is a number; None: it is not among these."""
    place = headers.find(name)
    if place < 0:
        return None
    place += len(name)
    size = headers[place]
    return int(headers[place + 1 : place + 1 + size])


def _write(ends: Iterable[_Connection], selector: selectors.BaseSelector) -> None:
    for end in ends:
        end.flush()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if end.full else 0)
        selector.modify(end.socket, wanted, end)


def flood(
    address: str,
    path: str,
    requests: Iterable[bytes],
    *,
    authority: bytes | None = None,
    connections: int = 1,
    in_flight: int = 64,
    rate: float | None = None,
) -> Iterator[Answer]:
    """Send serialised requests, so many at once, and give the answers as they come.

    `rate`: so many a second, whether or not the others are answered; at once are then at most as
    many as the connections have room for. One that is late counts from when it was to be sent.
    `authority`: the certificate authority, PEM, of a server called localhost; None: no TLS. A
    connection that ends is not opened again: what was on it is LOST, and when the last ends, so
    is the rest.
    """
    ends = [_Connection(address, path, authority) for _ in range(connections)]
    waiting = iter(enumerate(requests))
    more = True
    most = in_flight if rate is None else sys.maxsize
    first = time.perf_counter()
    sent = 0
    with selectors.DefaultSelector() as selector:
        try:
            for end in ends:
                selector.register(end.socket, selectors.EVENT_READ, end)
            while True:
                at_once = sum(end.waiting for end in ends)
                due = None
                while more and at_once < most:
                    if rate is not None:
                        due = first + sent / rate
                        if due > time.perf_counter():
                            break
                    free = [end for end in ends if end.free]
                    if not free:
                        break
                    try:
                        number, message = next(waiting)
                    except StopIteration:
                        more = False
                        break
                    min(free, key=lambda end: end.waiting).send(number, message, due)
                    at_once += 1
                    sent += 1
                _write(ends, selector)
                if not at_once and (not more or all(end.ended or end.leaving for end in ends)):
                    break
                pause = 1.0 if due is None or not more else due - time.perf_counter()
                # What is late waits for room, which only an answer makes.
                for key, _ in selector.select(1.0 if pause <= 0 else min(pause, 1.0)):
                    yield from key.data.receive()
        finally:
            for end in ends:
                end.close()
    for number, _ in waiting:
        yield Answer(number, LOST, b"", 0.0)
