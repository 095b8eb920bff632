"""The login file: each mistake in it has its own sentence, and none lets everybody in."""

import os
from pathlib import Path

import pytest

from hubbub_aggregator.mistakes import Mistake
from hubbub_dashboard.access.login_file import read_login
from tests.dashboard.logins import write_login

BACK = "http://localhost:8501/oauth2callback"
READERS = ["Ana@Example.org", "kim@example.org", "@lab.example"]


def test_a_file_as_it_should_be(tmp_path: Path) -> None:
    path = write_login(tmp_path / "login.toml", BACK, readers=READERS)
    login = read_login(path)
    assert login.auth["redirect_uri"] == BACK
    assert not login.trust_addresses
    assert "known-to" not in repr(login)
    assert login.auth["cookie_secret"] not in repr(login)
    for reader in ("ana@example.org", "ANA@example.org", "eve@lab.example", "a@b@lab.example"):
        assert login.admits(reader)
    for stranger in (
        "",
        "eve@example.org",
        "ana@example.org.evil.example",
        "eve@sub.lab.example",
        "eve@lab.example@evil.example",
        "lab.example",
        "@",
        # KELVIN SIGN, whose small letter is k.
        "\u212aim@example.org",
    ):
        assert not login.admits(stranger)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[auth]", "[oauth]", r"no table \[auth\]"),
        ("[hubbub]", "[readers]", r"no table \[hubbub\]"),
        ("redirect_uri", "redirect", "needs redirect_uri"),
        ("cookie_secret", "secret", "needs cookie_secret"),
        ("client_id", "client", "needs client_id"),
        ("client_secret", "client_key", "needs client_secret"),
        ("server_metadata_url", "metadata", "needs server_metadata_url"),
        ('client_id = "hubbub-page"', 'client_id = ""', "needs client_id"),
        ('client_id = "hubbub-page"', "client_id = 7", "needs client_id"),
        ("[hubbub]", 'expose_tokens = "id"\n[hubbub]', "means nothing here"),
        ("cookie_secret = ", 'cookie_secret = "short" # ', "32 characters or more"),
        ("cookie_secret = ", f'cookie_secret = "{" " * 40}" # ', "needs cookie_secret"),
        ("cookie_secret = ", f'cookie_secret = "{"a" * 40}" # ', "and be random"),
        ("cookie_secret = ", f'cookie_secret = "{"abcd" * 10}" # ', "and be random"),
        ('client_secret = "', 'client_secret = " " # ', "needs client_secret"),
        ("openid-configuration", "jwks", "must end with"),
        ("https://accounts", "http://accounts", "in plaintext"),
        ("readers", "reader", "whoever has an account with the provider"),
        ('["ana@example.org"]', "[]", "whoever has an account with the provider"),
        ('["ana@example.org"]', '"ana@example.org"', "whoever has an account with the provider"),
        ('"ana@example.org"', '"*"', "not '[*]'"),
        ('"ana@example.org"', '"@"', "not '@'"),
        ('"ana@example.org"', '"example.org"', "not 'example.org'"),
        ('"ana@example.org"', "1", "not 1"),
        ("[hubbub]", '[hubbub]\ntrust_addresses = "yes"', "true or false"),
        ("[hubbub]", "[hubbub]\nreader = 1", "means nothing here"),
        ("[hubbub]", "[hubbub", "is not TOML"),
        ("[hubbub]", "[hubbub]\nx = '\ud800'", "is not TOML"),
        ("[hubbub]", f"[hubbub]\nx = {'[' * 5_000}{']' * 5_000}", "too deeply"),
        ("[hubbub]", f"[hubbub]\nx = {'{a=' * 5_000}1{'}' * 5_000}", "too deeply"),
    ],
)
def test_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = write_login(tmp_path / "login.toml", BACK)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8", "surrogatepass")
    with pytest.raises(Mistake, match=said):
        read_login(path)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o620, 0o602])
def test_a_file_that_others_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_login(tmp_path / "login.toml", BACK)
    path.chmod(mode)
    with pytest.raises(Mistake, match="chmod 600"):
        read_login(path)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path in (pipe, tmp_path, Path(os.devnull), Path("/dev/zero")):
        with pytest.raises(Mistake, match=r"is not a file|Is a directory"):
            read_login(path)


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    path = write_login(tmp_path / "login.toml", BACK)
    # A hole: it takes no room on the disk, and would take it in memory.
    os.truncate(path, 100 << 30)
    with pytest.raises(Mistake, match="more than 64 KiB"):
        read_login(path)


def test_a_thousand_readers_fit(tmp_path: Path) -> None:
    readers = [f"reader-{number}@department.example.org" for number in range(1_000)]
    assert len(read_login(write_login(tmp_path / "login.toml", BACK, readers=readers)).readers) == (
        1_000
    )


def test_a_group_may_read_it(tmp_path: Path) -> None:
    path = write_login(tmp_path / "login.toml", BACK)
    path.chmod(0o640)
    assert read_login(path).readers
