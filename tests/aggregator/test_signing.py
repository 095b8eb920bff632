"""From metrics.toml to a bundle: what is signed, what stays, what is refused."""

from pathlib import Path

import pytest

from hubbub.contract import Bundle
from hubbub.errors import InvalidContract, PrivacyNotProved
from hubbub.schedule import Once, Periodic
from hubbub_aggregator.definitions import DefinitionError, read_definitions
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
        (16, "1", "optimised-unary"),
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


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ("How do you rate", "How would you rate", "question"),
        ('source = "health"', 'source = "sport"', "source"),
        ('"good"', '"fine"', "domain"),
        ('epsilon = "1"', 'epsilon = "2"', "epsilon"),
        ('"poor"]', '"poor"]\nmechanism = "optimised-unary"', "optimised_unary"),
        ('"poor"]', '"poor"]\nschedule = { every = "1d", rounds = 2 }', "schedule"),
        ('"poor"]', '"poor"]\nabsent = "none"', "domain"),
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
        ('epsilon = "1"', "epsilon = true", DefinitionError, "epsilon"),
        ("health.self_rated", "Health", InvalidContract, "name"),
        ('"excellent", "good", "fair", "poor"', '"one"', InvalidContract, "2 to 65,536"),
        ('"excellent", "good"', '"good", "good"', InvalidContract, "twice"),
        ('"good"', '"a\\nb"', InvalidContract, "printable"),
        ('"good"', "1", DefinitionError, "values"),
        ('source = "health"', "", DefinitionError, "source: is missing"),
        ('source = "health"', 'sauce = "health"', DefinitionError, "is missing"),
        ('"poor"]', '"poor"]\ncolour = "red"', DefinitionError, "colour: is not a key"),
        ('"poor"]', '"poor"]\nschedule = "daily"', DefinitionError, "schedule"),
        (
            '"poor"]',
            '"poor"]\nschedule = { every = "1y", rounds = 1 }',
            DefinitionError,
            "duration",
        ),
        ('"poor"]', '"poor"]\nschedule = { every = "1d" }', DefinitionError, "rounds: is missing"),
        ('"poor"]', '"poor"]\nschedule = { every = "1d", rounds = 0 }', InvalidContract, "rounds"),
        ('"poor"]', '"poor"]\nschedule = { ends = "2030-01-01" }', DefinitionError, "time zone"),
        (
            '"poor"]',
            '"poor"]\nschedule = { ends = "1999-01-01T00:00:00Z" }',
            InvalidContract,
            "end",
        ),
        ('"poor"]', '"poor"]\nother = "good"', InvalidContract, "twice"),
        ('"poor"]', '"poor"]\nmechanism = "magic"', DefinitionError, "mechanism"),
        ("[[metric]]", "[metric]", DefinitionError, "metric"),
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


def test_two_metrics_of_one_name_are_refused(operator: Operator, tmp_path: Path) -> None:
    with pytest.raises(InvalidContract, match="twice"):
        signed(operator, tmp_path, METRIC * 2)
