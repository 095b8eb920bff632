"""The domain: which answers there may be, and the index of each.

A listed domain has the values of its contract, an open one every text.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from hubbub.canonical import Reader
from hubbub.digest import sha256
from hubbub.errors import InvalidContract
from hubbub.limits import MAX_LABEL_BYTES, MAX_VALUES
from hubbub.mechanisms.local_hashing import OPEN_PRIME

# Text that a statement or a terminal would not show as it is. Listed here, not asked of
# Python's Unicode tables, which grow: all versions must agree on what a contract may say.
_HIDDEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029"  # control characters and line ends
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of writing
    r"\xad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible
    r"\u115f\u1160\u2800\u3164\uffa0"  # letters and a braille cell that are blank
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format signs
    r"\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff"  # no agreed meaning
    r"\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
# These are invisible too, but Persian, Hindi, Mongolian and emoji are spelled with them: joiners,
# and what selects a variant of a letter. There must be something beside them.
_JOINERS: Final = "\u200c\u200d\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f" + "".join(
    map(chr, range(0xFE00, 0xFE10))
)


class Domain(NamedTuple):
    """The possible answers. Indices count values, then `other`, then `absent`."""

    labels: tuple[str, ...]
    """Of an open domain, `absent` or nothing."""
    other: int | None
    """Index of the answer that stands for everything outside the domain."""
    absent: int | None
    """Index of the answer that stands for "nothing to report"."""
    indices: Mapping[str | None, int]
    """Index of every label, and of None if there is an `absent` answer."""
    open: bool = False
    """Whether every text is an answer, by its `text_index`."""

    @property
    def k(self) -> int:
        """How many indices there are."""
        return OPEN_PRIME if self.open else len(self.labels)

    def index_of(self, answer: str | None) -> int | None:
        """The index of an answer, None standing for "nothing to report"; None: it has none."""
        if not self.open:
            return self.indices.get(answer)
        # Made for every answer, so that all take as long.
        index, is_answer = text_index(answer or ""), is_text_answer(answer or "")
        if answer is None:
            return self.absent
        return index if is_answer else None


def read_domain(name: str, reader: Reader | None) -> Domain:
    """Check the domain of the named metric. Raises InvalidContract or NotCanonical."""
    if reader is None:
        raise InvalidContract(name, "values", "are missing")
    labels, other_label, absent_label = reader.each_text(1), reader.text(2), reader.text(3)
    is_open = reader.flag(4)
    reader.end()
    if is_open and (labels or other_label):
        raise InvalidContract(name, "values", "are not listed in an open domain, nor is other")
    other = absent = None
    if other_label:
        other = len(labels)
        labels.append(other_label)
    if absent_label:
        absent = len(labels)
        labels.append(absent_label)
    if not (is_open or 2 <= len(labels) <= MAX_VALUES):
        raise InvalidContract(name, "values", f"must be 2 to {MAX_VALUES:,}, not {len(labels)}")
    indices: dict[str | None, int] = {}
    for number, label in enumerate(labels):
        if not is_printable(label, MAX_LABEL_BYTES):
            raise InvalidContract(
                name,
                "values",
                f"{label[:40]!r} is not 1 to {MAX_LABEL_BYTES} bytes of printable text",
            )
        if label in indices:
            raise InvalidContract(name, "values", f"{label[:40]!r} is listed twice")
        indices[label] = text_index(label) if is_open else number
    if absent is not None:
        indices[None] = absent = indices[absent_label]
    return Domain(tuple(labels), other, absent, MappingProxyType(indices), is_open)


def is_printable(text: str, most_bytes: int) -> bool:
    """Whether a person can read it as it stands, with no space before or after it."""
    return (
        0 < len(text.encode()) <= most_bytes
        and text == text.strip()
        and text.strip(_JOINERS) != ""
        and not _HIDDEN.search(text)
    )


def is_text_answer(answer: str) -> bool:
    """Whether a text may answer an open domain's question: 1 to 256 bytes of UTF-8."""
    data = _text_bytes(answer)
    return 0 < len(data) <= MAX_LABEL_BYTES and data.decode(errors="replace") == answer


def text_index(text: str) -> int:
    """The index of a text in an open domain: in [0, 2^61 − 1).

    The first 8 bytes of a SHA-256, modulo 2^61 − 1, of the text's length in 2 bytes and its
    UTF-8 padded to 256: hashing takes as long for every text.
    """
    data = _text_bytes(text)[:MAX_LABEL_BYTES]
    padded = len(data).to_bytes(2, "big") + data.ljust(MAX_LABEL_BYTES, b"\0")
    return int.from_bytes(sha256(padded)[:8], "big") % OPEN_PRIME


def _text_bytes(text: str) -> bytes:
    """The UTF-8 of as much of a text as shows whether it is too long."""
    # Python's texts may hold halves of characters, which UTF-8 has no bytes for: such a text is
    # no answer, but takes the same steps.
    return text[: MAX_LABEL_BYTES + 1].encode(errors="surrogatepass")
