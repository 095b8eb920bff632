"""Settings: hubbub.toml and the environment are read, or refused by a SettingsError.

An input is the bytes of hubbub.toml, then, each after a zero byte, variables as NAME=value. The
names get their prefix here.
"""

import os
from unittest import mock

from hubbub_aggregator.settings import PREFIX, SettingsError, load_settings
from tests.fuzz import scratch
from tests.fuzz.chance import Chance

LONGEST = 8_192
_TOKENS = (
    *("listen = ", "private_listen = ", "private_tls = ", "store = ", "keys = ", "threads = "),
    *("publish.step = ", "publish = {step = 1}", "[publish]\n", "step = ", '"""', "'", "[[", "]"),
    *('"[::]:7443"', '"localhost:65536"', '"a:1"', "true", "1e400", "nan", "-1", "0x_1", "1_000"),
    *("9" * 5_000, "0x" + "f" * 5_000, "[" * 500, "{a=" * 200, "a." * 300, "1979-05-27T07:32:00Z"),
    *("\0LISTEN=a:1", "\0PUBLISH=", "\0PUBLISH__STEP=", '\0PUBLISH={"step": 5}', "\0THREADS="),
    *("\0KEYS=", "\0PRIVATE_TLS=yes", "\0STORE=sqlite://", "\0publish__step=3", "\\ud800", "\r\n"),
)


def execute(data: bytes, *, thorough: bool = True) -> None:
    text, *variables = data.split(b"\0")
    environment = dict(_variable(variable) for variable in variables if variable)
    # As it comes from the system: what is no UTF-8 is no text, but is there.
    path = scratch.folder() / "hubbub.toml"
    path.write_bytes(text)
    with mock.patch.dict(os.environ, environment):
        try:
            settings = load_settings({}, path)
        except SettingsError as refusal:
            assert str(refusal)
            return
    assert 1 <= settings.threads <= 1_024
    assert settings.publish.step >= 1
    for address in (settings.listen, settings.private_listen):
        assert 0 <= int(address.rpartition(":")[2]) <= 65_535


def _variable(data: bytes) -> tuple[str, str]:
    name, _, value = os.fsdecode(data).partition("=")
    return PREFIX + name, value


def seeds() -> list[bytes]:
    return [
        b"",
        b'listen = "[::]:7443"\nstore = "a.sqlite3"\nthreads = 8\n[publish]\nstep = 10\n',
        b'keys = "keys"\nprivate_tls = true\nprivate_listen = "127.0.0.1:7444"\n',
        b"publish = { step = 10 }\nmisspelt = 3\n\0LISTEN=localhost:1\0THREADS=9",
        b'store = "x"\0PUBLISH__STEP=3\0PRIVATE_TLS=true\0KEYS=folder',
        b'\0PUBLISH={"step": 3}',
    ]


def mutate(data: bytes, chance: Chance) -> bytes:
    if chance.happens(0.3):
        return chance.octets(data)
    return chance.text(data.decode(errors="replace"), _TOKENS).encode(errors="replace")
