"""Plain text tables for a terminal: columns of equal width, nothing cut, no colour."""

from collections.abc import Sequence

_GAP = "  "


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Lay out rows under a header; the first `left` columns are text, the rest figures."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        _GAP.join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    )
