"""What the aggregator says of itself: lines for people, or JSON objects for machines.

No log holds a payload, a report's id or who sent it. Our own messages have none; what others'
code raises or logs may quote what it was given, so of that only the kind and the place is told:
gRPC quotes a peer, the database's driver the parameters of a statement.
"""

import json
import logging
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from traceback import extract_tb
from types import TracebackType
from typing import Any, Final, TextIO

_OURS: Final = "hubbub"
_AGGREGATOR: Final = "hubbub_aggregator"
# How an exception's origin is told: as many frames as lead to it from ours.
_FRAMES: Final = 12


class LogFormat(StrEnum):
    """How lines are written."""

    TEXT = "text"
    JSON = "json"


class Speaker:
    """Says on standard output what a person, or a program, that starts the process waits for."""

    def __init__(self, form: LogFormat, stream: TextIO | None = None) -> None:
        self._form = form
        self._stream = stream

    def say(self, event: str, text: str, **fields: Any) -> None:
        """`text` for people; the `event` with its `fields` for machines."""
        line = text if self._form is LogFormat.TEXT else _line("INFO", event, fields)
        # Flushed, so that whoever started this process can read its ports and wait for "ready".
        print(line, file=self._stream or sys.stdout, flush=True)


def set_up(form: LogFormat, stream: TextIO | None = None) -> None:
    """From now on whatever is logged goes to standard error, a line each but for traces."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Text() if form is LogFormat.TEXT else _Json())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_AGGREGATOR).setLevel(logging.INFO)
    # gRPC's own handlers, if it has any, would write past this one.
    for name in ("grpc", "grpc._server", "grpc._common", "grpc._cython.cygrpc"):
        logging.getLogger(name).handlers = []
    threading.excepthook = _thread_died


def log_refusal(sentence: str) -> None:
    """Why the process does not start."""
    logging.getLogger(_AGGREGATOR).error(sentence, extra={"event": "refused"})


def _thread_died(died: threading.ExceptHookArgs, /) -> None:
    if died.exc_type is SystemExit or died.exc_value is None:
        return
    logging.getLogger(_AGGREGATOR).error(
        "a thread ended by a fault; restart the aggregator",
        exc_info=(died.exc_type, died.exc_value, died.exc_traceback),
        extra={"event": "thread_died"},
    )


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        lines = [f"{record.levelname}: {_message(record)}"]
        lines += [f"  {kind}{place}" for kind, place in _spelt(record)]
        return "\n".join(lines)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None) or record.module
        fields: dict[str, Any] = {"message": _message(record)}
        fields |= getattr(record, "fields", {})
        trace = [f"{kind}{place}" for kind, place in _spelt(record)]
        if trace:
            fields["trace"] = trace
        return _line(record.levelname, event, fields, record.created)


def _line(level: str, event: str, fields: Mapping[str, Any], created: float | None = None) -> str:
    when = datetime.now(UTC) if created is None else datetime.fromtimestamp(created, UTC)
    time = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = {"time": time, "level": level.lower(), "event": event, **fields}
    return json.dumps(entry, ensure_ascii=False, default=str)


def _message(record: logging.LogRecord) -> str:
    if record.name.partition(".")[0].startswith(_OURS):
        # One line, whatever an error's text holds.
        return " ".join(record.getMessage().split("\n"))
    return f"{record.name.partition('.')[0]} logged a fault; its words are withheld"


def _spelt(record: logging.LogRecord) -> list[tuple[str, str]]:
    """Kind and place of the exceptions of a record, the first cause first; never their words."""
    if not record.exc_info or record.exc_info[1] is None:
        return []
    chain: list[BaseException] = []
    error: BaseException | None = record.exc_info[1]
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return [
        (type(error).__qualname__, f" at {_places(error.__traceback__)}")
        for error in reversed(chain)
    ]


def _places(trace: TracebackType | None) -> str:
    frames = extract_tb(trace)[-_FRAMES:]
    return " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
