"""The SDK's log, "hubbub": silent unless the host listens.

Loaded with the client and not with the first line, though a tenth of its start: a child that was
forked while a thread was loading it would wait for that thread for ever.
"""

import logging
from contextlib import suppress
from typing import Final

_logger: Final = logging.getLogger("hubbub")
# Without one, Python would print warnings for hosts that never asked for any.
_logger.addHandler(logging.NullHandler())


def warning(message: str, *details: object) -> None:
    """Something went wrong that the host was not told by a return value or an exception."""
    _write(logging.WARNING, message, details)


def info(message: str, *details: object) -> None:
    """Something that is part of life, such as an aggregator that is away."""
    _write(logging.INFO, message, details)


def _write(level: int, message: str, details: tuple[object, ...]) -> None:
    # A host's own handlers may raise, and must not be heard of from here.
    with suppress(Exception):
        # The caller's place, two calls up, is what the line is about.
        _logger.log(level, message, *details, stacklevel=3)
