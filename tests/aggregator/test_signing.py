"""From metrics.toml to a bundle: what is signed, what stays, what is refused."""

from pathlib import Path

import pytest

from hubbub.bundle import Bundle
from hubbub.errors import InvalidContract, PrivacyNotProved
from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.schedule import Once, Periodic
from hubbub_aggregator.app import app
from hubbub_aggregator.definitions import DefinitionError, read_definitions
from hubbub_aggregator.planning.choice import Aim, best
from hubbub_aggregator.signing import ChangedDefinition, sign_definitions
from tests.bundles import Operator

NOW = 1_800_000_000
METRIC = """
[[metric]]
name = "health.self_rated"
question = "How do you rate your own health?"
source = "health"
values = ["excellent", "good", "fair", "poor"]
epsilon = "1"
"""
UNARY = f'{METRIC.replace("self_rated", "unary")}mechanism = "optimised-unary"\n'


def signed(
    operator: Operator, folder: Path, text: str, previous: Bundle | None = None, now: int = NOW
) -> Bundle:
    path = folder / "metrics.toml"
    path.write_text(text, encoding="utf-8")
    data = sign_definitions(
        read_definitions(path),
        operator=operator.signing_key,
        sealing_keys=operator.sealing_keys,
        certificate_authority=b"PEM",
        previous=previous,
        now=now,
    )
    return Bundle.verify(data, operator_key=operator.key)


def test_the_defaults(operator: Operator, tmp_path: Path) -> None:
    bundle = signed(operator, tmp_path, METRIC)
    metric = bundle.metrics["health.self_rated"]
    assert (bundle.revision, bundle.endpoint) == (1, "localhost:7443")
    assert metric.schedule == Once(NOW, None)
    assert metric.mechanism.name == "randomised-response"
    assert [key.key_id for key in bundle.sealing_keys] == [
        key.key_id for key in operator.sealing_keys
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('"once"', Once(NOW, None)),
        ('{ ends = "2030-01-01T00:00:00Z" }', Once(NOW, 1_893_456_000)),
        ("{ starts = 2026-12-01T01:00:00+01:00 }", Once(1_796_083_200, None)),
        ('{ every = "1d", rounds = 8 }', Periodic(NOW, 86_400, 8, 86_400)),
        ('{ every = "90s", rounds = 2, grace = 0 }', Periodic(NOW, 90, 2, 0)),
        ('{ every = 60, rounds = 1, grace = "2h" }', Periodic(NOW, 60, 1, 7_200)),
    ],
)
def test_schedules(operator: Operator, tmp_path: Path, written: str, expected: object) -> None:
    bundle = signed(operator, tmp_path, f"{METRIC}schedule = {written}\n")
    assert bundle.metrics["health.self_rated"].schedule == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [('"1"', "1"), ("1", "1"), ("0.10", "0.1"), ('"0.50"', "0.5"), ('"ln3"', "ln 3"), ("8", "8")],
)
def test_epsilon_is_exact_however_it_is_written(
    operator: Operator, tmp_path: Path, written: str, expected: str
) -> None:
    text = METRIC.replace('epsilon = "1"', f"epsilon = {written}")
    assert signed(operator, tmp_path, text).metrics["health.self_rated"].epsilon.text == expected


def test_other_and_absent_follow_the_values(operator: Operator, tmp_path: Path) -> None:
    text = f'{METRIC}other = "something else"\nabsent = "no answer"\n'
    domain = signed(operator, tmp_path, text).metrics["health.self_rated"].domain
    assert domain.labels[-2:] == ("something else", "no answer")
    assert (domain.k, domain.other, domain.absent) == (6, 4, 5)


@pytest.mark.parametrize(
    ("k", "epsilon", "expected"),
    [
        (2, "1", "randomised-response"),
        (16, "1", "subset-selection"),
        (16, "4", "randomised-response"),
    ],
)
def test_auto_takes_the_smallest_variance(
    operator: Operator, tmp_path: Path, k: int, epsilon: str, expected: str
) -> None:
    values = ", ".join(f'"{value}"' for value in range(k))
    text = METRIC.replace('"excellent", "good", "fair", "poor"', values)
    text = text.replace('epsilon = "1"', f'epsilon = "{epsilon}"')
    metric = signed(operator, tmp_path, text).metrics["health.self_rated"]
    assert metric.mechanism.name == expected


