"""Everything that is said to a device's owner, in English, and in any language it is put into.

A template's fields are in braces; a translation has the same fields, in any order. No template
depends on whether a number is one or many.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from os import PathLike
from string import Formatter
from types import MappingProxyType
from typing import Final

from hubbub.errors import InvalidWords
from hubbub.statement.figures import iso

ENGLISH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "title": "What this device has told about you, by its own account of {as_of}",
        # What all of it comes to.
        "label.collection": "Collection",
        "label.questions": "Questions",
        "label.reports": "Reports",
        "label.spent": "Spent",
        "label.meaning": "Meaning",
        "collection.on": "On. How to pause it, or to opt out, stands at the end.",
        "collection.paused": "Paused since {chosen_at}: nothing is recorded or sent. What waits "
        "goes on waiting.",
        "collection.opted-out": "Off since {chosen_at}, when you opted out: nothing is recorded or "
        "sent. What was said is deleted; the account of what was spent is not.",
        "questions": "{count}, asked by {operators}",
        "questions.none": "None so far.",
        "spent.device": "ε {spent}, of {allowed} that this app allows, and of {most} that no "
        "device may exceed.",
        "meaning.device": "Every report was made with noise; nothing that it says need be true. "
        "Anyone who thought something about you 50:50 can be {sure} after all that has been spent, "
        "and {sure_at_last} after all that may be.",
        "meaning.memo": "What it tells that answers from a memo changed is not in this: see what "
        "is not protected.",
        "sure": "at most {percent} % sure",
        "sure.nearly": "practically certain",
        # Reports, counted.
        "reports.none": "None.",
        "reports.counts": "{count}: {counts}.",
        "count.waiting": "{count} waiting",
        "count.sent": "{count} sent, and not answered yet",
        "count.counted": "{count} counted",
        "count.refused": "{count} refused",
        "count.expired": "{count} expired",
        "count.withdrawn": "{count} withdrawn",
        "count.dropped": "{count} dropped",
        # Budgets.
        "heading.budgets": "Budgets",
        "budgets.about": "ε measures what reports can reveal: each 1 of it multiplies the odds of "
        "a guess about you by at most 2.72. Nothing gives back what is spent: no time, no new "
        "version, no opting out and in again. What a budget does not cover is not recorded.",
        "budget": "ε {spent} spent, {left} left of {allowed}. When all is spent: {sure}.",
        "label.all-sources": "(all of them)",
        "budget.device": "ε {spent} spent, {left} left of {most}, whatever the app allows.",
        # A metric.
        "heading.metric": "Metric {name}",
        "heading.former-metric": "Metric {name}, which is no longer asked",
        "label.question": "Question",
        "label.asked-by": "Asked by",
        "asked-by.unknown": "an operator whose bundle is no longer kept",
        "label.source": "Source",
        "label.answers": "Answers",
        "answers.open": "any text",
        "answers.other": "{answer} stands for any other answer",
        "answers.absent": "{answer} stands for “nothing to report”",
        "more": "{listed} and {count} more",
        "label.mechanism": "Mechanism",
        "mechanism": "{name}: {parameters}; thresholds are out of 2^64",
        "parameter": "{name} = {number}",
        "label.one-report": "One report",
        "one-report": "ε {epsilon}: whatever it says, it is at most {times} times likelier under "
        "one answer than under any other. Anyone who thought it 50:50 can be {sure} after it.",
        "label.all-reports": "All reports",
        "all-reports": "ε {epsilon} at most. Anyone who thought it 50:50 can be {sure} after all "
        "that are allowed.",
        "all-reports.memo": "ε {epsilon} at most. Anyone who thought 50:50 what your answers were "
        "can be {sure} after all that are allowed. What changes tell is not in this: see what is "
        "not protected.",
        "label.proof": "Proof",
        "proof": "ε {realised}; the worst ratio of two probabilities is exactly {ratio}",
        "label.row-proof": "Of the memo",
        "label.contract": "Contract",
        "label.kept": "Kept",
        "kept.counts": "the aggregator counts each report and keeps none",
        "kept.reports": "the aggregator keeps each report, with its noise, to ask it more "
        "questions later",
        "label.schedule": "Schedule",
        "schedule.once": "once, from {starts} until the operator closes it",
        "schedule.once-until": "once, from {starts} to {ends}",
        "schedule.fresh": "every {every} from {starts}, {rounds} rounds, with new noise for each",
        "schedule.sampled": "every {every} from {starts}, {rounds} rounds, of which this device "
        "joins {join}",
        "schedule.memoised": "every {every} from {starts}, {rounds} rounds, answered from a memo: "
        "noisy answers that are drawn once, and kept on this device",
        "label.next": "Next round",
        "next": "{round}, from {starts} to {ends}",
        "next.open": "{round}, from {starts}",
        "next.none": "none: there is no round left that this device will answer",
        "next.dear": "none: its price is more than its source has left",
        "label.silence": "Silence",
        "silence.filled": "a round in which nothing is recorded is answered {answer} by the "
        "device, unless it stays off for so long that reports are no longer taken",
        "silence.app": "the app may answer {answer}; a round that it records nothing in sends "
        "nothing, and the aggregator can see that",
        "silence.visible": "sends nothing: the aggregator can see which rounds this device answers",
        "label.price": "Price",
        "price.sampled": "ε {charge} = {parts} rounds × {each}, as a whole and before the first "
        "answer",
        "price.memoised": "ε {charge} = {parts} rows × {each}, as a whole and before the first "
        "answer",
        "label.charged": "Charged",
        "charged": "ε {charge} on {charged_at}, for the rounds from {from_round} on",
        "charged.deleted": "ε {charge} on {charged_at}; its memo is deleted",
        "charged.not-yet": "not yet; without it nothing is recorded",
        "label.joins": "Joins",
        "joins": "rounds {rounds}; drawn before there was any answer",
        "label.protected": "Protected",
        "memo.protected": "What your answers were. Before the first of them, chance filled the "
        "{rows} rows of the memo with a noisy answer each; every report is a noisy copy of the row "
        "for your answer. Somebody who compares two guesses about your answers over time can "
        "favour one by at most {times} times for every row that was used, if both change, and come "
        "back to an earlier answer, in the same rounds.",
        "memo.hashed": "Answers share rows, as a hash has it, and those that share one look alike. "
        "So it is rows that have to change, and come back, in the same rounds; and whoever reads "
        "your reports can tell which answers share one.",
        "label.not-protected": "Not protected",
        "memo.change": "That an answer changed, when, and whether it came back, and what can be "
        "told from that. Whoever compares the first half of {rounds} reports with the second is "
        "right {change_noticed_percent} % of the time about whether it changed between them, where "
        "guessing is right 50 %; with any number of reports, at most "
        "{change_noticed_ever_percent} %. Of several changes more is noticed.",
        "memo.linked": "Your reports resemble each other. Runs of {run} reports of one device look "
        "more alike than runs of two devices with the same answer {linked_percent} % of the time; "
        "at 50 % nothing would show.",
        "memo.identifying": "Every report names the hash that this device drew, one of {hashes}: "
        "{identifying_bits} bits that mark the device.",
        "metric.spent": "ε {spent}; its source has {left} left",
        "metric.no-budget": "ε {spent}; this app has no budget for its source",
        # Every report.
        "reports.newest": "{counts} The newest {shown} of them:",
        "report": "Round {round}, recorded {recorded_at}: {status}",
        "status.waiting": "waits, and leaves from {due_at} on",
        "status.sent": "sent, not answered yet",
        "status.counted": "counted",
        "status.refused": "refused by the aggregator",
        "status.expired": "expired: its round closed before an answer came",
        "status.withdrawn": "withdrawn, because collection was turned off; if it had left, it may "
        "have arrived",
        "status.dropped": "dropped, because too many waited",
        "label.says": "says",
        "says.nothing": "nothing",
        "says.one-in": "one of every {count} texts",
        "says.deleted": "(deleted)",
        "label.report": "report",
        "report.bytes": "id {report_id}, payload {payload}",
        "report.cut": "{hex}… of {size} bytes",
        "label.left": "left",
        "left": "{left_at} for {destination}, sealed to key {key_id}: {size} bytes, SHA-256 "
        "{hash}…",
        "left.deleted": "{left_at} for {destination}, sealed to key {key_id}; its bytes are "
        "deleted",
        "label.left-again": "and again",
        "reports.earlier": "{count} earlier; {command} shows them all",
        # Bundles.
        "heading.bundles": "Bundles",
        "bundles.about": "What an operator asked for, signed. A newer revision can add questions, "
        "drop them, and change keys; it cannot change a question.",
        "label.revision": "Revision {revision}",
        "bundle.app": "from the app, {adopted}: SHA-256 {fingerprint}, signed by {operator}",
        "bundle.fetched": "over the network, {adopted}: SHA-256 {fingerprint}, signed by "
        "{operator}",
        "bundle.unknown-time": "before this was noted",
        # Who can see what.
        "heading.who": "Who can see what",
        "label.aggregator": "The aggregator",
        "who.aggregator": "opens your reports. It sees metric, round, what each says, when it "
        "comes, and the network address it comes from, so it can tell which came from one address. "
        "It does not learn whether any of them is true.",
        "label.network": "The network",
        "who.network": "sees that this device sends something, when, and how much: the same for "
        "every answer. Whoever gets past the encryption of the line learns which metric and round "
        "a report is for, and no more.",
        "label.together": "Together",
        "who.together": "they know no more than the aggregator alone: no relay stands between. "
        "Whoever puts together all that this device may ever spend, on every source and for every "
        "operator, and thought something about you 50:50, can be {sure}.",
        "label.thief": "A thief",
        "who.thief": "of this device finds this account: reports with their noise, and what was "
        "spent. No true answer is kept.",
        "who.memo-thief": "But the memo is: held against many reports made from it, it mostly "
        "tells what the answers were. Opting out deletes the memo, and what the reports said.",
        "label.app": "The app",
        "who.app": "that asks knows the true answers, before there is any noise. Nothing here "
        "keeps it from passing them on.",
        "label.others": "Other devices",
        "who.others": "could each send many reports; the aggregator cannot tell.",
        "heading.unknown": "What this account cannot know",
        "unknown": "An older ledger that is put back is noticed, and refused. That the whole state "
        "directory was put back, that the app was installed afresh, or that this machine is a copy "
        "of another, is not noticed: each gives the budgets out once more.",
        # Switches.
        "heading.switches": "Your switches",
        "switches.about": "DIR is the directory that this account was read from. They hold for "
        "every program that uses it, at once and after every start.",
        "label.pause": "Pause",
        "switch.pause": "{command}, and {back}. Nothing is recorded or sent meanwhile; what waits "
        "is kept.",
        "label.opt-out": "Opt out",
        "switch.opt-out": "{command}, and {back}. What waits is deleted, and so is what every "
        "report said, and every memo. The account of what was spent stays, and a new memo is "
        "charged in full.",
        "label.export": "Take along",
        "switch.export": "{command} writes all of this to a file, with every byte that left.",
        # What the switches answer.
        "done.pause": "Paused: nothing is recorded or sent, and what waits goes on waiting.",
        "done.resume": "On: collection goes on.",
        "done.opt-in": "On: collection goes on. What was spent stays spent.",
        "done.opt-out": "Opted out: nothing is recorded or sent any more. A report that a program "
        "has under way at this moment may still arrive.",
        "done.still-opted-out": "Nothing changes: you have opted out. {command} ends that.",
        "done.deleted": "Deleted. Reports that waited: {waiting}. What reports said: {reports}. "
        "Memos: {memos}.",
        "done.stays": "Kept: that and when reports were made and left, and the account of what was "
        "spent. Opting in again gives no budget back, and a new memo is charged in full.",
    }
)


class Words:
    """The catalogue, in English or translated."""

    def __init__(self, translation: Mapping[str, str] | None = None) -> None:
        """`translation`: templates by their keys in ENGLISH, which stands for those that are
        missing. Raises InvalidWords for an unknown key, or other fields than the English has."""
        translation = translation or {}
        for key, template in translation.items():
            _require(key, template)
        self._templates = {**ENGLISH, **translation}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Words":
        """Read a translation: a JSON object. Raises InvalidWords or OSError."""
        try:
            with open(path, encoding="utf-8") as file:
                translation = json.load(file)
        except (ValueError, RecursionError) as error:
            raise InvalidWords(f"{path} is no JSON: {error}") from None
        if not isinstance(translation, dict):
            raise InvalidWords(f"{path} is not a JSON object of keys and templates")
        return cls(translation)

    def __call__(self, key: str, /, **fields: object) -> str:
        """A template, filled in; it need not have all the fields."""
        return self._templates[key].format(**{name: _shown(x) for name, x in fields.items()})


def _shown(fact: object) -> object:
    """A fact as it stands in a sentence."""
    if isinstance(fact, datetime):
        return iso(fact)
    return fact.hex() if isinstance(fact, bytes) else fact


def _require(key: str, template: object) -> None:
    if key not in ENGLISH:
        raise InvalidWords(f"there is nothing to translate under {key!r}")
    if not isinstance(template, str):
        raise InvalidWords(f"the translation of {key!r} is not text")
    try:
        fields = _fields(template)
    except ValueError as error:
        raise InvalidWords(f"the translation of {key!r} cannot be read: {error}") from None
    english = _fields(ENGLISH[key])
    if fields != english:
        needed = ", ".join(sorted(f"{{{name}}}" for name, *_ in english)) or "none"
        raise InvalidWords(f"the translation of {key!r} has other fields than {needed}")


def _fields(template: str) -> set[tuple[str, str | None, str | None]]:
    """A template's fields: name, format and conversion. Raises ValueError."""
    return {
        (name, form, conversion)
        for _, name, form, conversion in Formatter().parse(template)
        if name is not None
    }
