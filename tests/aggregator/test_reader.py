"""Estimates in Python and in Parquet: the same figures, with types, and what they rest on."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import hubbub_aggregator
from hubbub.bundle import Bundle
from hubbub_aggregator.connection import BadAddress, CallFailed
from hubbub_aggregator.keys import KeysError
from hubbub_aggregator.reader import Reader
from hubbub_aggregator.records import COLUMNS, FIGURES
from hubbub_aggregator.whole_file import write_whole
from tests.bundles import Operator, make_bundle, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.processes import ServeProcess
from tests.typed import typed

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(
        operator,
        make_metric("health", mechanism="symmetric-unary", absent="none"),
        make_metric("empty"),
        make_metric("drink", open=True),
    )


@pytest.fixture(scope="module")
def serve(
    operator: Operator, bundle: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "metrics.hubbub").write_bytes(bundle.signed)
    with ServeProcess(operator, folder / "metrics.hubbub", folder / "store.sqlite3") as serve:
        answer(serve, bundle, "health", [0] * 200 + [1] * 100)
        answer(serve, bundle, "drink", [7] * 100)
        close_round(serve, "health")
        yield serve


@pytest.fixture
def reader(serve: ServeProcess) -> Iterator[Reader]:
    with hubbub_aggregator.connect(serve.private) as reader:
        yield reader


def test_estimates_say_what_they_rest_on(reader: Reader, bundle: Bundle) -> None:
    metric = bundle.metrics["health"]
    estimates = reader.estimates("health")
    assert (estimates.metric, estimates.round, estimates.n) == ("health", 0, 300)
    assert estimates.digest == metric.digest.hex()
    assert estimates.mechanism == "symmetric-unary"
    assert estimates.epsilon.declared == "1"
    assert estimates.epsilon.realised == metric.certificate.realised
    assert (estimates.state, estimates.kind) == ("closed", "unbiased")
    assert (estimates.target, estimates.level) == ("respondents", 0.95)
    assert estimates.as_of is not None
    assert estimates.as_of.tzinfo is UTC


def test_rows_are_the_columns_of_the_csv(reader: Reader) -> None:
    rows = reader.estimates("health", round=0, target="population", level=0.9).to_dicts()
    assert [row["value"] for row in rows] == ["excellent", "good", "fair", "poor", "none"]
    for row in rows:
        assert tuple(row) == COLUMNS
        assert (row["metric"], row["n"], row["target"]) == ("health", 300, "population")
        assert row["simultaneous_low"] < row["low"] < row["estimate"] < row["high"]


def test_arrow_has_types_and_pandas_the_same_rows(reader: Reader) -> None:
    estimates = reader.estimates("health")
    table = estimates.to_arrow()
    types = {field.name: field.type for field in table.schema}
    assert tuple(types) == COLUMNS
    assert types["as_of"] == pa.timestamp("ms", tz="UTC")
    assert types["distinguishable"] == types["found"] == pa.bool_()
    assert {types[name] for name in ("round", "n", "count", "rank_low")} == {pa.int64()}
    assert {types[name] for name in ("level", "estimate", "influence")} == {pa.float64()}
    frame = estimates.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    expected = estimates.to_dicts()
    for name in ("value", "count", *FIGURES):
        assert list(frame[name]) == [row[name] for row in expected]
    assert set(frame["as_of"]) == {estimates.as_of}


def test_before_the_first_snapshot_figures_are_missing(reader: Reader) -> None:
    estimates = reader.estimates("empty")
    assert (estimates.n, estimates.as_of) == (0, None)
    table = estimates.to_arrow()
    assert table["estimate"].null_count == table["as_of"].null_count == len(table) == 4
    assert estimates.to_pandas()["estimate"].isna().all()


def test_candidates_of_an_open_domain(reader: Reader) -> None:
    assert reader.estimates("drink").to_dicts() == []
    rows = reader.estimates("drink", candidates=["tea", "coffee"]).to_dicts()
    assert [row["value"] for row in rows] == ["tea", "coffee"]


def test_metrics(reader: Reader, bundle: Bundle) -> None:
    health, *_ = reader.metrics()
    assert (health.name, health.source, health.listed) == ("drink", "health", True)
    metrics = {metric.name: metric for metric in reader.metrics()}
    assert list(metrics) == sorted(bundle.metrics)
    assert metrics["health"].values == bundle.metrics["health"].domain.labels
    (round_,) = metrics["health"].rounds
    assert (round_.number, round_.state, round_.n) == (0, "closed", 300)


def test_the_documented_script_runs(serve: ServeProcess) -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    script = script.replace("localhost:7444", serve.private).replace("health.self_rated", "health")
    result = run(sys.executable, "-c", script + "print(*frame['value'])")
    assert "health How do you rate your own health?" in result.stdout
    assert "excellent good fair poor none" in result.stdout, result.stderr


def test_mistakes_are_one_sentence(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(CallFailed, match="there is no metric 'nonsense'; there are: drink"):
        reader.estimates("nonsense")
    with pytest.raises(CallFailed, match="has only round 0, not 3"):
        reader.estimates("health", round=3)
    with pytest.raises(ValueError, match="respondents or population, not 'everybody'"):
        reader.estimates("health", target="everybody")
    with pytest.raises(ValueError, match=r"between 0 and 1, for example 0\.95, not 95"):
        reader.estimates("health", level=95)
    with pytest.raises(ValueError, match=r"a list of texts, for example \['Tea'\]"):
        reader.estimates("drink", candidates="Tea")
    with (
        hubbub_aggregator.connect("127.0.0.1:1") as nobody,
        pytest.raises(CallFailed, match="no aggregator answers at 127"),
    ):
        nobody.metrics()
    for address in (
        "http://localhost:7444",
        "localhost",
        "localhost:",
        "::1:7444",
        "[::1]:0",
        "a:70000",
        "",
    ):
        with pytest.raises(BadAddress, match="is at host:port, for example localhost:7444 or"):
            hubbub_aggregator.connect(address)
    with pytest.raises(KeysError, match=r"cannot read .*ca\.crt"):
        hubbub_aggregator.connect(keys=tmp_path)


def test_keys_are_not_for_a_plaintext_listener(serve: ServeProcess, operator: Operator) -> None:
    with (
        hubbub_aggregator.connect(serve.private, operator.folder) as reader,
        pytest.raises(CallFailed, match="speaks plaintext; leave out the keys folder"),
    ):
        reader.metrics()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


class TestParquet:
    def test_the_file_holds_the_table(
        self, serve: ServeProcess, reader: Reader, tmp_path: Path
    ) -> None:
        path = tmp_path / "health.parquet"
        path.write_text("an older one")
        result = typed("estimate", "health", "--to-parquet", path, "--aggregator", serve.private)
        assert result.stdout == f"{path}: 5 values of health\n"
        table = parquet.read_table(path)
        assert table.equals(reader.estimates("health").to_arrow(), check_metadata=True)
        assert table.schema.metadata == {
            b"hubbub.mechanism": b"symmetric-unary",
            b"hubbub.epsilon_declared": b"1",
            b"hubbub.epsilon_realised": reader.estimates("health").epsilon.realised.encode(),
            b"hubbub.kind": b"unbiased",
        }
        assert list(tmp_path.iterdir()) == [path]

    def test_a_folder_that_is_not_there(self, serve: ServeProcess, tmp_path: Path) -> None:
        path = tmp_path / "no" / "file"
        result = typed("estimate", "health", "--to-parquet", path, "--aggregator", serve.private)
        assert result.returncode == 1
        assert result.stderr == f"hubbub: {path}: No such file or directory\n"

    def test_whole_or_not_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        with pytest.raises(IsADirectoryError) as raised:
            write_whole(tmp_path / "folder", b"data")
        assert raised.value.filename == str(tmp_path / "folder")
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]

    def test_it_is_a_format_of_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        result = typed("estimate", "health", "--to-parquet", path, "--format", "csv")
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.startswith("hubbub: give --format or --to-parquet")
        assert not path.exists()


# An analyst's script where some libraries are not installed.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, *_):
        if name in sys.argv[1].split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import hubbub_aggregator
estimates = hubbub_aggregator.connect(sys.argv[2]).estimates("health")
estimates.to_dicts()
try:
    estimates.to_pandas()
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("missing", "named"), [("pyarrow pandas", "pyarrow"), ("pandas", "pandas")]
)
def test_without_the_extra_it_says_what_to_install(
    serve: ServeProcess, missing: str, named: str
) -> None:
    result = run(sys.executable, "-c", WITHOUT, missing, serve.private)
    assert result.stdout == f"this needs {named}: pip install 'hubbub[analysis]'\n", result.stderr


def test_commands_start_without_what_only_analysts_need() -> None:
    script = "import sys, hubbub_aggregator.commands.estimate; print(*sys.modules)"
    loaded = set(run(sys.executable, "-c", script).stdout.split())
    assert "hubbub_aggregator.reader" in loaded
    assert not loaded & {"pandas", "pyarrow"}


def test_importing_the_package_loads_nothing_but_itself() -> None:
    script = "import sys, typing; a = set(sys.modules); {}; print(*(set(sys.modules) - a))"
    result = run(sys.executable, "-c", script.format("import hubbub_aggregator"))
    assert result.stdout.split() == ["hubbub_aggregator"]
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(hubbub_aggregator, "Nothing")  # noqa: B009
