"""Login files, as an operator writes them."""

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

CLIENT_ID = "hubbub-page"
CLIENT_SECRET = "known-to-the-page-and-the-provider"  # noqa: S105
ISSUER = "https://accounts.example.org"


def write_login(
    path: Path,
    redirect_uri: str,
    *,
    issuer: str = ISSUER,
    readers: Sequence[str] = ("ana@example.org",),
    more: str = "",
) -> Path:
    """Write a file that only its owner may read."""
    auth = {
        "redirect_uri": redirect_uri,
        "cookie_secret": secrets.token_hex(),
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "server_metadata_url": f"{issuer}/.well-known/openid-configuration",
    }
    lines = [
        "[auth]",
        *(f"{key} = {json.dumps(value)}" for key, value in auth.items()),
        "[hubbub]",
        f"readers = {json.dumps(list(readers))}",
        more,
    ]
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path
