"""Write the Python code of protos/ into client/hubbub/v1, or with --check compare it.

Run by `nox -s protos`, in an environment of its own: the generator's version sets the
lowest protobuf and grpcio that the SDK can be installed with.
"""

import argparse
import filecmp
import importlib.resources
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
PACKAGE = Path("hubbub/v1")


def generate(out: Path) -> None:
    """Write the message, stub and type files of every .proto file below `out`."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    includes = importlib.resources.files("grpc_tools") / "_proto"
    # mypy-protobuf installs its plug-ins beside the running Python.
    plugins = [
        f"--plugin=protoc-gen-{name}={Path(sys.executable).parent / f'protoc-gen-{name}'}"
        for name in ("mypy", "mypy_grpc")
    ]
    outputs = [f"--{kind}_out={out}" for kind in ("python", "mypy", "grpc_python", "mypy_grpc")]
    arguments = ["protoc", f"-I{PROTOS}", f"-I{includes}", *plugins, *outputs, *sources]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")


def generated_files(root: Path) -> set[Path]:
    return {path.relative_to(root) for path in (root / PACKAGE).glob("*_pb2*")}


def check() -> int:
    """Return 1, naming each file, if the committed code is not what protos/ gives."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        generate(fresh)
        committed = ROOT / "client"
        stale = [
            path
            for path in sorted(generated_files(fresh) | generated_files(committed))
            if not (fresh / path).exists()
            or not (committed / path).exists()
            or not filecmp.cmp(fresh / path, committed / path, shallow=False)
        ]
    for path in stale:
        print(f"stale: client/{path} (run: make protos)", file=sys.stderr)
    return 1 if stale else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if parser.parse_args().check:
        return check()
    generate(ROOT / "client")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
