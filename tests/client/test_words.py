"""The words of the statement: all in one catalogue, put into any language, and laid out well."""

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from hubbub.errors import InvalidWords
from hubbub.mechanisms import MEMOISED
from hubbub.rows import Status
from hubbub.statement import ENGLISH, Statement, Words
from hubbub.statement.facts import Asked
from hubbub.statement.layout import COLUMNS
from tests import owners
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Device
from tools import owner_sample

# Said by commands, and not by the page; see test_command_line.py.
COMMANDS = {key for key in ENGLISH if key.startswith("done.")}


@pytest.fixture(scope="module")
def pages(operator: Operator) -> list[Statement]:
    """Statements that have everything to say between them."""
    with owners.month(operator) as owned:
        month = owned.client.statement()
    wide = make_metric("wide", values=[str(n) for n in range(300)], mechanism="symmetric-unary")
    series = make_metric("series", periodic=(owners.DAY, 60, owners.DAY), join=30)
    bundle = make_bundle(operator, wide, series, make_metric())
    with Device(bundle, None, budgets={"health": "32"}) as client:
        for name in bundle.metrics:
            client.metric(name).record("7")
        more = client.statement()
    with Device(bundle, None, budgets={"health": "1"}) as client:
        client.metric("series")
        poor = client.statement()
    return [
        month,
        month._replace(
            collection="paused", chosen_at=month.as_of, metrics=tuple(map(_eventful, month.metrics))
        ),
        month._replace(collection="opted-out", chosen_at=month.as_of, metrics=(), bundles=()),
        month._replace(bundles=tuple(b._replace(fetched=True) for b in month.bundles)),
        month._replace(bundles=tuple(b._replace(adopted_at=None) for b in month.bundles)),
        more,
        poor,
    ]


def _eventful(metric: Asked) -> Asked:
    """The metric, with every status, departures of every kind, and nobody known to ask it."""
    report = next(report for report in metric.reports if report.departures)
    gone = report.departures[0]
    twice = report._replace(departures=(gone, gone._replace(sha256=None)))
    deleted = report._replace(payload=None, report_id=None)
    silent = report._replace(says=(), says_count=0, says_one_in=None)
    reports = [report._replace(status=status.name.lower()) for status in Status]
    return metric._replace(
        operator=None,
        asked=False,
        left=None,
        series=metric.series
        and metric.series._replace(
            payments=tuple(each._replace(in_force=False) for each in metric.series.payments)
        ),
        reports=(*reports, twice, deleted, silent),
    )


# Words.


class Heard(Words):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()

    def __call__(self, key: str, /, **fields: object) -> str:
        self.keys.add(key)
        return super().__call__(key, **fields)


def test_every_sentence_is_said_somewhere(pages: list[Statement]) -> None:
    heard = Heard()
    for facts in pages:
        facts.text(heard)
    assert set(ENGLISH) - COMMANDS - heard.keys == set()


# Letters of another alphabet, so that what is still English shows.
ELSEWHERE = {ord("a") + n: 0x430 + n for n in range(26)} | {
    ord("A") + n: 0x410 + n for n in range(26)
}


def translated(template: str) -> str:
    """A template whose words are in no language, with its fields."""
    return "".join(
        literal.translate(ELSEWHERE) + ("" if name is None else f"{{{name}}}")
        for literal, name, _, _ in Formatter().parse(template)
    )


# Commands, times, periods, and what is hexadecimal.
SAME_EVERYWHERE = re.compile(
    r"`python -m hubbub [^`]*`|ed25519:|localhost:7443|\d{4}-\d\d-\d\dT[\d:]+Z"
    r"|\b\d+[dhms]\b|\b[0-9a-f]+\b|ln 2"
)


def test_no_english_is_left_in_a_translation(pages: list[Statement]) -> None:
    words = Words({key: translated(template) for key, template in ENGLISH.items()})
    for facts in pages:
        text = " ".join(facts.text(words, newest=None).split())
        text = SAME_EVERYWHERE.sub("", text)
        for own in _operators_own(facts):
            text = text.replace(own, "")
        assert re.findall(r"[A-Za-z]+", text) == []


def _operators_own(facts: Statement) -> list[str]:
    """Names, labels and questions of contracts; the longest first."""
    own: set[str] = {budget.source for budget in facts.budgets}
    for metric in facts.metrics:
        own |= {metric.metric, metric.question, metric.mechanism, *metric.parameters}
        own |= {*metric.answers, metric.absent or "", metric.other or ""}
    return sorted(own - {""}, key=len, reverse=True)


def test_what_is_not_translated_stays_english(pages: list[Statement]) -> None:
    words = Words({"heading.who": "Wer sieht was"})
    assert pages[0].text(words) == pages[0].text().replace("Who can see what", "Wer sieht was")


