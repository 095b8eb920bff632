"""deploy/: linted as far as that goes without a container daemon, and true of the code."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hubbub_aggregator.app import COMMANDS
from hubbub_aggregator.process import GRACE
from hubbub_aggregator.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
ARCHIVE = (DEPLOY / "compose.archive.yaml").read_text()
UNIT = (DEPLOY / "hubbub.service").read_text()
BIN = Path(sys.executable).parent


def run(*command: object) -> str:
    """What it says; its failure is the test's."""
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_containerfile_is_linted() -> None:
    run(BIN / "hadolint", DEPLOY / "Containerfile")


def test_the_compose_files_fit_their_schema() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    files = sorted(DEPLOY.glob("*.yaml"))
    assert len(files) == 2
    run(BIN / "check-jsonschema", *schema, *files)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    # It wants to see the program, which is installed elsewhere here.
    unit = tmp_path / "hubbub.service"
    unit.write_text(UNIT.replace("/opt/hubbub/bin/hubbub", str(BIN / "hubbub")))
    run("systemd-analyze", "verify", unit)


def test_whatever_is_copied_is_there_and_sent_to_the_build() -> None:
    copied = [
        name
        for line in re.findall(r"^COPY (?!--)(.+)$", CONTAINERFILE, re.MULTILINE)
        for name in line.split()[:-1]
    ]
    sent = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in sent
    assert {line[1:] for line in sent if line.startswith("!")} == set(copied)


@pytest.mark.parametrize(
    ("text", "least"),
    [(CONTAINERFILE, 3), (COMPOSE, 0), (ARCHIVE, 1), (UNIT, 3)],
    ids=["image", "compose", "archive", "unit"],
)
def test_settings_in_the_environment_are_known(text: str, least: int) -> None:
    found = re.findall(rf"\b{PREFIX}([A-Z_]+)(?:=|: )", text)
    assert len(found) >= least
    for name in found:
        assert name.lower() in Settings.model_fields


def test_extras_are_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # The page's, that can have its readers sign in.
    assert re.findall(r"'\.\[(\S+)\]'$", CONTAINERFILE, re.MULTILINE) == ["login"]
    assert project["optional-dependencies"]["login"][0] == "hubbub[dashboard]"
    given = re.findall(r"\bEXTRAS(?:=|: )(\S+)$", CONTAINERFILE + ARCHIVE, re.MULTILINE)
    assert given == ["aggregator", "aggregator,archive"]
    assert {extra for extras in given for extra in extras.split(",")} <= set(
        project["optional-dependencies"]
    )


def test_the_archive_is_mounted_where_it_is_written() -> None:
    (folder,) = re.findall(rf"{PREFIX}ARCHIVE: (\S+)$", ARCHIVE, re.MULTILINE)
    assert f"- ./archive:{folder}\n" in ARCHIVE


def test_the_commands_are_known() -> None:
    given = re.findall(r"^(?:HEALTHCHECK .* )?CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)
    words = [json.loads(command) for command in given]
    for command in [w[1:] if w[0] == "hubbub" else w for w in words]:
        assert command[0] in COMMANDS
    assert len(words) >= 2


def test_nothing_runs_as_root() -> None:
    for stage in CONTAINERFILE.split("\nFROM ")[1:]:
        if "ENTRYPOINT" in stage:
            assert stage.startswith("base AS ")
    base = CONTAINERFILE.split(" AS base\n")[1].split("\nFROM ")[0]
    assert base.rstrip().endswith("USER 10001:10001")


def test_there_is_time_to_stop() -> None:
    """Longer than the lame duck's time and the grace for calls in hand, both by default."""
    needed = Settings.model_fields["lame_duck"].default + GRACE
    for text in (COMPOSE, UNIT):
        (found,) = re.findall(r"(?:stop_grace_period: |TimeoutStopSec=)(\d+)", text)
        assert int(found) > needed
