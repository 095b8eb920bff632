"""Names for a sentence about one that is not among them."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

# In a refusal they travel in headers, which hold 8 KiB.
_NAMES: Final = 10


def some(names: Sequence[str], asked: str) -> str:
    """All the names if they are few, else the nearest to what was asked, or the first."""
    if len(names) <= _NAMES:
        return ", ".join(names) or "none"
    shown = get_close_matches(asked, names, _NAMES) or names[:_NAMES]
    return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
