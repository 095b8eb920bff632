"""Begins corpora: python -m tests.fuzz.seed FOLDER writes each target's seeds to a folder in it."""

import hashlib
import sys
from pathlib import Path

from tests.fuzz import targets


def main() -> None:
    for name in targets.NAMES:
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for data in targets.target(name).seeds():
            (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


if __name__ == "__main__":
    main()
