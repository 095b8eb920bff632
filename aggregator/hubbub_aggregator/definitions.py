"""metrics.toml: what an operator writes, checked for form. The rules are the contract's."""

import json
import re
import tomllib
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from hubbub_aggregator.mistakes import Mistake

DEFAULT_ENDPOINT: Final = "localhost:7443"

# What a contract's integers hold; what of it makes sense is the contract's to say.
_LARGEST: Final = 2**63 - 1

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
# Characters of a faulty value that are shown.
_SHOWN: Final = 40
# Beyond any ε that could be accepted.
_EPSILON_DIGITS: Final = 32
_DURATION: Final = re.compile(r"([1-9][0-9]{0,9})([smhdw])")


class DefinitionError(Mistake):
    """A metrics.toml that cannot be read as one; the message says where and why."""


def _seconds(value: object) -> object:
    """Read "90s", "15m", "12h", "1d" or "2w"; leaves whole seconds as they are."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('must be a duration such as "90s", "15m", "12h", "1d" or "2w"')
    return int(match[1]) * _UNITS[match[2]]


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
        # Not astimezone(), which has no year 0 or 10000 to put it in.
        moment = int(value.timestamp())
        if moment < 0:
            raise ValueError("must not be before 1970-01-01T00:00:00Z")
        return moment
    raise ValueError("must be a time such as 2026-12-01T00:00:00Z")


def _epsilon_text(value: object) -> object:
    """Take ε as text, or as a TOML number, whose digits tomllib handed over unrounded."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    number = Decimal(value)
    # 1e999999999 would be a gigabyte of zeros; as it stands it is refused as well.
    return f"{number:f}" if abs(number.adjusted()) <= _EPSILON_DIGITS else f"{number:.3e}"


def _fraction(value: object) -> object:
    """Take a share as a TOML number, which tomllib handed over as a Decimal or an int."""
    return float(value) if isinstance(value, Decimal) else value


Seconds = Annotated[int, BeforeValidator(_seconds), Field(ge=0, le=_LARGEST)]
Moment = Annotated[int, BeforeValidator(_moment)]
EpsilonText = Annotated[str, BeforeValidator(_epsilon_text)]
Share = Annotated[float, BeforeValidator(_fraction), Field(ge=0, le=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OnceDefinition(_Strict):
    """`schedule = "once"`, or a table with its limits."""

    starts: Moment | None = None
    ends: Moment | None = None


class PeriodicDefinition(_Strict):
    """`schedule = { every = "1d", rounds = 8 }`; sampled with `join`, memoised with `permanent`."""

    every: Seconds
    rounds: Annotated[int, Field(ge=1, le=_LARGEST)]
    grace: Seconds | None = None
    starts: Moment | None = None
    join: Annotated[int, Field(ge=1, le=_LARGEST)] | None = None
    permanent: EpsilonText | None = None
    cells: Annotated[int, Field(ge=2, le=_LARGEST)] | None = None

    @model_validator(mode="after")
    def _cells_are_of_a_memo(self) -> Self:
        if self.cells is not None and self.permanent is None:
            raise ValueError('cells goes with permanent, such as permanent = "2"')
        return self


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
    values: list[str] = []
    open: bool = False
    other: str = ""
    absent: str = ""
    epsilon: EpsilonText
    schedule: ScheduleDefinition = "once"
    mechanism: Literal[
        "auto",
        "randomised-response",
        "symmetric-unary",
        "optimised-unary",
        "subset-selection",
        "projective-geometry",
        "local-hashing",
        "memoised-randomised-response",
        "memoised-symmetric-unary",
        "memoised-optimised-unary",
        "memoised-local-hashing",
    ] = "auto"
    max_payload_bytes: Annotated[int, Field(ge=1, le=_LARGEST)] | None = None
    expected_share: Share | None = None
    retain: bool = False

    @property
    def permanent(self) -> str | None:
        """ε∞, if the metric is memoised."""
        form = self.schedule
        return form.permanent if isinstance(form, PeriodicDefinition) else None

    @property
    def cells(self) -> int | None:
        """The most rows that a memo may have, if that was said."""
        form = self.schedule
        return form.cells if isinstance(form, PeriodicDefinition) else None


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
    except RecursionError:
        raise DefinitionError(f"{path} is nested too deeply") from None
    except (ValueError, ArithmeticError):
        # The two that int and Decimal raise, which tomllib lets through.
        raise DefinitionError(f"{path} has a number with too many digits") from None
    try:
        return Definitions.model_validate(table)
    except ValidationError as error:
        raise DefinitionError(f"{path}: {_first_fault(table, error)}") from None


# What is wrong, by what pydantic calls it.
_WORDS: Final = {
    "missing": "is missing",
    "list_type": 'must be a list such as ["a", "b"]',
    "string_type": "must be text, in quotes",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number, not {input}",
    "float_type": "must be a number such as 0.2, not {input}",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than_equal": "must be at most {le:,}",
    "value_error": "{error}",
}

_SCHEDULE_FORMS: Final[dict[str, type[_Strict]]] = {
    "once": OnceDefinition,
    "periodic": PeriodicDefinition,
}


def _first_fault(table: dict[str, Any], error: ValidationError) -> str:
    """Say where the first fault lies, by the metric's name where there is one.

    An unknown key goes first: it may be what something else is missing for.
    """
    faults = error.errors(include_url=False)
    fault = min(faults, key=lambda fault: fault["type"] != "extra_forbidden")
    location = list(fault["loc"])
    model: type[_Strict] = Definitions
    where: list[str] = []
    if location[:1] == ["metric"] and len(location) > 1 and isinstance(location[1], int):
        metric = table["metric"][location[1]]
        name = metric.get("name") if isinstance(metric, dict) else None
        if isinstance(name, str) and name:
            where.append(f"metric {name[:64]!r}")
        else:
            where.append(f"metric number {location[1] + 1}")
        model = MetricDefinition
        location = location[2:]
        if location[:1] == ["schedule"] and len(location) > 1:
            # The form of a schedule is in the location, but not in the file.
            model = _SCHEDULE_FORMS.get(str(location.pop(1)), model)
    where += [
        f"number {part + 1}" if isinstance(part, int) else _printable(part) for part in location
    ]
    return ": ".join([*where, _sentence(fault, model)])


def _shown(value: object) -> str:
    """A value as TOML has it, or nearly, and not much of it."""
    try:
        return _printable(json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN])
    except (RecursionError, ValueError):
        # Tables in tables by a key with very many dots; a hexadecimal number of any length.
        return "what stands there"


def _printable(text: str) -> str:
    """The text, or what is written for one that would steer a terminal."""
    return text if text.isprintable() else ascii(text)


def _sentence(fault: ErrorDetails, model: type[_Strict]) -> str:
    """What is wrong, in words that follow the key's name."""
    match fault["loc"], fault["type"]:
        case _, "extra_forbidden":
            return f"is not a key here; those that are: {', '.join(model.model_fields)}"
        case ("metric",) | ("metric", int()), _:
            return "write [[metric]], in two brackets, above the keys of each question"
        case (*_, "epsilon" | "permanent"), "string_type":
            return 'must be a number or text, such as 0.5, "1" or "ln 3"'
        case (*_, "word"), "literal_error":
            return 'must be "once" or a table such as { every = "1d", rounds = 8 }'
        case _, kind:
            words = _WORDS.get(kind, "{message}")
            return words.format(
                message=fault["msg"], input=_shown(fault["input"]), **fault.get("ctx", {})
            )
