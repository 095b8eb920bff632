"""Sealed reports, and the key that opens them."""

from typing import NamedTuple

from hubbub_aggregator.keys import OpeningKey

Opened = list[bytes | None]
"""Report id ‖ payload of each report; None: it does not open."""


class Sealed(NamedTuple):
    """Reports of one request, sealed to one key and for one metric and round."""

    key: OpeningKey
    info: bytes
    """HPKE's, which says what they are for."""
    reports: bytes
    """Back to back."""
    size: int
    """Bytes of each."""

    def __len__(self) -> int:
        return len(self.reports) // self.size

    def open(self) -> Opened:
        """Open each of them."""
        reports, size = self.reports, self.size
        return [
            self.key.open(self.info, reports[at : at + size]) for at in range(0, len(reports), size)
        ]
