"""What of a browser's requests reaches the page at all."""

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from hubbub_dashboard.access.public_address import PublicAddress

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

_POLICY_VIOLATION: Final = 1008

# Streamlit would have pages of its makers' frame this one, and be told what is looked at.
_FRAMES: Final = (b"content-security-policy", b"frame-ancestors 'self'")


def refusal(
    public: PublicAddress | None, host: str, *, origin: str | None, method: str | None
) -> tuple[int, str] | None:
    """Return the status and sentence of a request's refusal, None to let it in.

    `method` is None for a web socket, whose `origin` is None if no browser opens it.
    """
    name = _name(host)
    if name not in LOOPBACK_HOSTS and (public is None or name != public.host):
        # Else a page elsewhere could reach this one by a host name of its own that it points here.
        where = f"at {public}" if public else "on this machine only, as localhost"
        return 421, f"This page is served {where}; another host name was asked for."
    if method is None:
        # Streamlit would let in pages of other ports and, to learn its own address, call out.
        own = name in LOOPBACK_HOSTS and origin in (f"http://{host}", f"https://{host}")
        stated = public is not None and origin == public.origin
        if origin is not None and not own and not stated:
            return 403, "Another page asks for this one."
    elif method not in ("GET", "HEAD"):
        # Streamlit would keep files that anybody uploads, for pages that ask for some.
        return 405, "This page is only read."
    return None


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


class Door:
    """An ASGI application around the page's."""

    def __init__(self, app: "ASGIApp", *, public: PublicAddress | None) -> None:
        self._app = app
        self._public = public

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Let a request in, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        refused = refusal(
            self._public,
            host,
            origin=headers.get(b"origin"),
            method=scope.get("method"),
        )
        if refused is None:
            await self._app(self._as_asked(scope, host), receive, self._hardened(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refused[1]})
        else:
            await _answer(send, *refused)

    def _as_asked(self, scope: "Scope", host: str) -> "Scope":
        """Say that it is https where that ends at the proxy: else redirections leave it."""
        public = self._public
        if public is None or scope["type"] != "http" or _name(host) != public.host:
            return scope
        return {**scope, "scheme": public.scheme}

    def _hardened(self, send: "Send") -> "Send":
        """Keep the page out of others' frames, and cookies out of plaintext if they come by TLS."""
        encrypted = self._public is not None and self._public.secure

        async def hardened(message: "Message") -> None:
            if message["type"] == "http.response.start":
                headers = [
                    _secured(*header) if encrypted else header for header in message["headers"]
                ]
                message = {**message, "headers": [*headers, _FRAMES]}
            await send(message)

        return hardened


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name.lower() == b"set-cookie" and b"; secure" not in value.lower():
        value += b"; Secure"
    return name, value


async def _answer(send: "Send", status: int, sentence: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})
