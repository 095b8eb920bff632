"""What a metric gives away, in words.

Pure. What a device's owner is told too is said in the words of `python -m hubbub show`.
"""

from typing import Final

from hubbub.exact import Certificate, charge_text, upper_text
from hubbub.limits import MAX_CHARGE_PER_DEVICE, MAX_CHARGE_PER_SOURCE
from hubbub.statement.facts import Loss
from hubbub.statement.metric_section import of_memo, sure, timetable
from hubbub.statement.words import Words
from hubbub_dashboard import text
from hubbub_dashboard.privacy.promise import Promise

OWNER: Final = "Word for word, from `python -m hubbub show`:"

_WORDS: Final = Words()
_MOST: Final = charge_text(MAX_CHARGE_PER_SOURCE)
_MOST_OF_ALL: Final = charge_text(MAX_CHARGE_PER_DEVICE)

# Digits at either end of a number that is cut for reading.
_ENDS: Final = 6


def cost(promise: Promise) -> str:
    """What the metric cost a device, in one sentence that needs no ε."""
    told = promise.told
    one = sure(_WORDS, told.report_loss.sure_percent)
    if promise.is_single:
        return (
            f"What it costs the device: after its one report, anyone who thought its answer 50:50 "
            f"can be {one}."
        )
    most = sure(_WORDS, told.allowed_percent)
    first = (
        f"What it costs the device: after one report, anyone who thought its answer 50:50 can be "
        f"{one}."
    )
    if told.memo is not None:
        return f"{first} After any number of them, {most}."
    return (
        f"{first} Where its answer stays the same, every further report adds to that: after all "
        f"{text.count(promise.reports)}, {most}."
    )


def charge(promise: Promise) -> str:
    """What the metric is charged to a device, in ε."""
    return f"In ε, the measure of privacy lost: {_charged(promise)}"


def _charged(promise: Promise) -> str:
    told, contract = promise.told, promise.contract
    rounds = text.counted(told.schedule.rounds, "round")
    if told.series is not None:
        paid = f"{_epsilon(told.series.charge)}, charged before its first report"
        parts = told.series.parts
        if contract.permanent is not None:
            return (
                f"{paid}, for a memo of {text.counted(parts, 'row')} at "
                f"ε = {contract.permanent.text} each. No report adds to it."
            )
        return f"{paid}, for {text.count(parts)} of {rounds} at ε = {contract.epsilon.text} each."
    if promise.is_single:
        return f"ε = {contract.epsilon.text}, once."
    most = f"at most {_epsilon(told.allowed)} in all"
    why = (
        f": after {text.counted(promise.reports, 'report')} the device stops"
        if promise.is_capped
        else f" for {rounds}"
    )
    return f"ε = {contract.epsilon.text} for every report, {most}{why}."


def meaning(promise: Promise) -> tuple[str, ...]:
    """What that cost is in figures, and what they mean."""
    loss = promise.told.report_loss
    sentences = [
        charge(promise),
        f"At ε = {loss.epsilon}, whatever a report says is at most {loss.times} times likelier "
        f"under one answer than under any other.",
    ]
    if promise.told.memo is not None:
        sentences.append(
            "That an answer changed, and when, is not in these figures: see what its owner reads."
        )
    return tuple(sentences)


def odds(promise: Promise) -> str:
    """What the table of odds says, and of what it does not."""
    said = (
        "Somebody thinks that a device has a certain answer, and then sees its reports. However "
        "sure they were before, afterwards they can be no less sure than the first figure, and no "
        "surer than the second, whatever else they know"
    )
    memo = promise.told.memo
    if memo is None:
        return f"{said}."
    shared = ", or which answers share a row of it" if memo.hashes is not None else ""
    return f"{said}, but for when answers changed: that a memo does not hide{shared}."


def over_rounds(promise: Promise) -> str:
    """How the cost of all rounds adds up."""
    told, contract = promise.told, promise.contract
    if promise.is_single:
        return "It is asked once, so one report is all."
    if told.series is not None:
        return (
            "A device is charged for the whole series before its first answer; if it "
            "opts out and in again, once more."
        )
    every = (
        f"Every report has noise of its own and is charged anew: "
        f"{text.counted(told.schedule.rounds, 'round')} at "
        f"{_epsilon(contract.epsilon.decimal)} come to {_epsilon(promise.total)}."
    )
    if not promise.is_capped:
        return every
    return (
        f"{every} No device pays that: at {_epsilon(told.allowed)} it has nothing left for another "
        f"report, and records nothing more."
    )


def budget(promise: Promise) -> str:
    """What caps the cost on a device, whatever is asked."""
    return (
        f"All of it is paid from one budget for the source `{promise.contract.source}`, which the "
        f"app sets: at most ε = {_MOST}, and {_MOST_OF_ALL} over all sources of a device. When it "
        f"is spent, nothing more is recorded, and nothing gives any of it back."
    )


def shared_source(promise: Promise, others: int) -> str:
    """That what several metrics ask about one source adds up."""
    if not others:
        return "No other metric of this aggregator asks about the same source."
    return (
        f"{text.counted(others, 'other metric')} of this aggregator "
        f"{'asks' if others == 1 else 'ask'} about the same source. What they reveal adds up: "
        f"whoever reads reports of all of them learns at most the sum, which the budget limits."
    )


def owners_rows(promise: Promise) -> list[tuple[str, str]]:
    """When it is asked, what it costs and what is kept, as a device's owner reads it; of a memo,
    what it protects and what not."""
    told = promise.told
    rows = [(_WORDS("label.schedule"), timetable(_WORDS, told.schedule))]
    if told.series is not None:
        price = "price.sampled" if told.memo is None else "price.memoised"
        rows.append((_WORDS("label.price"), _WORDS(price, **told.series._asdict())))
    if told.memo is not None:
        rows += of_memo(_WORDS, told.memo)
    kept = _WORDS("kept.reports" if told.retained else "kept.counts")
    return [*rows, (_WORDS("label.kept"), kept)]


def checked(promise: Promise) -> str:
    """Which bytes the figures are of."""
    contract = promise.contract
    return (
        f"This page asked for the contract, checked its {text.count(len(contract.contract))} bytes "
        f"as a device does, by the same code, and took their SHA-256. That is the digest which "
        f"reports and estimates name: `{contract.digest.hex()[:16]}…`"
    )


def proved(proof: Certificate, loss: Loss, *, of_row: bool) -> str:
    """What the thresholds prove, exactly."""
    what = "a row of the memo" if of_row else "a report"
    numerator, denominator = loss.ratio.split("/")
    return (
        f"Of {what}, the worst ratio of two probabilities is exactly "
        f"`{shortened(numerator)} / {shortened(denominator)}`, at most {loss.times}. Its "
        f"logarithm, rounded up, is the realised ε = {loss.realised}: at most the declared "
        f"ε = {proof.declared.text}, and below it by at most {upper_text(proof.loss)}."
    )


def shortened(digits: str) -> str:
    """The beginning and the end of a long number."""
    if len(digits) <= 2 * _ENDS + 4:
        return digits
    return f"{digits[:_ENDS]}…{digits[-_ENDS:]}"


def unlisted(count: int) -> str:
    """That metrics are left out."""
    return f"And {text.count(count)} more."


def _epsilon(decimal: str) -> str:
    """An ε that has many digits is rounded for reading."""
    shown = text.short_epsilon(decimal)
    return f"ε {shown}" if shown.startswith("≈") else f"ε = {shown}"
