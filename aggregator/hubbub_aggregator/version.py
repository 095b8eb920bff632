"""Which version of Hubbub this is."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    try:
        return version("hubbub")
    except PackageNotFoundError:
        return "unknown"  # run from its sources, without an installation


VERSION: Final = _installed()
