"""Settings: flags over environment over file over defaults, and nothing unknown."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from hubbub_aggregator.app import app
from hubbub_aggregator.settings import Settings, SettingsError, load_settings


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "hubbub.toml"
    path.write_text(text)
    return path


def test_defaults() -> None:
    settings = load_settings({}, None)
    assert settings.listen == "[::]:7443"
    assert settings.private_listen == "127.0.0.1:7444"
    assert settings.store == "sqlite:///hubbub.sqlite3"
    assert settings.publish.step == 100
    assert settings.threads == 64
    assert not settings.private_tls
    assert settings.metrics_listen is None
    assert settings.lame_duck == 1
    assert settings.log_format == "text"


def test_the_documentation_lists_every_setting() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
    listed = set(re.findall(r"^\| `--[a-z-]+` \| `HUBBUB_([A-Z_]+)`", text, re.MULTILINE))
    fields = {name.upper() for name in Settings.model_fields} - {"PUBLISH"}
    assert listed == fields | {"PUBLISH__STEP"}
    # And every flag, of which some are no settings.
    flags = re.findall(
        r"^\| `(--[a-z-]+)` \|", text.partition("## When something")[0], re.MULTILINE
    )
    commands: Any = typer.main.get_command(app)
    options = [one.opts[0] for one in commands.get_command(None, "serve").params]
    assert sorted(flags) == sorted(one for one in options if one.startswith("--"))


def test_each_source_goes_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config(tmp_path, 'threads = 1\nstore = "a"\nlisten = "h:1"\n[publish]\nstep = 7\n')
    monkeypatch.setenv("HUBBUB_THREADS", "2")
    monkeypatch.setenv("HUBBUB_STORE", "b")
    settings = load_settings({"threads": 3}, path)
    assert (settings.threads, settings.store, settings.listen) == (3, "b", "h:1")
    assert settings.publish.step == 7


def test_an_empty_archive_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the folder that the aggregator was started in; it overrides as any other does."""
    path = config(tmp_path, 'archive = "a"\n')
    assert load_settings({}, path).archive == Path("a")
    assert load_settings({"archive": ""}, path).archive is None
    assert load_settings({"archive": "."}, path).archive == Path()
    monkeypatch.setenv("HUBBUB_ARCHIVE", "")
    assert load_settings({}, path).archive is None
    assert load_settings({"archive": "b"}, path).archive == Path("b")
    assert load_settings({}, config(tmp_path, 'archive = ""\n')).archive is None


def test_nested_names_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_PUBLISH__STEP", "5")
    assert load_settings({}, None).publish.step == 5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("thread = 3", "unknown setting 'thread'"),
        ("[publish]\nsteps = 3", "unknown setting 'publish.steps'"),
        ("threads = 0", "setting 'threads': input should be greater than or equal to 1"),
        ("publish.step = 0", "setting 'publish.step'"),
        ('listen = "7443"', "setting 'listen'"),
        ('listen = "127.0.0.1:99999"', "setting 'listen': a port is 0 to 65535, not 99999"),
        ('private_listen = "[::1]:65536"', "setting 'private_listen': a port is 0 to 65535"),
        ("metrics_listen = 70000", "setting 'metrics_listen': a port is 0 to 65535, not 70000"),
        ('metrics_listen = "all"', "setting 'metrics_listen'"),
        ("lame_duck = -1", "setting 'lame_duck'"),
        ('log_format = "xml"', "setting 'log_format'"),
        ("threads = ", "is not TOML"),
        # The rest was found by fuzzing: tomllib lets through what Python raises.
        (f"threads = {'9' * 5_000}", "has a number with too many digits"),
        (f"threads = {'[' * 5_000}", "is nested too deeply"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings({}, config(tmp_path, text))
    assert sentence in str(raised.value)


@pytest.mark.parametrize("variable", ["HUBBUB_THREAD", "HUBBUB_PUBLISH__STEPS"])
def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "3")
    with pytest.raises(SettingsError, match="unknown setting") as raised:
        load_settings({}, None)
    assert variable.removeprefix("HUBBUB_").split("__")[-1].lower() in str(raised.value).lower()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read"):
        load_settings({}, tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (9464, "127.0.0.1:9464"),
        ("9464", "127.0.0.1:9464"),
        ("0.0.0.0:9464", "0.0.0.0:9464"),
        ("[::1]:9464", "[::1]:9464"),
    ],
)
def test_a_metrics_port_alone_is_on_loopback(given: object, address: str) -> None:
    assert load_settings({"metrics_listen": given}, None).metrics_listen == address


@pytest.mark.parametrize("text", ["x", '{"step', f'{{"step": {"9" * 5_000}}}', "[" * 100_000])
def test_a_table_in_the_environment_that_is_no_json(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Found by fuzzing: what reads the environment has errors of its own."""
    monkeypatch.setenv("HUBBUB_PUBLISH", text)
    with pytest.raises(SettingsError, match="HUBBUB_PUBLISH in the environment is not JSON"):
        load_settings({}, None)
