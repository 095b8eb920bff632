"""A small OpenID Connect provider: real discovery, codes, keys and signatures, made-up people."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, cast
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.dashboard.logins import CLIENT_ID, CLIENT_SECRET


class Provider(ThreadingHTTPServer):
    """Signs in whoever clicks on a name; `people` are the claims about each."""

    daemon_threads = True

    def __init__(self, people: Mapping[str, Mapping[str, object]]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.people = people
        self.key = RSAKey.generate_key(2048, parameters={"kid": "1", "use": "sig", "alg": "RS256"})
        self.codes: dict[str, dict[str, str]] = {}
        """What each code that was not exchanged yet stands for."""
        self.issued = time.time
        """When a sign-in is said to have been."""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def id_token(self, asked: Mapping[str, str]) -> str:
        now = int(self.issued())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": asked["person"],
            "iat": now,
            "exp": int(time.time()) + 3_600,
            "nonce": asked["nonce"],
            **self.people[asked["person"]],
        }
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)


@contextmanager
def provider(people: Mapping[str, Mapping[str, object]]) -> Iterator[Provider]:
    """A provider that answers."""
    with Provider(people) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    _pages: ClassVar = {
        "/.well-known/openid-configuration": "_configuration",
        "/jwks": "_keys",
        "/authorize": "_choose",
        "/signed-in": "_send_back",
        "/end": "_end",
    }

    @property
    def _provider(self) -> Provider:
        return cast("Provider", self.server)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        getattr(self, self._pages.get(parts.path, "_missing"))(asked)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        known = self._provider.codes.pop(asked.get("code", ""), None)
        if known is None or not self._right_client(asked) or not _proved(known, asked):
            self._json({"error": "invalid_grant"}, status=400)
            return
        self._json(
            {
                "access_token": secrets.token_hex(),
                "token_type": "Bearer",
                "expires_in": 3_600,
                "id_token": self._provider.id_token(known),
            }
        )

    def _right_client(self, asked: Mapping[str, str]) -> bool:
        scheme, _, given = self.headers.get("authorization", "").partition(" ")
        pair = base64.b64decode(given).decode() if scheme == "Basic" else ""
        posted = f"{asked.get('client_id')}:{asked.get('client_secret')}"
        return f"{CLIENT_ID}:{CLIENT_SECRET}" in (pair, posted)

    def _configuration(self, _: Mapping[str, str]) -> None:
        issuer = self._provider.issuer
        self._json(
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "jwks_uri": f"{issuer}/jwks",
                "end_session_endpoint": f"{issuer}/end",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    def _keys(self, _: Mapping[str, str]) -> None:
        self._json({"keys": [self._provider.key.as_dict(private=False)]})

    def _choose(self, asked: Mapping[str, str]) -> None:
        links = "".join(
            f'<li><a href="/signed-in?{escape(urlencode({**asked, "person": person}))}">'
            f"{escape(person)}</a></li>"
            for person in self._provider.people
        )
        # The browser asks for no icon where one is given.
        head = '<!doctype html><title>Who?</title><link rel="icon" href="data:,">'
        self._reply(200, f"{head}<ul>{links}</ul>", "text/html")

    def _send_back(self, asked: Mapping[str, str]) -> None:
        code = secrets.token_hex()
        self._provider.codes[code] = dict(asked)
        self._redirect(asked["redirect_uri"], {"code": code, "state": asked["state"]})

    def _end(self, asked: Mapping[str, str]) -> None:
        self._redirect(asked["post_logout_redirect_uri"], {})

    def _missing(self, _: Mapping[str, str]) -> None:
        self._reply(404, "", "text/plain")

    def _redirect(self, where: str, query: Mapping[str, str]) -> None:
        self.send_response(302)
        self.send_header("location", f"{where}?{urlencode(query)}" if query else where)
        self.send_header("content-length", "0")
        self.end_headers()

    def _json(self, answer: Mapping[str, Any], *, status: int = 200) -> None:
        self._reply(status, json.dumps(answer), "application/json")

    def _reply(self, status: int, body: str, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing: the tests look at what the page does."""


def _proved(known: Mapping[str, str], asked: Mapping[str, str]) -> bool:
    """Whether a code comes back from whom it was for (RFC 7636)."""
    digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    same = asked.get("redirect_uri") == known["redirect_uri"]
    return same and challenge == known.get("code_challenge")
