"""What is said below the panels: what they promise, and what they leave out. Pure."""

from collections.abc import Sequence

from hubbub_dashboard import text
from hubbub_dashboard.few_reports import WIDEST
from hubbub_dashboard.over_time import panels
from hubbub_dashboard.over_time.changes import MAX_CHANGES
from hubbub_dashboard.over_time.sentences import at_once, moment
from hubbub_dashboard.over_time.series import LEVEL, Kind, Series
from hubbub_dashboard.reading.answers import Target


def sureness(series: Series) -> str | None:
    """Say what the marks and the intervals of changes promise."""
    if not series.steps:
        return None
    return (
        f"Intervals of changes ({at_once(series)}) allow for how many are looked at: where nothing "
        f"changes, at most 1 of {round(1 / (1 - LEVEL))} such series has any mark. That is of one "
        f"look: whoever looks at every new round for months sees a mark sooner or later, and as "
        f"more rounds are shown, one may go again."
    )


def bands() -> str:
    """Say what is drawn."""
    return (
        f"A band is a round's {text.level(LEVEL)} interval for all values of that round at once. "
        f"Whether two bands overlap decides nothing: ▲ and ▼ mark a change whose own interval does "
        f"not hold 0. Every panel spans equally many points, so that equal "
        f"slopes are equal changes."
    )


def whose(target: Target) -> str:
    """Say whose shares these are."""
    if target is Target.RESPONDENTS:
        return (
            "Shares are among each round's own respondents: where others answered, that may be all "
            "that changed."
        )
    return (
        "Shares are among all devices that would have answered, of which each round's respondents "
        "are taken for a random sample: the draw adds to the noise."
    )


def still_open(series: Series) -> str | None:
    """Say why no change to an open round is marked, if one is drawn."""
    numbers = [point.number for point in series.points if point.kind is Kind.OPEN]
    if not numbers:
        return None
    one = len(numbers) == 1
    return (
        f"{_rounds(numbers)} {'is' if one else 'are'} still open and drawn hollow: preliminary. "
        f"Watching is testing: whoever looks again and again sees a change sooner or later, also "
        f"where there is none. So no change to or from {'it' if one else 'them'} is marked until "
        f"{'it closes' if one else 'they close'}."
    )


def gaps(series: Series) -> list[str]:
    """Say of which rounds nothing is drawn, and why; one sentence a reason."""
    reasons = {
        Kind.TOO_FEW: f"too few reports for a share to be known to within "
        f"{text.points(WIDEST / 2, 0)} either way",
        Kind.EMPTY: "closed with no reports, or the counts were forgotten",
        Kind.WAITING: "open, and no snapshot yet",
        Kind.UNREAD: "could not be read just now",
    }
    said = []
    for kind, reason in reasons.items():
        numbers = [point.number for point in series.points if point.kind is kind]
        if numbers:
            said.append(f"Nothing is drawn of {_rounds(numbers).lower()} ({reason}).")
    if said and any(step.after.number - step.before.number > 1 for step in series.steps):
        said.append("Across a gap, a change is one from the round drawn before it.")
    return said


def beyond(series: Series, drawn: Sequence[int]) -> str | None:
    """Say which bands are not drawn whole, if some are not."""
    numbers = panels.beyond(series, tuple(drawn))
    if not numbers:
        return None
    band, goes, it, has = (
        ("band", "goes", "it", "has") if len(numbers) == 1 else ("bands", "go", "they", "have")
    )
    return (
        f"The {band} of {_rounds(numbers).lower()} {goes} on beyond the panels' edges, where open "
        f"arrows stand: {it} {has} few reports, and drawn whole {it} would make all else a flat "
        f"line. The table has both ends."
    )


def earlier(series: Series) -> str | None:
    """Say that older rounds are left out, if some are."""
    if not series.earlier:
        return None
    many = len(series.points)
    shown = "round is" if many == 1 else f"{text.count(many)} rounds are"
    return (
        f"The newest {shown} shown; before that there "
        f"{'was' if series.earlier == 1 else 'were'} {text.count(series.earlier)} more."
    )


def undrawn(series: Series, drawn: Sequence[int], find: str = "") -> str | None:
    """Say how many values have no panel, if some have none."""
    total = len(series.values)
    if find and not drawn:
        return f"None of the {text.count(total)} values has {text.quoted(find)} in its name."
    if len(drawn) == total:
        return None
    return (
        f"{text.count(len(drawn))} of {text.count(total)} values "
        f"{'is' if len(drawn) == 1 else 'are'} drawn; what changed is told of all of them."
    )


def cut(changes: int) -> str | None:
    """Say that some of so many changes are not listed, if some are not."""
    if changes <= MAX_CHANGES:
        return None
    return f"The newest {MAX_CHANGES} of {text.count(changes)} changes are listed."


def revisions(series: Series) -> list[str]:
    """Say which revisions of the bundle came during these rounds, and what that may mean."""
    known = series.revisions
    if known is None:
        return ["This aggregator does not tell when revisions of its bundle came into force."]
    said = [
        f"Revision {revision.number} of the bundle came into force during round {point.number} "
        f"({moment(revision.since)})."
        for point in series.points
        for revision in point.revisions
    ]
    if said:
        said.append(
            "A jump there may come from what else was changed, such as which devices are asked or "
            "where they report. The question, its values and the noise are the same in all "
            "revisions: a metric's contract never changes."
        )
    unknown = next((each for each in known if each.or_earlier), None)
    if unknown is not None and series.points[0].begins < unknown.since:
        said.append(
            f"Which revisions came before {moment(unknown.since)} is not known: an earlier version "
            f"of the aggregator did not keep it."
        )
    return said


def _rounds(numbers: Sequence[int]) -> str:
    """Write rounds as "Round 3", or "Rounds 3, 5–7 and 9"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    written = [text.rank(span[0], span[-1]) for span in spans]
    return f"Round{'s' if len(numbers) > 1 else ''} {text.listed(written)}"
