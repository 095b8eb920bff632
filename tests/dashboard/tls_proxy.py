"""A reverse proxy that ends TLS, as small as one can be: bytes go to the page and back as they are.

So each request keeps its Host, and a web socket is a connection like any other.
"""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import cast


class TlsProxy(ThreadingTCPServer):
    """Listens at once; goes on to whatever `target` is when somebody comes."""

    daemon_threads = True

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.target = 0

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def tls_proxy(certificate: Path, key: Path) -> Iterator[TlsProxy]:
    """A proxy that relays."""
    with TlsProxy(certificate, key) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class _Relay(BaseRequestHandler):
    def handle(self) -> None:
        proxy = cast("TlsProxy", self.server)
        where = ("127.0.0.1", proxy.target)
        # A browser hangs up when it likes, and asks when the page is gone.
        with (
            suppress(OSError),
            closing(proxy.context.wrap_socket(self.request, server_side=True)) as outside,
            closing(socket.create_connection(where)) as inside,
        ):
            back = threading.Thread(target=_pour, args=(inside, outside), daemon=True)
            back.start()
            _pour(outside, inside)
            back.join()


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
