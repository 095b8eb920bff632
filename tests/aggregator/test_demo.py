"""The demo: a real aggregator, real devices, and nothing left behind."""

import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.demo import processes
from hubbub_aggregator.demo.people import column_of, rand_hie
from tests.processes import COMMAND, until

PEOPLE = 250


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A spreadsheet's export: byte-order mark, semicolons, an empty cell now and then."""
    cells = ["red", "blue", "blue", ""]
    rows = [f"{number};{cells[number % len(cells)]}" for number in range(PEOPLE)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["number;colour", *rows]), encoding="utf-8-sig")
    return path


def test_the_shipped_people_are_the_whole_study() -> None:
    people = rand_hie()
    assert people.count == 20_190
    assert people.answers["health.self_rated"].count("poor") == 302
    assert people.answers["health.physical_limitation"].count("yes") == 2_387
    assert set(people.answers["health.doctor_visits"]) == {"0", "1", "2", "3–5", "6–10", "11+"}
    for metric in people.definitions.metric:
        assert set(people.answers[metric.name]) == set(metric.values)


def test_a_page_that_fails_at_every_look_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And what it says of that is shown: Streamlit writes it where the page's address came."""
    begin, said = tmp_path / "begin", tmp_path / "said"
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import pathlib, threading, time

def tracebacks():
    while not pathlib.Path({str(begin)!r}).exists():
        time.sleep(0.05)
    for number in range(10_000):
        print("failed", number, "x" * 100, flush=True)
    pathlib.Path({str(said)!r}).touch()

threading.Thread(target=tracebacks, daemon=True).start()
"""
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    shown: list[str] = []

    def shown_to_the_end() -> bool:
        shown.append(capfd.readouterr().err)
        return "failed 9999 x" in "".join(shown)

    with processes.page("127.0.0.1:9"):
        begin.touch()
        until(said.exists)
        until(shown_to_the_end)


def test_a_column_becomes_a_domain(table: Path) -> None:
    people = column_of(table, "colour", "1")
    (metric,) = people.definitions.metric
    assert (metric.values, metric.absent) == (["blue", "red"], "(no answer)")
    assert people.answers[metric.name][:4] == ["red", "blue", "blue", None]


def test_numbers_are_listed_by_size(table: Path) -> None:
    (metric,) = column_of(table, "number", "1").definitions.metric
    assert metric.values == [str(number) for number in range(PEOPLE)]


def test_an_unknown_column_names_those_there_are(table: Path) -> None:
    with pytest.raises(CommandError, match="it has number, colour"):
        column_of(table, "shape", "1")


@pytest.mark.parametrize("text", ["", "colour\n", "colour\n\n"])
def test_a_table_without_rows_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(CommandError, match="has no rows under a header"):
        column_of(path, "colour", "1")


def test_a_metric_is_named_after_its_column(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Years of School,??,\n1,2,3\n4,5,6\n")
    for column, name in (("Years of School", "years-of-school"), ("??", "column"), ("", "column")):
        (metric,) = column_of(path, column, "1").definitions.metric
        assert metric.name == name


def test_cells_beyond_the_header_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n3,4,5\n6\n7,8,9,10\n")
    assert column_of(path, "b", "1").answers["b"] == ["2", "4", None, "8"]
    (line,) = capsys.readouterr().err.splitlines()
    assert "2 rows have more cells than the header" in line
    with pytest.raises(CommandError, match="has no column ''; it has a, b"):
        column_of(path, "", "1")


def test_a_column_of_very_many_values_is_remarked_on_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "people.csv"
    for count in (200, 201):
        path.write_text("\n".join(["id", *map(str, range(count))]))
        column_of(path, "id", "1")
    assert (
        capsys.readouterr().err
        == "hubbub: column 'id' has 201 distinct values: the table is long\n"
    )
    path.write_text("\n".join(["id", *map(str, range(65_537))]))
    with pytest.raises(CommandError, match="65,537 distinct values; a metric has at most 65,536"):
        column_of(path, "id", "1")


def test_a_file_name_that_is_not_utf8_can_be_asked_about(table: Path) -> None:
    odd = table.rename(table.with_name(os.fsdecode(b"n\xff.csv")))
    (metric,) = column_of(odd, "colour", os.fsdecode(b"\xff")).definitions.metric
    assert metric.question == "What is in column colour of n?.csv?"
    assert metric.epsilon == "?"


def test_a_headless_demo_counts_everybody_once(table: Path) -> None:
    result = subprocess.run(
        [COMMAND, "demo", "--headless", "--csv", str(table), "--column", "colour"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert f"{PEOPLE} reports sent, 0 lost, 0 doubled" in result.stdout
    assert f"{PEOPLE} of {PEOPLE} devices have reported" in result.stdout
    for value in ("red", "blue", "(no answer)"):
        assert re.search(
            rf"{re.escape(value)} +\d+\.\d+ % +−?\d+\.\d+ % +.* % to .* % +(in|out)side",
            result.stdout,
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_page_stays_until_told_to_end_and_leaves_nothing(
    table: Path, tmp_path: Path, number: signal.Signals
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    demo = subprocess.Popen(
        [COMMAND, "demo", "--csv", str(table), "--column", "colour"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
        start_new_session=True,
    )
    assert demo.stdout is not None
    with demo:
        said = []
        for line in demo.stdout:
            said.append(line)
            if "The page stays" in line:
                demo.send_signal(number)
        text = "".join(said)
    assert demo.returncode == 0, text
    assert "The page: http://127.0.0.1:" in text
    assert "0 lost, 0 doubled" in text
    assert not list(scratch.glob("hubbub-demo-*"))
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(scratch) not in running.stdout


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_demo_csv_of_300_000_people_loses_nobody(tmp_path: Path) -> None:
    """A large, skewed table through the real path: all devices, all reports, all counted."""
    weights = 1 / np.arange(1, 101)
    cells = np.random.default_rng(20_261_128).choice(100, 300_000, p=weights / weights.sum())
    table = tmp_path / "people.csv"
    table.write_text("\n".join(["answer", *(f"value {cell}" for cell in cells)]))
    result = subprocess.run(
        [COMMAND, "demo", "--headless", "--csv", str(table), "--column", "answer"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "300,000 reports sent, 0 lost, 0 doubled" in result.stdout