WIDE = METRIC.replace(
    '"excellent", "good", "fair", "poor"', ", ".join(f'"{value}"' for value in range(300))
)


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        (WIDE, "subset-selection", 38),
        (f"{WIDE}max_payload_bytes = 8\n", "local-hashing", 7),
        (f"{WIDE}max_payload_bytes = 2\n", "projective-geometry", 2),
        (f'{WIDE}max_payload_bytes = 7\nmechanism = "local-hashing"\n', "local-hashing", 7),
    ],
)
def test_a_payload_limit_steers_the_choice(
    operator: Operator, tmp_path: Path, text: str, name: str, size: int
) -> None:
    mechanism = signed(operator, tmp_path, text).metrics["health.self_rated"].mechanism
    assert (mechanism.name, mechanism.payload_size) == (name, size)


@pytest.mark.parametrize("name", ["subset-selection", "projective-geometry", "local-hashing"])
def test_an_expected_share_steers_the_parameters(
    operator: Operator, tmp_path: Path, name: str
) -> None:
    chosen: list[Mechanism] = []
    for share in ("0", "0.30", "1"):
        text = f'{WIDE}mechanism = "{name}"\nexpected_share = {share}\n'
        chosen.append(signed(operator, tmp_path, text).metrics["health.self_rated"].mechanism)
        assert chosen[-1] == best(name, 300, Epsilon.parse("1"), Aim(float(share)))
    assert len(set(chosen)) > 1


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ("max_payload_bytes = 0", DefinitionError, "max_payload_bytes: must be at least 1$"),
        (
            'max_payload_bytes = "8"',
            DefinitionError,
            'max_payload_bytes: must be a whole number, not "8"$',
        ),
        (
            "max_payload_bytes = 1",
            InvalidContract,
            "'health.self_rated': max_payload_bytes: every mechanism's payload has at least "
            "2 bytes here, more than 1; allow more bytes$",
        ),
        (
            'mechanism = "optimised-unary"\nmax_payload_bytes = 37',
            InvalidContract,
            "max_payload_bytes: a payload of optimised-unary has at least 38 bytes",
        ),
        ("expected_share = 1.5", DefinitionError, "expected_share: must be at most 1"),
        ("expected_share = -0.5", DefinitionError, "expected_share: must be at least 0"),
        ("expected_share = nan", DefinitionError, "expected_share: "),
        (
            'expected_share = "20%"',
            DefinitionError,
            'expected_share: must be a number such as 0.2, not "20%"$',
        ),
        (
            'mechanism = "symmetric-unary"\nexpected_share = 0.1',
            InvalidContract,
            "expected_share: steers nothing in symmetric-unary",
        ),
    ],
)
def test_a_faulty_aim_is_refused_with_its_reason(
    operator: Operator, tmp_path: Path, more: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        signed(operator, tmp_path, f"{WIDE}{more}\n")


OPEN = METRIC.replace(
    'values = ["excellent", "good", "fair", "poor"]', "open = true\nretain = true"
)


def test_an_open_domain_is_collected_by_local_hashing(operator: Operator, tmp_path: Path) -> None:
    metric = signed(operator, tmp_path, f'{OPEN}absent = "none"\n').metrics["health.self_rated"]
    assert metric.domain.open
    assert metric.retain
    assert metric.mechanism.name == "local-hashing"
    assert metric.domain.labels == ("none",)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("retain = true\n", "", "retain: must be true for an open domain"),
        ("retain = true", 'retain = true\nmechanism = "subset-selection"', "mechanism: of an open"),
        ("retain = true", 'retain = true\nvalues = ["a", "b"]', "values: are not listed"),
        ("retain = true", 'retain = true\nother = "b"', "values: are not listed"),
        ("retain = true", "retain = true\nmax_payload_bytes = 8", "has at least 23 bytes"),
    ],
)
def test_a_faulty_open_domain_is_refused(
    operator: Operator, tmp_path: Path, before: str, after: str, message: str
) -> None:
    with pytest.raises(InvalidContract, match=message):
        signed(operator, tmp_path, OPEN.replace(before, after))


