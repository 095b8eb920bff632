"""Definitions: the bytes of a metrics.toml are read, or refused by a DefinitionError."""

from hubbub_aggregator.definitions import DefinitionError, read_definitions
from tests.fuzz import scratch
from tests.fuzz.chance import Chance

LONGEST = 8_192
_TOKENS = (
    *(
        "[[metric]]\n",
        "[metric]\n",
        "name = ",
        "question = ",
        "source = ",
        "values = ",
        "epsilon = ",
    ),
    *("open = true\n", "other = ", "absent = ", "retain = ", "mechanism = ", "endpoint = "),
    *("max_payload_bytes = ", "expected_share = ", "schedule = ", '"once"', "permanent = "),
    *("{ every = ", "rounds = ", "starts = ", "grace = ", "ends = ", "join = ", "cells = ", " }"),
    *('"1d"', '"90s"', '"ln 3"', '"a"', '["a", "b"]', "[]", "0.5", "1e999999999", "-0", "nan"),
    *("inf", "1e-400", "9" * 5_000, "0x" + "f" * 5_000, "1." + "0" * 100, "a." * 1_000 + "a = 1"),
    *("[" * 1_000, "{a=" * 300, "2026-12-01T00:00:00Z", "0001-01-01T00:00:00+23:59", '"auto"'),
    *('"9999-12-31T23:59:59-23:59"', "2026-12-01", "07:32:00", '"2026-12-01T00:00:00Z"', "\\ud800"),
    *('"memoised-local-hashing"', '"local-hashing"', "9223372036854775808", '"""', "{", "}"),
)


def execute(data: bytes, *, thorough: bool = True) -> None:
    path = scratch.folder() / "metrics.toml"
    path.write_bytes(data)
    try:
        definitions = read_definitions(path)
    except DefinitionError as refusal:
        # What is wrong, in a sentence that a terminal can show.
        assert str(refusal).startswith(str(path)) or str(path) in str(refusal)
        assert str(refusal).isprintable()
        return
    assert definitions.metric
    for metric in definitions.metric:
        assert isinstance(metric.epsilon, str)
        assert metric.permanent is None or isinstance(metric.permanent, str)


def seeds() -> list[bytes]:
    one = '[[metric]]\nname = "a"\nquestion = "?"\nsource = "s"\n'
    texts = [
        one + 'values = ["a", "b"]\nepsilon = "1"\n',
        one + 'values = ["a", "b"]\nepsilon = 0.5\nother = "o"\nabsent = "n"\nretain = true\n',
        one + 'open = true\nepsilon = "ln 3"\nretain = true\nmechanism = "local-hashing"\n',
        one + 'values = ["a"]\nepsilon = 1\nschedule = "once"\nexpected_share = 0.2\n',
        one + 'epsilon = 1\nschedule = { every = "1d", rounds = 8, grace = 60, join = 3 }\n',
        one + 'epsilon = 1\nschedule = { every = 5, rounds = 8, permanent = "2", cells = 3 }\n',
        one
        + "epsilon = 1\nschedule = { starts = 2026-12-01T00:00:00Z, ends = 2027-12-01T00:00:00Z }",
        'endpoint = "h:1"\n' + one + "epsilon = 1\nmax_payload_bytes = 8\n" + one + "epsilon = 1\n",
    ]
    return [text.encode() for text in texts]


def mutate(data: bytes, chance: Chance) -> bytes:
    if chance.happens(0.2):
        return chance.octets(data)
    return chance.text(data.decode(errors="replace"), _TOKENS).encode(errors="replace")
