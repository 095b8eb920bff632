"""README and docs: every command and snippet in them is run, in the order they stand.

In a network namespace of its own, so that the default ports are free whatever this machine does.
"""

import os
import re
import secrets
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hubbub_dashboard.settings import read_settings
from tests import namespaces
from tests.aggregator.archives import Counting, reports_of
from tests.bundles import Operator, make_bundle, make_metric

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# A session of their own: `make demo` and `make test` run this very suite or take minutes, and a
# newcomer's environment is already active here.
ELSEWHERE = {"make demo", ". .venv/bin/activate"}

# Bring up the loopback interface of a fresh namespace (SIOCSIFFLAGS, IFF_UP | IFF_RUNNING).
LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", 0x41))
os.execvp(sys.argv[1], sys.argv[1:])
"""

# Runs the README's blocks as a person would: the servers in the background, then the rest.
PREAMBLE = """
set -eu
wait_for() {
  for _ in $(seq 600); do grep -q "$2" "$1" && return; sleep 0.1; done
  cat "$1"; exit 1
}
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
"""
READY = {"hubbub serve": "ready", "hubbub dashboard": "http://"}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def script() -> str:
    lines = [PREAMBLE]
    for number, block in enumerate(blocks(README, "sh")):
        if block.strip() in ELSEWHERE:
            continue
        server = next((command for command in READY if block.startswith(command)), None)
        if server is None:
            lines.append(block)
        else:
            log = f"server-{number}.log"
            lines.append(f"{block.strip()} >{log} 2>&1 &\nwait_for {log} '{READY[server]}'")
    lines.append("python in_your_app.py")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """The command prefix for a network of its own."""
    namespaces.require(namespaces.NETWORK)
    return [*namespaces.NETWORK, sys.executable, "-c", LOOPBACK_UP]


def test_the_readme_works_as_it_stands(namespace: list[str], tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(blocks(README, "toml")[0], encoding="utf-8")
    devices, in_your_app = blocks(README, "python")
    (tmp_path / "devices.py").write_text(devices, encoding="utf-8")
    (tmp_path / "in_your_app.py").write_text(in_your_app, encoding="utf-8")
    result = subprocess.run(
        [*namespace, "bash", "-c", script()],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for expected in ("worst ratio", "counted", "Question", "is closed now", '"soup"'):
        assert expected in result.stdout


def test_the_archives_commands_work_as_they_stand(tmp_path: Path) -> None:
    """Those of docs/operations.md, on a metric whose round was archived when it closed."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## The archive\n")[2].partition("## Open domains\n")[0]
    commands = [block for block in blocks(section, "sh") if not block.startswith("hubbub serve")]
    assert len(commands) == 3
    name = "drink.favourite"
    bundle = make_bundle(
        Operator.create(tmp_path / "keys"),
        make_metric(name, open=True, source="drinks", periodic=(60, 2, 60)),
    )
    store = str(tmp_path / "hubbub.sqlite3")
    with closing(Counting(bundle, store, tmp_path / "archive")) as counting:
        counting.count(name, [reports_of(bundle.metrics[name], 50)])
        counting.close_round(name)
    (tmp_path / "drinks.txt").write_text("tea\ncoffee\n", encoding="utf-8")
    result = subprocess.run(
        ["bash", "-euc", "".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    for expected in ("n = 50", "bit for bit", "coffee", "forgotten, with 50 reports"):
        assert expected in result.stdout
    assert os.listdir(tmp_path / "archive") == []


def test_the_page_starts_for_others_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands and the login file of docs/operations.md, up to where it would serve."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition("## The page for others\n")[2].partition("\n## ")[0]
    (login,) = blocks(section, "toml")
    with open(os.open(tmp_path / "login.toml", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(login.replace("…", secrets.token_hex()))
    keys = Operator.create(tmp_path / "keys").folder
    for suffix in ("crt", "key"):
        (keys / f"server.{suffix}").rename(tmp_path / f"page.{suffix}")
    monkeypatch.chdir(tmp_path)
    commands = blocks(section, "sh")
    assert len(commands) == 3
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["hubbub", "dashboard"]
        public = read_settings(words[2:]).public
        assert public is not None
        assert public.origin == "https://stats.example.org"


def test_the_two_commands_are_what_make_runs() -> None:
    for target in ("demo", "test", "soak"):
        result = subprocess.run(
            ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_and_picture_is_there(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
    for target in targets:
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_no_other_document_has_commands_that_nothing_runs() -> None:
    for document in DOCUMENTS[1:]:
        text = document.read_text(encoding="utf-8")
        for command in re.findall(r"^hubbub (\S+)", "\n".join(blocks(text, "sh")), re.MULTILINE):
            assert f"hubbub {command}" in README