def test_signing_again_keeps_known_contracts_to_the_byte(
    operator: Operator, tmp_path: Path
) -> None:
    first = signed(operator, tmp_path, METRIC)
    more = METRIC + METRIC.replace("self_rated", "visits")
    second = signed(operator, tmp_path, more, previous=first, now=NOW + 1000)
    assert second.revision == 2
    known, new = second.metrics["health.self_rated"], second.metrics["health.visits"]
    assert known.contract == first.metrics["health.self_rated"].contract
    assert new.schedule == Once(NOW + 1000, None)


def test_auto_never_changes_a_known_mechanism(operator: Operator, tmp_path: Path) -> None:
    chosen = signed(operator, tmp_path, f'{METRIC}mechanism = "symmetric-unary"\n')
    again = signed(operator, tmp_path, METRIC, previous=chosen)
    assert again.metrics["health.self_rated"].contract == (
        chosen.metrics["health.self_rated"].contract
    )


def test_signing_again_keeps_the_parameters_that_were_chosen(
    operator: Operator, tmp_path: Path
) -> None:
    named = f'{WIDE}mechanism = "subset-selection"\n'
    first = signed(operator, tmp_path, f"{named}expected_share = 0.5\n")
    again = signed(operator, tmp_path, named, previous=first)
    known = again.metrics["health.self_rated"]
    assert known.contract == first.metrics["health.self_rated"].contract
    # A limit that it does not keep is another matter.
    with pytest.raises(ChangedDefinition, match="what differs: max_payload_bytes"):
        signed(operator, tmp_path, f"{named}max_payload_bytes = 8\n", previous=first)


def test_auto_says_why_where_it_picks(
    operator: Operator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions, bundle = tmp_path / "metrics.toml", tmp_path / "metrics.hubbub"
    definitions.write_text(
        WIDE + METRIC.replace("self_rated", "named") + UNARY + OPEN.replace("self_rated", "open")
    )
    command = ["sign", str(definitions), "--keys", str(operator.folder), "-o", str(bundle)]
    lines: list[list[str]] = []
    for _ in range(2):
        app(command, standalone_mode=False)
        printed = capsys.readouterr().out.splitlines()
        lines.append([line.strip() for line in printed if line.startswith("    ")])
    assert lines == [
        [
            "auto picks subset-selection: 0.85 % less variance than the next, optimised-unary",
            "size 80, 38 bytes a report",
            "auto picks randomised-response: as accurate as subset-selection, and simpler",
            "1 byte a report",
            "1 byte a report",
            "auto picks local-hashing: the only one for an open domain",
            f"buckets 4, prime {OPEN_PRIME}, 24 bytes a report; reports are kept",
        ],
        [],
    ]


def test_a_metric_that_no_device_answers_to_its_end_is_remarked_on(
    operator: Operator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions, bundle = tmp_path / "metrics.toml", tmp_path / "metrics.hubbub"
    daily = METRIC.replace('"1"', '"0.5"') + 'schedule = {{ every = "1d", rounds = {} }}\n'
    sentence = "has {:,} rounds, but devices stop after 64: ε in all is at most 32 for a source"
    for rounds, told in ((64, False), (1_000, True)):
        definitions.write_text(daily.format(rounds))
        bundle.unlink(missing_ok=True)
        for command in (
            ["sign", str(definitions), "--keys", str(operator.folder), "-o", str(bundle)],
            ["certify", str(bundle)],
        ):
            app(command, standalone_mode=False)
            assert (sentence.format(rounds) in capsys.readouterr().out) == told


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ("How do you rate", "How would you rate", "question"),
        ('source = "health"', 'source = "sport"', "source"),
        ('"good"', '"fine"', "what differs: values"),
        ('epsilon = "1"', 'epsilon = "2"', "epsilon"),
        ('"poor"]', '"poor"]\nmechanism = "optimised-unary"', "what differs: mechanism"),
        ('"poor"]', '"poor"]\nschedule = { every = "1d", rounds = 2 }', "schedule"),
        ('"poor"]', '"poor"]\nabsent = "none"', "what differs: absent"),
        ('"poor"]\nepsilon = "1"', '"sad"]\nepsilon = "2"', "what differs: epsilon, values"),
    ],
)
def test_a_changed_definition_under_a_known_name_is_refused(
    operator: Operator, tmp_path: Path, before: str, after: str, field: str
) -> None:
    first = signed(operator, tmp_path, METRIC)
    with pytest.raises(ChangedDefinition, match=field) as refusal:
        signed(operator, tmp_path, METRIC.replace(before, after), previous=first)
    assert refusal.value.metric == "health.self_rated"


