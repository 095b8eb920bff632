"""`hubbub certify` of series: a second proof for the rows of a memo, and what it is about."""

import json
from fractions import Fraction
from math import log2
from pathlib import Path
from typing import Any

import pytest

from hubbub.exact import Certificate, Epsilon
from hubbub.exposure import change_noticed, change_noticed_ever, linked
from hubbub.mechanisms import MEMOISED, MemoisedLocalHashing
from hubbub_aggregator.app import app
from hubbub_aggregator.commands import CommandError
from tests.bundles import Operator, make_metric
from tests.calibrated import memoised

DAILY = (86_400, 365, 86_400)
TWO = Epsilon.parse("2")


def certified(operator: Operator, folder: Path, capsys: Any, *contracts: bytes) -> tuple[Any, str]:
    """What is printed as JSON, and as text."""
    path = folder / "metrics.hubbub"
    path.write_bytes(operator.sign(contracts))
    app(["certify", str(path), "--format", "json"], standalone_mode=False)
    proofs = json.loads(capsys.readouterr().out)["metrics"]
    app(["certify", str(path)], standalone_mode=False)
    return proofs, capsys.readouterr().out


@pytest.mark.parametrize("name", MEMOISED)
def test_a_memo_is_proved_by_the_row(
    operator: Operator, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    mechanism = memoised(name, 4)
    contract = make_metric("mood", mechanism=mechanism, permanent="2", periodic=DAILY)
    (proof,), text = certified(operator, tmp_path, capsys, contract)
    assert Fraction(proof["ratio_permanent"]) == mechanism.row_ratio
    assert Fraction(proof["ratio"]) == mechanism.ratio
    realised = Certificate(TWO, mechanism.row_ratio).realised
    assert proof["epsilon_permanent"] == {"declared": "2", "realised": realised}
    assert (proof["epsilon_declared"], proof["rounds"], proof["join"]) == ("1", 365, None)
    assert proof["rows"] == mechanism.rows
    assert proof["epsilon_total"] == str(2 * mechanism.rows)
    hashes = mechanism.seeds if isinstance(mechanism, MemoisedLocalHashing) else 1
    assert proof["identifying_bits"] == pytest.approx(log2(hashes))
    assert proof["change_noticed"] == {
        "rounds": 30,
        "chance": change_noticed(mechanism, 30),
        "ever": change_noticed_ever(mechanism),
    }
    assert proof["linked"] == {"reports": 15, "chance": linked(mechanism, 15)}
    flowing = text.replace("\n", " ")
    assert f"mood is answered from a memo of {mechanism.rows} rows" in flowing
    assert "change, and come back to an earlier row, in the same rounds" in flowing
    assert ("names the device's hash" in flowing) == (hashes > 1)
    assert f"mood, of a row: {proof['ratio_permanent']}" in text


def test_a_series_of_few_rounds_is_compared_over_those(
    operator: Operator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mechanism = memoised("memoised-optimised-unary", 4)
    contract = make_metric(mechanism=mechanism, permanent="2", periodic=(86_400, 7, 86_400))
    (proof,), _ = certified(operator, tmp_path, capsys, contract)
    assert proof["change_noticed"]["rounds"] == 7
    assert proof["linked"]["reports"] == 3


def test_a_sample_is_told_with_its_total(
    operator: Operator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = make_metric("fresh", periodic=DAILY)
    sampled = make_metric("sampled", periodic=DAILY, join=8)
    proofs, text = certified(operator, tmp_path, capsys, fresh, sampled)
    assert [proof["join"] for proof in proofs] == [None, 8]
    assert [proof["epsilon_total"] for proof in proofs] == ["365", "8"]
    assert all("rows" not in proof for proof in proofs)
    assert "8 of 365" in text
    assert "fresh has 365 rounds, but devices stop after 32" in text
    assert "memo" not in text


@pytest.mark.parametrize("name", MEMOISED)
@pytest.mark.parametrize("permanent", ["1.999999999999", "1.5"])
def test_a_row_that_tells_too_much_is_refused(
    operator: Operator, tmp_path: Path, name: str, permanent: str
) -> None:
    contract = make_metric("mood", mechanism=memoised(name, 4), permanent=permanent, periodic=DAILY)
    path = tmp_path / "telling.hubbub"
    path.write_bytes(operator.sign([contract]))
    with pytest.raises(CommandError, match=f"more than the declared ε = {permanent}"):
        app(["certify", str(path)], standalone_mode=False)