@pytest.mark.parametrize(
    ("key", "template", "reason"),
    [
        ("no.such", "text", "nothing to translate under 'no.such'"),
        ("title", "", "has other fields than {as_of}"),
        ("title", "{as_of} {more}", "has other fields than {as_of}"),
        ("title", "{as_of!r}", "has other fields than {as_of}"),
        ("title", "{as_of:>99999999}", "has other fields than {as_of}"),
        ("title", "{as_of.__class__}", "has other fields than {as_of}"),
        ("title", "{}", "has other fields than {as_of}"),
        ("heading.who", "{command}", "has other fields than none"),
        ("title", "{as_of", "cannot be read"),
        ("title", "}", "cannot be read"),
        ("title", 7, "is not text"),
    ],
)
def test_a_translation_that_does_not_fit(
    tmp_path: Path, key: str, template: object, reason: str
) -> None:
    file = tmp_path / "words.json"
    file.write_text(json.dumps({key: template}), encoding="utf-8")
    with pytest.raises(InvalidWords, match=re.escape(reason)):
        Words.load(file)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'"title"', b"[" * 100_000])
def test_a_translation_that_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "words.json"
    file.write_bytes(content)
    with pytest.raises(InvalidWords, match="JSON"):
        Words.load(file)


# What ε does not give.
@pytest.mark.parametrize("word", [r"anonym", r"\bsafe", r"\bsecure", r"\bguarantee"])
def test_noise_is_not_called_more_than_it_is(word: str) -> None:
    said = [*ENGLISH.values(), owner_sample.DOCUMENT.read_text(encoding="utf-8")]
    assert not [text for text in said if re.search(word, text, re.IGNORECASE)]


# Layout.

HOSTILE = (
    'yes", "no',
    "שלום עולם",
    "مرحبا, 100 % sure",
    "W" * 256,
    "名" * 85,
    "👩\u200d👩\u200d👧\u200d👦 " * 5 + "👦",
    "e" + "\u0301" * 100,
    "a" + " " * 200 + "Budgets",
    "Budgets",
)
ISOLATE, ISOLATE_END = "\u2068", "\u2069"


@pytest.fixture(scope="module")
def hostile(operator: Operator) -> Statement:
    question = f"{'Q' * 300} {'שאלה ' * 40}?"
    contract = make_metric(values=HOSTILE, question=question, mechanism="symmetric-unary")
    with Device(make_bundle(operator, contract), None) as client:
        client.metric("health.self_rated").record("Budgets")
        return client.statement()


def test_nothing_that_a_contract_says_breaks_the_page(
    pages: list[Statement], hostile: Statement
) -> None:
    headings = _left_margin(pages[5].text())
    for facts in (*pages, hostile):
        for line in facts.text(newest=None).splitlines():
            assert _columns(line) <= COLUMNS
            assert line == line.rstrip()
            # What is written from right to left ends where it ends, in each line.
            assert line.count(ISOLATE) == line.count(ISOLATE_END)
            outside = re.sub(f"{ISOLATE}.*?{ISOLATE_END}", "", line)
            assert {"R", "AL", "AN"}.isdisjoint(map(unicodedata.bidirectional, outside))
    assert _left_margin(hostile.text()) <= headings | {"Metric health.self_rated"}


def _left_margin(text: str) -> set[str]:
    """What stands at the very left."""
    lines = [line for line in text.splitlines() if line and not line.startswith(" ")]
    return {re.split(r"  | by its own| of \d", line)[0] for line in lines}


def _columns(line: str) -> int:
    """How wide a terminal shows a line."""
    shown = [c for c in line if unicodedata.category(c) not in ("Mn", "Me", "Cf")]
    return len(shown) + sum(unicodedata.east_asian_width(c) in "WF" for c in shown)


def test_a_label_ends_where_it_ends(hostile: Statement) -> None:
    text = " ".join(hostile.text().split())
    assert '"yes\\", \\"no", \u2068"שלום עולם"\u2069, \u2068"مرحبا, 100 % sure"\u2069' in text
    (metric,) = json.loads(hostile.json())["metrics"]
    assert tuple(metric["answers"]) == HOSTILE


# The document.


def test_the_sample_in_the_documents_is_up_to_date(operator: Operator) -> None:
    written = owner_sample.DOCUMENT.read_text(encoding="utf-8")
    assert written == owner_sample.document(operator)


def test_every_key_of_the_json_is_documented(pages: list[Statement]) -> None:
    document = owner_sample.DOCUMENT.read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z0-9_]+)`", document))
    keys = {key for facts in pages for key in _keys(json.loads(facts.json()))}
    assert keys - documented == set()


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "parameters":
                yield from _keys(inner)
            yield key
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def test_every_form_is_in_the_month(pages: list[Statement]) -> None:
    forms = [metric.schedule.form for metric in pages[0].metrics]
    assert set(forms) == {"once", "fresh", "sampled", "memoised"}
    assert forms.count("memoised") == len(MEMOISED)
