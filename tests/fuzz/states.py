"""The state directories that ledgers are fuzzed from: states.zip. To make it anew:

python -m tests.fuzz.states
"""

import io
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from hubbub.ledger import Ledger
from tests import lives
from tests.bundles import Operator

FORMS = ("closed", "killed", "reset")
_ARCHIVE = Path(__file__).parent / "states.zip"

Files = Mapping[str, bytes]


def load() -> dict[str, Files]:
    """The files of each form: a ledger that was closed, one that a kill left with its log, and
    the closed one's younger self with the sidecar of the older."""
    found: dict[str, dict[str, bytes]] = {form: {} for form in FORMS}
    with zipfile.ZipFile(io.BytesIO(_ARCHIVE.read_bytes())) as archive:
        for member in archive.namelist():
            form, _, name = member.partition("/")
            found[form][name] = archive.read(member)
    return dict(found)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".zip"}


def _make(scratch: Path) -> dict[str, Files]:
    state = scratch / "state"
    bundle = lives.bundle_of_all(Operator.create(scratch / "keys"))
    ledger = Ledger.open(str(state))
    lives.adopt(ledger, bundle)
    ledger.close()
    younger = _files(state)
    ledger = Ledger.open(str(state))
    lives.live(ledger, bundle)
    killed = _files(lives.copy_of(state, scratch / "killed"))
    ledger.close()
    closed = _files(state)
    return {"closed": closed, "killed": killed, "reset": {**closed, **_but_sidecar(younger)}}


def _but_sidecar(files: Files) -> Files:
    return {name: content for name, content in files.items() if name != "generation"}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        made = _make(Path(scratch))
    with zipfile.ZipFile(_ARCHIVE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for form, files in made.items():
            for name, content in files.items():
                archive.writestr(f"{form}/{name}", content)


if __name__ == "__main__":
    main()
