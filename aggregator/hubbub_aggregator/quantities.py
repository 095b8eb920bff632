"""Bytes and seconds as people read them."""

from datetime import timedelta


def size(count: int) -> str:
    """So many bytes, in the unit that suits them."""
    number, units = float(count), iter(("bytes", "KiB", "MiB", "GiB"))
    unit = next(units)
    while number >= 1024 and unit != "GiB":
        number, unit = number / 1024, next(units)
    return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"


def seconds_at_most(seconds: float | None) -> str:
    """An upper bound of a status; None: past the last that is told apart."""
    if seconds is None:
        return "more than a minute"
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def span(seconds: float) -> str:
    """How long something has run: "1 day, 2:03:04"."""
    return str(timedelta(seconds=round(seconds)))
