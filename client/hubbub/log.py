"""The SDK's log, "hubbub": silent unless the host listens, and loaded with its first line.

logging is a tenth of a device's start, and most starts have nothing to say.
"""

from contextlib import suppress


def warning(message: str, *details: object) -> None:
    """Something went wrong that the host was not told by a return value or an exception."""
    _write("WARNING", message, details)


def info(message: str, *details: object) -> None:
    """Something that is part of life, such as an aggregator that is away."""
    _write("INFO", message, details)


def _write(level: str, message: str, details: tuple[object, ...]) -> None:
    # A host that is ending can no longer import, and must not hear of it from here.
    with suppress(Exception):
        import logging

        logger = logging.getLogger("hubbub")
        if not logger.handlers:
            # Without one, Python would print warnings for hosts that never asked for any.
            logger.addHandler(logging.NullHandler())
        # The caller's place, two calls up, is what the line is about.
        logger.log(getattr(logging, level), message, *details, stacklevel=3)
