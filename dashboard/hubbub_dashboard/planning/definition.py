"""The planned metric as metrics.toml, and what `hubbub sign` would say against it."""

import json
import tomllib
from functools import lru_cache
from typing import Final

from hubbub.contract import parse_metric
from hubbub.errors import InvalidContract, MalformedBundle
from hubbub_aggregator.definitions import MetricDefinition
from hubbub_aggregator.drafting import draft
from hubbub_dashboard.planning.question import Question, answered

_WIDTH: Final = 88


@lru_cache(maxsize=64)
def definition(question: Question) -> str:
    """A whole metrics.toml; its question and names are there to be replaced."""
    lines = [
        "[[metric]]",
        'name = "my.metric"',
        'question = "What do you ask?"',
        'source = "my.source"',
        _values(question.labels),
        f"epsilon = {_text(question.epsilon)}",
        *([_schedule(question)] if question.rounds is not None else []),
    ]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=64)
def refusal(question: Question) -> str | None:
    """Why it could not be signed, such as two values of one name; None: it could."""
    mechanism = answered(question).prospects[0].mechanism
    (table,) = tomllib.loads(definition(question))["metric"]
    contract = draft(MetricDefinition.model_validate(table), 0, mechanism)
    try:
        parse_metric(contract.SerializeToString(deterministic=True))
    except (InvalidContract, MalformedBundle) as error:
        return str(error)
    return None


def _values(labels: tuple[str, ...]) -> str:
    quoted = [_text(label) for label in labels]
    line = f"values = [{', '.join(quoted)}]"
    if len(line) <= _WIDTH:
        return line
    return "\n".join(["values = [", *(f"  {label}," for label in quoted), "]"])


def _schedule(question: Question) -> str:
    """A day between two rounds, since a plan does not say how long one takes."""
    parts = ['every = "1d"', f"rounds = {question.rounds}"]
    if question.join is not None:
        parts.append(f"join = {question.join}")
    if question.permanent is not None:
        parts.append(f"permanent = {_text(question.permanent)}")
    if question.cells is not None:
        parts.append(f"cells = {question.cells}")
    return f"schedule = {{ {', '.join(parts)} }}"


def _text(said: str) -> str:
    """As TOML quotes it, which is as JSON does; but DEL has to be escaped as well."""
    return json.dumps(said, ensure_ascii=False).replace("\x7f", "\\u007f")
