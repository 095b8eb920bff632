"""After signing in, back to the link that one came by: Streamlit would lead to the page's start."""

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from hubbub_dashboard.access.login_file import CALLBACK

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOGIN: Final = "/auth/login"
_COOKIE: Final = "hubbub_way_back"
# Seconds that somebody may take to sign in.
_PATIENCE: Final = 600
_LONGEST: Final = 2_000
# A path of this page: "//" and "/\" would lead elsewhere.
_PATH: Final = re.compile(r"/(?:[^/\\\s][^\\\s]*)?")


def way_back(referer: str, host: str, base: str) -> str | None:
    """Return the path and query that somebody looked at, if it was one of this page's."""
    try:
        parts = urlsplit(referer)
    except ValueError:
        return None
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    if parts.netloc != host or len(path) > _LONGEST:
        return None
    return _of_this_page(path, base)


def _of_this_page(path: str, base: str) -> str | None:
    return path if path.startswith(f"{base}/") and _PATH.fullmatch(path) else None


class WayBack:
    """An ASGI application around the page's: remembers a link while its visitor signs in."""

    def __init__(self, app: "ASGIApp", *, base: str) -> None:
        self._app = app
        self._base = base

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Note the link on the way out to the provider, and follow it on the way back."""
        answer = send
        if scope["type"] == "http":
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            if scope["path"] == f"{self._base}{_LOGIN}":
                path = way_back(headers.get(b"referer", ""), headers.get(b"host", ""), self._base)
                answer = self._noting(send, path)
            elif scope["path"] == f"{self._base}{CALLBACK}":
                noted = re.search(rf"(?:^|; ){_COOKIE}=([^;]*)", headers.get(b"cookie", ""))
                answer = self._following(send, unquote(noted[1]) if noted else "")
        await self._app(scope, receive, answer)

    def _noting(self, send: "Send", path: str | None) -> "Send":
        async def noting(message: "Message") -> None:
            if message["type"] == "http.response.start" and path is not None:
                cookie = self._cookie(quote(path, safe=""), _PATIENCE)
                message = {**message, "headers": [*message["headers"], cookie]}
            await send(message)

        return noting

    def _following(self, send: "Send", noted: str) -> "Send":
        path = _of_this_page(noted, self._base)

        async def following(message: "Message") -> None:
            if message["type"] == "http.response.start" and path is not None:
                kept = [(name, value) for name, value in message["headers"] if name != b"location"]
                there = (b"location", quote(path, safe="/?&=%+").encode())
                message = {**message, "headers": [*kept, there, self._cookie("", 0)]}
            await send(message)

        return following

    def _cookie(self, value: str, seconds: int) -> tuple[bytes, bytes]:
        text = (
            f"{_COOKIE}={value}; Path={self._base or '/'}; Max-Age={seconds}; HttpOnly; "
            f"SameSite=Lax"
        )
        return b"set-cookie", text.encode("latin-1")
