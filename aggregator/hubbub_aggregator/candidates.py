"""Candidates: texts that an open domain is asked about, since it lists none by itself."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hubbub.domain import is_text_answer
from hubbub.limits import MAX_LABEL_BYTES
from hubbub_aggregator.mistakes import Mistake

# A list that people read, and whose intervals, which hold all at once, are not too wide to be
# of use.
MAX_CANDIDATES: Final = 1_000


class CandidatesError(Mistake):
    """Candidates that cannot be asked about; the message says which and why."""


def require_candidates(candidates: Sequence[str]) -> None:
    """Check that they are few, distinct, and texts that a device can answer with.

    Raises CandidatesError.
    """
    if not 0 < len(candidates) <= MAX_CANDIDATES:
        raise CandidatesError(
            f"candidates must be 1 to {MAX_CANDIDATES:,}, not {len(candidates):,}"
        )
    for candidate, times in Counter(candidates).items():
        if not is_text_answer(candidate):
            raise CandidatesError(
                f"candidate {candidate[:40]!r} is not 1 to {MAX_LABEL_BYTES} bytes of text"
            )
        if times > 1:
            raise CandidatesError(f"candidate {candidate[:40]!r} is listed twice")


def read_candidates(path: Path) -> list[str]:
    """Read a file of candidates, one a line; blank lines are skipped, spaces kept.

    Raises CandidatesError or OSError.
    """
    try:
        # A spreadsheet may have put a byte order mark before the first.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CandidatesError(f"{path} is not UTF-8 text") from None
    candidates = [line for line in text.split("\n") if line.strip()]
    try:
        require_candidates(candidates)
    except CandidatesError as error:
        raise CandidatesError(f"{path}: {error}") from None
    return candidates
