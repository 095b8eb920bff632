"""metrics.toml: what an operator writes, checked for form. The rules are the contract's."""

import re
import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

DEFAULT_ENDPOINT: Final = "localhost:7443"

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"([1-9][0-9]{0,9})([smhdw])")


class DefinitionError(Exception):
    """A metrics.toml that cannot be read as one; the message says where and why."""


def _seconds(value: object) -> object:
    """Read "90s", "15m", "12h", "1d" or "2w"; leaves whole seconds as they are."""
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise ValueError('must be a duration such as "90s", "15m", "12h", "1d" or "2w"')
        return int(match[1]) * _UNITS[match[2]]
    return value


def _moment(value: object) -> object:
    """Read an RFC 3339 time, quoted or not, as seconds since 1970-01-01 UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be a time such as 2026-12-01T00:00:00Z") from None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError('must say its time zone, for example by a final "Z" for UTC')
        return int(value.astimezone(UTC).timestamp())
    raise ValueError("must be a time such as 2026-12-01T00:00:00Z")


def _epsilon_text(value: object) -> object:
    """Take ε as text, or as a TOML number, whose digits tomllib handed over unrounded."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    return value


Seconds = Annotated[int, BeforeValidator(_seconds), Field(ge=0)]
Moment = Annotated[int, BeforeValidator(_moment), Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OnceDefinition(_Strict):
    """`schedule = "once"`, or a table with its limits."""

    starts: Moment | None = None
    ends: Moment | None = None


class PeriodicDefinition(_Strict):
    """`schedule = { every = "1d", rounds = 8 }`."""

    every: Seconds
    rounds: int
    grace: Seconds | None = None
    starts: Moment | None = None


def _schedule_form(value: object) -> str:
    """Tell which of the three ways to write a schedule is meant, so that faults are about it."""
    if isinstance(value, dict):
        return "periodic" if "every" in value or "rounds" in value else "once"
    return "word"


ScheduleDefinition = Annotated[
    Annotated[Literal["once"], Tag("word")]
    | Annotated[OnceDefinition, Tag("once")]
    | Annotated[PeriodicDefinition, Tag("periodic")],
    Discriminator(_schedule_form),
]


class MetricDefinition(_Strict):
    """One [[metric]] table."""

    name: str
    question: str
    source: str
    values: list[str]
    other: str = ""
    absent: str = ""
    epsilon: Annotated[str, BeforeValidator(_epsilon_text)]
    schedule: ScheduleDefinition = "once"
    mechanism: Literal["auto", "randomised-response", "symmetric-unary", "optimised-unary"] = "auto"


class Definitions(_Strict):
    """A whole metrics.toml."""

    endpoint: str = DEFAULT_ENDPOINT
    metric: list[MetricDefinition] = Field(min_length=1)


def read_definitions(path: Path) -> Definitions:
    """Read a metrics.toml. Raises DefinitionError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DefinitionError(f"{path} is not UTF-8 text") from None
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise DefinitionError(f"{path} is not TOML: {error}") from None
    try:
        return Definitions.model_validate(table)
    except ValidationError as error:
        raise DefinitionError(f"{path}: {_first_fault(table, error)}") from None


def _first_fault(table: dict[str, Any], error: ValidationError) -> str:
    """Say where the first fault lies, by the metric's name where there is one."""
    fault = error.errors(include_url=False)[0]
    location = list(fault["loc"])
    where: list[str] = []
    if location[:1] == ["metric"] and len(location) > 1 and isinstance(location[1], int):
        metric = table["metric"][location[1]]
        name = metric.get("name") if isinstance(metric, dict) else None
        where.append(f"metric {name!r}" if name else f"metric number {location[1] + 1}")
        location = location[2:]
    # The form of a schedule is in the location, but not in the file.
    where += [str(part) for part in location if part not in ("word", "once", "periodic")]
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        message = "is not a key this version knows"
    elif fault["type"] == "missing":
        message = "is missing"
    return ": ".join([*where, message])
