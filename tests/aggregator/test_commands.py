"""The operator's offline commands, as a person types them."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.mechanisms import MECHANISMS
from hubbub_aggregator.app import COMMANDS
from tests.bundles import Operator, make_metric
from tests.calibrated import calibrated
from tests.processes import COMMAND
from tests.proofs import nudged
from tests.typed import typed

METRICS = """
[[metric]]
name = "health.self_rated"
question = "How do you rate your own health?"
source = "health"
values = ["excellent", "good", "fair", "poor"]
epsilon = "1"

[[metric]]
name = "visits"
question = "How often did you see a doctor?"
source = "health"
values = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"]
epsilon = "ln 3"
schedule = { every = "1d", rounds = 8 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where `keygen` and `sign` were run as the README says."""
    folder = tmp_path_factory.mktemp("operator")
    (folder / "metrics.toml").write_text(METRICS)
    (folder / "faulty.toml").write_text(METRICS.replace("visits", "faulty").replace("ln 3", "ln 1"))
    for command in (("keygen", "keys/"), ("sign", "metrics.toml", "--keys", "keys/")):
        result = typed(*command, cwd=folder)
        assert (result.returncode, result.stderr) == (0, "")
    return folder


def test_certify_proves_every_metric(folder: Path) -> None:
    result = typed("certify", "metrics.hubbub", "--format", "json", cwd=folder)
    assert result.returncode == 0
    one, two = json.loads(result.stdout)["metrics"]
    assert one["name"] == "health.self_rated"
    assert one["mechanism"] == "randomised-response"
    assert (one["rounds"], two["rounds"]) == (1, 8)
    assert (one["epsilon_declared"], one["epsilon_total"]) == ("1", "1")
    # ln 3 rounded up at the 12th decimal, times 8.
    assert (two["epsilon_declared"], two["epsilon_total"]) == (
        "1.098612288669",
        "8.788898309352",
    )
    assert Fraction(two["ratio"]) <= 3
    for proof in (one, two):
        assert 0 <= Fraction(proof["loss"]) <= Fraction(1, 10**12)
        assert Fraction(proof["epsilon_realised"]) <= Fraction(proof["epsilon_declared"])
        assert len(proof["digest"]) == 64


def test_certify_prints_a_table_for_people(folder: Path) -> None:
    result = typed("certify", "metrics.hubbub", cwd=folder)
    assert result.returncode == 0
    assert "ε realised" in result.stdout
    assert "worst ratio" in result.stdout


@pytest.mark.parametrize("name", MECHANISMS)
def test_certify_and_serve_refuse_a_threshold_past_the_bound(
    operator: Operator, tmp_path: Path, name: str
) -> None:
    contract = make_metric("nudged", mechanism=nudged(calibrated(name, 4, "1")))
    path = tmp_path / "nudged.hubbub"
    path.write_bytes(operator.sign([make_metric(), contract]))
    for command in (
        ("certify", path),
        ("serve", path, "--keys", operator.folder, "--listen", "127.0.0.1:0"),
    ):
        result = typed(*command, cwd=tmp_path)
        assert result.returncode == 1
        (line,) = result.stderr.splitlines()
        assert "'nudged'" in line
        assert "more than the declared ε = 1" in line


def test_certify_can_check_the_signature(folder: Path) -> None:
    key = (folder / "keys" / "operator.pub").read_text().strip()
    assert typed("certify", "metrics.hubbub", "--operator-key", key, cwd=folder).returncode == 0
    other = f"ed25519:{'0' * 64}"
    result = typed("certify", "metrics.hubbub", "--operator-key", other, cwd=folder)
    assert result.returncode == 1
    assert "not signed by" in result.stderr


def test_signing_again_raises_the_revision(folder: Path) -> None:
    result = typed("sign", "metrics.toml", "--keys", "keys/", cwd=folder)
    assert result.returncode == 0
    assert "revision 2" in result.stdout
    assert result.stdout.count("unchanged") == 2


def test_a_failed_signing_leaves_the_old_bundle(folder: Path) -> None:
    before = (folder / "metrics.hubbub").read_bytes()
    (folder / "changed.toml").write_text(METRICS.replace("fair", "so-so"))
    result = typed("sign", "changed.toml", "--keys", "keys/", "-o", "metrics.hubbub", cwd=folder)
    assert result.returncode == 1
    assert "give the changed question a new name" in result.stderr
    assert (folder / "metrics.hubbub").read_bytes() == before
    assert not list(folder.glob(".metrics.hubbub.*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("keygen", "keys/"), "already holds an operator's keys"),
        (("sign", "nowhere.toml", "--keys", "keys/"), "cannot read nowhere.toml"),
        (("sign", "metrics.toml", "--keys", "nowhere/"), "cannot read nowhere/operator.pub"),
        (("sign", "metrics.toml", "--keys", "keys/", "-o", "metrics.toml"), "no bundle to go on"),
        (("certify", "nowhere.hubbub"), "nowhere.hubbub: No such file"),
        (
            ("sign", "faulty.toml", "--keys", "keys/", "-o", "new"),
            "faulty.toml: metric 'faulty': e",
        ),
        (("certify", "metrics.toml"), "metrics.toml: it is not a signed bundle"),
        (("certify", "metrics.hubbub", "--operator-key", "abc"), "64 hexadecimal digits"),
        (("demo", "--csv", "people.csv"), "--csv and --column go together"),
        (("demo", "--csv", "nowhere.csv", "--column", "x"), "nowhere.csv: No such file"),
        (("demo", "--csv", "metrics.toml", "--column", "x"), "has no column 'x'"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    result = typed(*arguments, cwd=folder)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("hubbub: ")
    assert says in line


@pytest.mark.parametrize("command", [["status"], ["health"], ["close", "x"], ["estimate", "x"]])
@pytest.mark.parametrize("address", ["h\udcff:7444", "[\udcff]:7444"])
def test_an_address_that_is_no_utf_8_is_a_mistake_too(command: list[str], address: str) -> None:
    """As Python has what was typed."""
    ran = typed(*command, "--aggregator", address)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "hubbub: an aggregator is at host:port, for example localhost:7444 or [::1]:7444, "
        f"not at {address!r}\n"
    )


@pytest.mark.parametrize(
    "command",
    [["estimate", "caf\udce9"], ["query", "lunch", "caf\udce9=1"], ["close", "caf\udce9"]],
)
def test_what_is_no_utf_8_is_a_mistake_where_it_is_sent(command: list[str]) -> None:
    ran = typed(*command, "--aggregator", "127.0.0.1:1")
    assert ran.returncode == 1
    assert ran.stderr == (
        "hubbub: something that was typed or set cannot be written in utf-8; type UTF-8, in a "
        "locale such as LC_ALL=C.UTF-8\n"
    )


def test_every_command_and_option_has_a_help_text() -> None:
    top = typed("--help")
    assert top.returncode == 0
    for command in COMMANDS:
        assert command in top.stdout
        assert typed(command, "--help").returncode == 0
    assert "python -m hubbub record" in top.stdout


TERMINALS = pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["latin-1", "ascii"],
)

FOR_PROGRAMS = r"""
import sys
sys.stdout.reconfigure(errors="backslashreplace")
from hubbub_aggregator.commands.output import print_csv, print_json
print_json({"soup": "\u00e4 \U0001f35c"})
print_csv(["soup"], [{"soup": "\u00e4 \U0001f35c"}])
"""


@TERMINALS
def test_what_programs_read_is_utf_8_wherever_it_is_printed(environment: dict[str, str]) -> None:
    for arguments, said in (
        (("-c", FOR_PROGRAMS), "ä \U0001f35c"),
        (("-m", "hubbub", "words"), "ε"),
    ):
        result = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            env={**os.environ, **environment},
            check=True,
        )
        printed = result.stdout.decode()
        assert said in printed
        assert "\\" not in printed.replace('\\"', "").replace("\\n", "")


@TERMINALS
def test_a_terminal_that_cannot_show_epsilon_ends_no_command(
    folder: Path, environment: dict[str, str]
) -> None:
    for arguments in (
        ("sign", "metrics.toml", "--keys", "keys/", "-o", "elsewhere.hubbub"),
        ("certify", "metrics.hubbub"),
    ):
        result = subprocess.run(
            [COMMAND, *arguments],
            cwd=folder,
            capture_output=True,
            env={**os.environ, **environment},
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, b"")
        assert rb"\u03b5" in result.stdout
    result = subprocess.run(
        [COMMAND, "demo", "--help"],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, b"")


WITHOUT_THE_EXTRA = """
import sys
sys.modules["typer"] = None  # what an import finds missing
from hubbub_aggregator.cli import main
main()
"""


def test_an_install_without_the_extra_says_what_to_install() -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stderr == (
        "hubbub: this command needs more than the device SDK: pip install 'hubbub[aggregator]'\n"
    )
