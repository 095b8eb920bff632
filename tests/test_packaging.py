"""The package: what a device installs, and that the floors fit the generated code."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GENERATED = ROOT / "client" / "hubbub" / "v1"


def floor(name: str) -> str:
    """The lowest version of a base dependency that we say we work with."""
    (requirement,) = (
        requirement
        for requirement in map(Requirement, PROJECT["dependencies"])
        if requirement.name == name
    )
    (lowest,) = (part.version for part in requirement.specifier if part.operator == ">=")
    return lowest


def versions(pattern: str) -> set[str]:
    """What the generated files say they need, by a pattern with one group."""
    texts = [path.read_text() for path in GENERATED.glob("*_pb2*.py")]
    found = {version for text in texts for version in re.findall(pattern, text)}
    assert found
    return found


def test_the_device_installs_three_packages_and_no_more() -> None:
    names = {Requirement(text).name for text in PROJECT["dependencies"]}
    assert names == {"grpcio", "protobuf", "cryptography"}


def test_the_floors_are_what_the_generated_code_needs() -> None:
    assert versions(r"# Protobuf Python Version: (\S+)") == {floor("protobuf")}
    needed = versions(r"GRPC_GENERATED_VERSION = '(\S+)'")
    assert needed == {f"{floor('grpcio')}.0"}


def test_constraints_pin_every_version_and_name_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all("==" in pin for pin in pins)
    assert "://" not in "\n".join(lines)
    pinned = {Requirement(pin).name.lower() for pin in pins}
    direct = {Requirement(text).name for text in PROJECT["dependencies"]}
    for extra in PROJECT["optional-dependencies"].values():
        direct |= {Requirement(text).name for text in extra}
    assert direct - {"hubbub"} <= pinned