@pytest.mark.parametrize(
    ("before", "after", "error", "message"),
    [
        ('epsilon = "1"', 'epsilon = "9"', PrivacyNotProved, "above 8"),
        ('epsilon = "1"', 'epsilon = "ln 3000"', PrivacyNotProved, "above 8"),
        ('epsilon = "1"', 'epsilon = "999999"', InvalidContract, "at most 128"),
        ('epsilon = "1"', 'epsilon = "0"', InvalidContract, "positive"),
        ('epsilon = "1"', 'epsilon = "e"', InvalidContract, "decimal text"),
        ('epsilon = "1"', "epsilon = inf", InvalidContract, "decimal text"),
        ('epsilon = "1"', "epsilon = 1e-30", InvalidContract, "decimal text"),
        ('epsilon = "1"', "epsilon = true", DefinitionError, "epsilon: must be a number or text"),
        ("health.self_rated", "Health", InvalidContract, "name"),
        ('"excellent", "good", "fair", "poor"', '"one"', InvalidContract, "2 to 65,536"),
        ('"excellent", "good"', '"good", "good"', InvalidContract, "twice"),
        ('"good"', '"a\\nb"', InvalidContract, "printable"),
        ('"good"', '"\u3164"', InvalidContract, "printable"),
        ('"good"', '"\u2800"', InvalidContract, "printable"),
        ('"good"', '"\u115f\u1160\uffa0"', InvalidContract, "printable"),
        ('"good"', "1", DefinitionError, "values: number 2: must be text, in quotes$"),
        ('"poor"]', '"poor"]\nretain = "yes"', DefinitionError, "retain: must be true or false$"),
        (
            'values = ["excellent", "good", "fair", "poor"]',
            'values = "good"',
            DefinitionError,
            r'values: must be a list such as \["a", "b"\]$',
        ),
        ('source = "health"', "", DefinitionError, "source: is missing"),
        ('source = "health"', 'sauce = "health"', DefinitionError, "sauce: is not a key here"),
        ('"poor"]', '"poor"]\ncolour = "red"', DefinitionError, "colour: is not a key.*: name, qu"),
        ('"poor"]', '"poor"]\nonce = true', DefinitionError, "once: is not a key"),
        ('"poor"]', '"poor"]\nschedule = { end = 1 }', DefinitionError, "end: .*: starts, ends$"),
        ("[[metric]]", "port = 1\n[[metric]]", DefinitionError, "port: .*: endpoint, metric$"),
        (
            '"poor"]',
            '"poor"]\nschedule = "daily"',
            DefinitionError,
            'must be "once" or a table such as { every = "1d", rounds = 8 }',
        ),
        (
            '"poor"]',
            '"poor"]\nschedule = { every = "1y", rounds = 1 }',
            DefinitionError,
            "duration",
        ),
        ('"poor"]', '"poor"]\nschedule = { every = "1d" }', DefinitionError, "rounds: is missing"),
        (
            '"poor"]',
            '"poor"]\nschedule = { every = "1d", rounds = 0 }',
            DefinitionError,
            "at least 1$",
        ),
        ('"poor"]', '"poor"]\nschedule = { ends = "2030-01-01" }', DefinitionError, "time zone"),
        (
            '"poor"]',
            '"poor"]\nschedule = { ends = "1999-01-01T00:00:00Z" }',
            InvalidContract,
            "end",
        ),
        ('"poor"]', '"poor"]\nother = "good"', InvalidContract, "twice"),
        (
            '"poor"]',
            '"poor"]\nmechanism = "magic"',
            DefinitionError,
            "mechanism: must be 'auto', .* or 'memoised-local-hashing'$",
        ),
        ("[[metric]]", "[metric]", DefinitionError, r"metric: write \[\[metric\]\]"),
        ("[[metric]]", "metric = []\n[other]", DefinitionError, "other: is not a key here"),
        (
            "[[metric]]",
            "[[metrics]]",
            DefinitionError,
            "metrics: is not a key .*: endpoint, metric",
        ),
        ("[[metric]]", 'endpoint = "nowhere"\n[[metric]]', Exception, "host:port"),
        ("name =", "name", DefinitionError, "not TOML"),
    ],
)
def test_a_faulty_definition_is_refused_with_its_reason(
    operator: Operator,
    tmp_path: Path,
    *,
    before: str,
    after: str,
    error: type[Exception],
    message: str,
) -> None:
    assert before in METRIC
    with pytest.raises(error, match=message):
        signed(operator, tmp_path, METRIC.replace(before, after))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (f"{{ every = 60, rounds = {10**22} }}", "rounds: must be at most 9,223,"),
        ("{ every = 60, rounds = -1 }", "rounds: must be at least 1$"),
        (f"{{ every = {10**19}, rounds = 1 }}", "every: must be at most 9,223,"),
        (f"{{ every = 60, rounds = 1, grace = {10**19} }}", "grace: must be at most 9,223,"),
        (f"{{ every = 60, rounds = 1, grace = {2**63 - 1} }}", "too far in the future"),
        ("{ starts = 0001-01-01T00:00:00+14:00 }", "starts: must not be before 1970"),
        ('{ starts = "9999-12-31T23:59:59-14:00" }', "too far in the future"),
        ("[" * 3_000 + "]" * 3_000, "nested too deeply"),
    ],
    ids=lambda text: text[:40],
)
def test_a_schedule_beyond_all_bounds_is_refused(
    operator: Operator, tmp_path: Path, written: str, message: str
) -> None:
    with pytest.raises((DefinitionError, InvalidContract), match=message):
        signed(operator, tmp_path, f"{METRIC}schedule = {written}\n")


