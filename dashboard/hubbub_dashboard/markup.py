"""The page's own HTML: header, provenance, table. Pure; every text from outside is escaped."""

from html import escape

from hubbub_dashboard import parts, text
from hubbub_dashboard.parts import Row, exact, exact_interval
from hubbub_dashboard.reading.answers import Comparison, Estimates, Value
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares import findings as findings_of
from hubbub_dashboard.shares.selection import Selection
from hubbub_dashboard.states import Status


def wordmark() -> str:
    """Whose page it is."""
    return '<p class="hubbub wordmark">Hubbub</p>'


def landmark(here: int) -> str:
    """Tell a screen reader what the links beside are, and which of them leads to this page.

    Streamlit has no way to say either, and draws its links only once it has loaded how.
    """
    return f"""<script>
    {{
      const bar = document.currentScript.closest(".st-key-pages");
      const tell = () => {{
        const links = bar.querySelectorAll("a");
        links.forEach((link, place) => {{ link.ariaCurrent = place === {here} ? "page" : null; }});
        if (!links.length) requestAnimationFrame(tell);
      }};
      bar.role = "navigation";
      bar.ariaLabel = "Pages";
      tell();
    }}
    </script>"""


def signed_in_as(address: str) -> str:
    """Whose sign-in lets the page be read; what ends it stands beside."""
    return f'<p class="hubbub signed-in">Signed in as <bdi>{escape(address)}</bdi></p>'


def welcome() -> str:
    """Stands where the question will, as long as there is none."""
    return (
        '<header class="hubbub"><h1>What the crowd says, not what anyone in it said.</h1></header>'
    )


def heading(question: str, name: str) -> str:
    """The question that was asked, and the metric's name."""
    return (
        f'<header class="hubbub"><h1 dir="auto">{escape(question)}</h1>'
        f'<p class="name"><code>{escape(name)}</code></p></header>'
    )


def status_line(status: Status, estimates: Estimates | None, now: float, *, paused: bool) -> str:
    """The badge, how many reports, how old they are, and a sentence about the state."""
    facts: list[str] = []
    if estimates is not None and estimates.n:
        facts.append(f"<span>{_reports(estimates.n)}</span>")
        # An age that no longer grows would be a false one.
        age = "paused" if paused else f"{text.age(now - estimates.as_of)} ago"
        facts.append(f"<span>as of {text.clock(estimates.as_of)} ({age})</span>")
    return state(status, *facts)


def comparison_line(status: Status, comparison: Comparison | None) -> str:
    """The badge, how many reports are on either side, and a sentence about the state."""
    facts: list[str] = []
    if comparison is not None and comparison.differences:
        left, right = comparison.left, comparison.right
        for side in (left, right) if left != right else (left,):
            facts.append(
                f"<span>{_reports(side.n)} in round {side.round} of "
                f"<code>{escape(side.metric)}</code></span>"
            )
    return state(status, *facts)


def _reports(n: int) -> str:
    number, noun = text.counted(n, "report").split()
    return f"<b>{number}</b> {noun}"


def state(status: Status, *facts: str) -> str:
    """A state: its badge, facts beside it, and its sentence."""
    return (
        f'<section class="hubbub status" data-state="{escape(status.word)}">'
        f'<p class="facts">{badge(status)}{"".join(facts)}</p>'
        f"<p>{parts.code(status.sentence)}</p></section>"
    )


def badge(status: Status) -> str:
    """A state's word, with its glyph."""
    return (
        f'<strong class="badge {status.tone.name.lower()}">'
        f'<span aria-hidden="true">{status.tone.value}</span> {escape(status.word)}</strong>'
    )


def notes(*sentences: str | None) -> str:
    """Sentences in small print; None is left out."""
    paragraphs = "".join(f"<p>{parts.code(sentence)}</p>" for sentence in sentences if sentence)
    return f'<section class="hubbub notes">{paragraphs}</section>'


@derived
def findings(estimates: Estimates) -> str:
    """What the snapshot says: which values are there, how sure, and what more would take."""
    places = text.decimals(value.std_error for value in estimates.values)
    said = (
        findings_of.few_reports(estimates),
        findings_of.answer(estimates),
        findings_of.sureness(estimates, places),
        findings_of.more_reports(estimates, places),
    )
    return parts.answer(*filter(None, said))


def open_domain(name: str) -> str:
    """Stands where the figures of a listed domain are: how to look for some texts."""
    return (
        f'<section class="hubbub open-domain"><p>{escape(text.OPEN_DOMAIN)}</p><pre><code>'
        f"hubbub estimate {escape(name)} <span>--candidates FILE</span></code></pre></section>"
    )


@derived
def provenance(estimates: Estimates) -> str:
    """What these figures rest on: mechanism, ε, contract, round, snapshot, influence."""
    facts = [
        ("Mechanism", escape(estimates.mechanism)),
        ("ε declared", _epsilon(estimates.epsilon.declared)),
        ("ε realised", _epsilon(estimates.epsilon.realised)),
        ("Contract", f"<code>{estimates.digest.hex()[:16]}</code>…"),
        ("Round", text.count(estimates.round)),
        ("Snapshot", text.day_and_clock(estimates.as_of) if estimates.n else "none yet"),
    ]
    if estimates.plain:
        facts.append(("Imported", f"{text.counted(estimates.plain, 'report')}, unsealed"))
    if estimates.values:
        facts.append(("Influence", text.influence(estimates.values)))
    items = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts)
    return f'<dl class="hubbub provenance">{items}</dl>'


def _epsilon(decimal: str) -> str:
    return f'<span title="{escape(decimal)}">{escape(text.short_epsilon(decimal))}</span>'


@derived
def table(selection: Selection, probability: float) -> str:
    """The chart's figures, and those it has no room for.

    Each cell shows the digits the error warrants and carries the exact share as its
    machine-readable `value`.
    """
    level = text.level(probability)
    columns = (
        "Value",
        *(["Part of a whole"] if selection.whole else []),
        "Share",
        f"{level} interval",
        f"{level}, all at once",
        "Rank, all at once",
        "Above zero?",
    )
    return parts.table("Figures", columns, (_row(value, selection) for value in selection.values))


def _row(value: Value, selection: Selection) -> Row:
    places = selection.places
    cells = (
        *([exact(value.consistent, text.percent(value.consistent, places))] * selection.whole),
        exact(value.estimate, text.percent(value.estimate, places)),
        exact_interval(value.low, value.high, places),
        exact_interval(value.simultaneous_low, value.simultaneous_high, places),
        text.rank(value.rank_low, value.rank_high),
        '<span aria-hidden="true">●</span> yes' if value.found else f"◇ {selection.doubt}",
    )
    return Row(escape(value.label), cells, "" if value.found else "doubt")
