"""Series in metrics.toml: sampled rounds and memos, what they cost, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.errors import InvalidContract, PrivacyNotProved
from hubbub.exact import CHARGE_UNIT
from hubbub.schedule import Periodic
from hubbub_aggregator.app import app
from hubbub_aggregator.definitions import DefinitionError
from hubbub_aggregator.signing import ChangedDefinition
from tests.aggregator.test_signing import METRIC, NOW, OPEN, WIDE, signed
from tests.bundles import Operator

DAY = 86_400
NAME = "health.self_rated"
# Every round, each with fresh noise.
FRESH = 'grace = "2d"'


def definition(schedule: str, more: str = "", base: str = METRIC) -> str:
    return f'{base}schedule = {{ every = "1d", rounds = 365, {schedule} }}\n{more}\n'


def series(operator: Operator, folder: Path, text: str, previous: Bundle | None = None) -> Metric:
    return signed(operator, folder, text, previous).metrics[NAME]


def test_a_sample_of_the_rounds(operator: Operator, tmp_path: Path) -> None:
    metric = series(operator, tmp_path, definition("join = 8"))
    assert metric.schedule == Periodic(NOW, DAY, 365, 2 * DAY, join=8)
    assert metric.mechanism.name == "randomised-response"
    assert metric.total_charge == metric.series_charge == 8 * CHARGE_UNIT


def test_a_memo(operator: Operator, tmp_path: Path) -> None:
    metric = series(operator, tmp_path, definition("permanent = 2.50"))
    assert metric.schedule == Periodic(NOW, DAY, 365, 2 * DAY)
    assert metric.permanent is not None
    assert (metric.permanent.text, metric.epsilon.text) == ("2.5", "1")
    assert metric.mechanism.name == "memoised-randomised-response"
    assert metric.total_charge == metric.series_charge == 10 * CHARGE_UNIT


@pytest.mark.parametrize(
    ("more", "base", "name", "rows"),
    [
        ("", METRIC, "memoised-randomised-response", 4),
        ('mechanism = "memoised-optimised-unary"', METRIC, "memoised-optimised-unary", 4),
        ('mechanism = "memoised-symmetric-unary"', METRIC, "memoised-symmetric-unary", 4),
        ('mechanism = "memoised-local-hashing"', METRIC, "memoised-local-hashing", 3),
        ("", WIDE, "memoised-local-hashing", 3),
        ("expected_share = 0.9", WIDE, "memoised-local-hashing", 2),
        ("max_payload_bytes = 2", WIDE, "memoised-local-hashing", 3),
    ],
)
def test_which_memo(
    operator: Operator, tmp_path: Path, *, more: str, base: str, name: str, rows: int
) -> None:
    metric = series(operator, tmp_path, definition('permanent = "2"', more, base))
    assert metric.mechanism.name == name
    assert metric.memoised is not None
    assert metric.memoised.rows == rows


def test_cells_limit_the_rows(operator: Operator, tmp_path: Path) -> None:
    metric = series(operator, tmp_path, definition('permanent = "2", cells = 2'))
    assert metric.mechanism.parameters["cells"] == 2
    assert metric.total_charge == 4 * CHARGE_UNIT


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (definition("join = 366"), InvalidContract, "schedule: has 365 rounds, of which none joi"),
        (definition("join = 0"), DefinitionError, "schedule: join: must be at least 1$"),
        (definition('join = "8"'), DefinitionError, 'join: must be a whole number, not "8"$'),
        (definition("join = 8, grace = 0"), InvalidContract, "schedule: needs a grace"),
        (definition("join = 33"), InvalidContract, "schedule: costs ε = 33 as a whole, above 32"),
        (definition('permanent = "2", grace = 0'), InvalidContract, "schedule: needs a grace"),
        (definition('permanent = "1"'), InvalidContract, "permanent: must be above epsilon"),
        (definition('permanent = "0.5"'), InvalidContract, "permanent: must be above epsilon"),
        (definition('permanent = "9"'), PrivacyNotProved, "permanent = 9 is above 8"),
        (definition('permanent = "two"'), InvalidContract, "permanent: ε must be decimal text"),
        (definition("permanent = true"), DefinitionError, "permanent: must be a number or text"),
        (definition('permanent = "2", join = 8'), InvalidContract, "schedule: of a memoised mech"),
        (definition("cells = 4"), DefinitionError, "schedule: cells goes with permanent"),
        (definition('permanent = "2", cells = 1'), DefinitionError, "cells: must be at least 2$"),
        (
            definition('permanent = "2"', 'mechanism = "subset-selection"'),
            InvalidContract,
            'mechanism: beside permanent is "auto", "memoised-randomised-response", ',
        ),
        (
            f'{METRIC}mechanism = "memoised-optimised-unary"\n',
            InvalidContract,
            "permanent: is missing in schedule; memoised-optimised-unary needs one",
        ),
        (
            definition("join = 8", 'mechanism = "memoised-local-hashing"'),
            InvalidContract,
            "permanent: is missing in schedule",
        ),
        (
            definition('permanent = "2"', 'mechanism = "memoised-optimised-unary"', WIDE),
            InvalidContract,
            "permanent: 300 rows, one for each value, would cost ε = 600 in all, above 32; ",
        ),
        (
            definition('permanent = "2", cells = 3', 'mechanism = "memoised-symmetric-unary"'),
            InvalidContract,
            "permanent: 4 rows, one for each value, are more than cells = 3; ",
        ),
        (
            definition('permanent = "2"', "max_payload_bytes = 1", WIDE),
            InvalidContract,
            "max_payload_bytes: every mechanism's payload has at least 2 bytes here",
        ),
        (
            definition('permanent = "2"', 'mechanism = "memoised-randomised-response"\n'
                       "expected_share = 0.1"),
            InvalidContract,
            "expected_share: steers nothing in memoised-randomised-response",
        ),
        (
            definition('permanent = "2"', base=OPEN),
            InvalidContract,
            "permanent: is not for an open domain",
        ),
    ],
)  # fmt: skip
def test_a_faulty_series_is_refused_with_its_reason(
    operator: Operator, tmp_path: Path, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        signed(operator, tmp_path, text)


# -- Signing again ------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["join = 8", 'permanent = "2"', 'permanent = "2", cells = 3'])
def test_signing_again_keeps_a_known_series_to_the_byte(
    operator: Operator, tmp_path: Path, schedule: str
) -> None:
    text = definition(schedule)
    first = signed(operator, tmp_path, text)
    again = signed(operator, tmp_path, text, previous=first, now=NOW + 1000)
    assert again.metrics[NAME].contract == first.metrics[NAME].contract


def test_more_cells_afterwards_change_nothing(operator: Operator, tmp_path: Path) -> None:
    first = signed(operator, tmp_path, definition('permanent = "2", cells = 3'))
    for cells in (", cells = 3", ", cells = 4", ""):
        again = series(operator, tmp_path, definition(f'permanent = "2"{cells}'), first)
        assert again.contract == first.metrics[NAME].contract


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ("join = 8", "join = 9", ("schedule",)),
        ("join = 8", FRESH, ("schedule",)),
        ("join = 8", 'permanent = "2"', ("permanent", "schedule")),
        ('permanent = "2"', 'permanent = "3"', ("permanent",)),
        ('permanent = "2"', FRESH, ("permanent",)),
        (FRESH, 'permanent = "2"', ("permanent",)),
        ('permanent = "2"', 'permanent = "2", cells = 3', ("cells",)),
    ],
)
def test_a_changed_series_under_a_known_name_is_refused(
    operator: Operator, tmp_path: Path, before: str, after: str, fields: tuple[str, ...]
) -> None:
    first = signed(operator, tmp_path, definition(before))
    with pytest.raises(ChangedDefinition) as refusal:
        signed(operator, tmp_path, definition(after), previous=first)
    assert refusal.value.fields == fields


# -- What sign says -----------------------------------------------------------------------


def said(operator: Operator, folder: Path, text: str, capsys: Any) -> list[str]:
    definitions, bundle = folder / "metrics.toml", folder / "metrics.hubbub"
    definitions.write_text(text, encoding="utf-8")
    bundle.unlink(missing_ok=True)
    app(
        ["sign", str(definitions), "--keys", str(operator.folder), "-o", str(bundle)],
        standalone_mode=False,
    )
    lines: list[str] = capsys.readouterr().out.splitlines()
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (definition("join = 8"), "ε = 8 in all: 8 of 365 rounds at 1, charged before the first re"),
        (definition('permanent = "2"'), "ε = 8 in all: 4 rows at 2, charged before the first rep"),
        (definition('permanent = "2"', base=WIDE), "ε = 6 in all: 3 rows at 2, charged before"),
        (definition('permanent = "2"', base=WIDE), "auto picks memoised-local-hashing: 300 rows, "),
        (definition('permanent = "2"', base=WIDE), "cells 3, dimensions 6, 2 bytes a report"),
        (f'{METRIC}schedule = {{ every = "1d", rounds = 8 }}', "ε = 8 in all: 8 rounds at 1"),
    ],
)
def test_the_total_is_told_before_anybody_is_asked(
    operator: Operator, tmp_path: Path, capsys: Any, text: str, expected: str
) -> None:
    assert any(line.startswith(expected) for line in said(operator, tmp_path, text, capsys))


def test_what_is_asked_once_has_no_total(operator: Operator, tmp_path: Path, capsys: Any) -> None:
    assert not any("in all" in line for line in said(operator, tmp_path, METRIC, capsys))


def test_metrics_that_together_ask_for_too_much_are_remarked_on(
    operator: Operator, tmp_path: Path, capsys: Any
) -> None:
    def asked(*totals: tuple[str, int]) -> str:
        return "".join(
            definition(f"join = {total}")
            .replace("self_rated", f"m{number}")
            .replace('source = "health"', f'source = "{source}"')
            for number, (source, total) in enumerate(totals)
        )

    fitting = asked(("a", 16), ("a", 16), ("b", 32))
    assert not any("devices stop" in line for line in said(operator, tmp_path, fitting, capsys))
    shared = said(operator, tmp_path, asked(("a", 16), ("a", 17), ("b", 31)), capsys)
    assert shared[-1] == (
        "health.m0, health.m1 cost ε = 33 together, but devices stop at 32, the most for their "
        "source a"
    )
    # Of the first source devices spend no more than 32.
    assert not any("devices stop at 64" in line for line in shared)
    everything = said(operator, tmp_path, asked(("a", 32), ("b", 32), ("c", 1)), capsys)
    assert everything[-1] == "all sources together cost ε = 65, but devices stop at 64"