@pytest.mark.parametrize(
    "written",
    ["9" * 5_000, f'"{"9" * 5_000}"', "0x" + "f" * 5_000, "1e999999999", f"1e{10**25}", "9e-9999"],
    ids=lambda text: text[:20],
)
def test_an_epsilon_beyond_all_bounds_is_refused(
    operator: Operator, tmp_path: Path, written: str
) -> None:
    with pytest.raises((DefinitionError, InvalidContract), match=r"too many digits|decimal text"):
        signed(operator, tmp_path, METRIC.replace('"1"', written))


@pytest.mark.parametrize(
    "written",
    [f"name.{'a.' * 3_000}a = 1", f"name = 0x{'f' * 5_000}", f"retain = 0x{'f' * 5_000}"],
    ids=lambda text: text[:20],
)
def test_a_value_that_cannot_be_shown_is_refused(tmp_path: Path, written: str) -> None:
    """Found by fuzzing: to show what is wrong raised something else."""
    path = tmp_path / "metrics.toml"
    path.write_text(f"[[metric]]\n{written}\n")
    with pytest.raises(DefinitionError, match=r"must be (text|true or false)|is missing"):
        read_definitions(path)


@pytest.mark.parametrize("written", ['"\\u001b[2J" = 1', 'mechanism = 1\nretain = "\\u202e"'])
def test_a_refusal_does_not_steer_the_terminal(tmp_path: Path, written: str) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(f"{METRIC}{written}\n")
    with pytest.raises(DefinitionError) as raised:
        read_definitions(path)
    assert str(raised.value).isprintable()


def test_two_metrics_of_one_name_are_refused(operator: Operator, tmp_path: Path) -> None:
    with pytest.raises(InvalidContract, match="twice"):
        signed(operator, tmp_path, METRIC * 2)
