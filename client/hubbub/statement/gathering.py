"""Gathering the statement: what a ledger says of budgets, bundles and every metric."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from hubbub.bundle import open_envelope, read_bundle
from hubbub.contract import read_metric
from hubbub.exact import charge_text
from hubbub.ledger import Ledger
from hubbub.limits import MAX_CHARGE_PER_DEVICE
from hubbub.rows import BundleRecord, Departure, Enrolment, Entry
from hubbub.statement import page
from hubbub.statement.asked import History, asked
from hubbub.statement.facts import Adopted, Asked, Budget, Total
from hubbub.statement.figures import iso, moment, sure_after
from hubbub.statement.words import Words

Row = TypeVar("Row", Entry, Enrolment, Departure)


class Statement(NamedTuple):
    """Everything that a device's owner may want to know. `str()` is the text."""

    as_of: datetime
    collection: str
    """on, paused or opted-out…"""
    chosen_at: datetime | None
    """…since the owner chose so; None: always."""
    total: Total
    budgets: tuple[Budget, ...]
    metrics: tuple[Asked, ...]
    bundles: tuple[Adopted, ...]

    def text(self, words: Words | None = None, *, newest: int | None = page.NEWEST) -> str:
        """As a page for a person, of lines of at most 100 columns.

        `words`: a translation. `newest`: how many reports of each metric are shown; None: all.
        """
        return page.page(self, words or Words(), newest)

    def json(self) -> str:
        """As JSON, with every report: bytes in hexadecimal, times in ISO 8601, UTC."""
        return json.dumps(_plain(self), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        return self.text()


def statement(ledger: Ledger, *, now: float) -> Statement:
    """What a ledger says; `now`: seconds UTC, for telling the next rounds. Raises StateError."""
    accounts, records = _Accounts(ledger.budgets(), ledger.accounts()), ledger.bundles()
    switch, chosen_at = ledger.choice()
    return Statement(
        as_of=moment(int(now)),
        collection=switch.name.lower().replace("_", "-"),
        chosen_at=moment(chosen_at) if chosen_at else None,
        total=accounts.total(),
        budgets=tuple(map(accounts.budget, accounts.sources)),
        metrics=_metrics(ledger, records, accounts, now),
        bundles=tuple(map(_adopted, records)),
    )


class _Accounts(NamedTuple):
    """Budgets and spending, by source, in units of 10^-12 of ε."""

    budgets: dict[str, int]
    spent: dict[str, int]

    @property
    def sources(self) -> list[str]:
        return sorted({*self.budgets, *self.spent})

    @property
    def device_left(self) -> int:
        return max(0, MAX_CHARGE_PER_DEVICE - sum(self.spent.values()))

    def left(self, source: str) -> int:
        """What it may still spend: its budget is worth no more than what the device has left."""
        left = self.budgets.get(source, 0) - self.spent.get(source, 0)
        return min(max(0, left), self.device_left)

    def most(self, source: str) -> int:
        """What it can ever come to: an app may have set a budget below what was spent."""
        return max(self.budgets.get(source, 0), self.spent.get(source, 0))

    def budget(self, source: str) -> Budget:
        return Budget(
            source=source,
            spent=charge_text(self.spent.get(source, 0)),
            left=charge_text(self.left(source)),
            allowed=charge_text(self.budgets.get(source, 0)),
            allowed_percent=sure_after(self.most(source)),
        )

    def total(self) -> Total:
        spent = sum(self.spent.values())
        allowed = min(sum(map(self.most, self.sources)), MAX_CHARGE_PER_DEVICE)
        return Total(
            spent=charge_text(spent),
            left=charge_text(self.device_left),
            allowed=charge_text(allowed),
            most=charge_text(MAX_CHARGE_PER_DEVICE),
            spent_percent=sure_after(spent),
            allowed_percent=sure_after(allowed),
        )


def _adopted(record: BundleRecord) -> Adopted:
    return Adopted(
        operator=record.operator,
        revision=record.revision,
        fingerprint=record.fingerprint,
        adopted_at=None if record.adopted_at is None else moment(record.adopted_at),
        fetched=record.fetched,
    )


def _metrics(
    ledger: Ledger, records: Sequence[BundleRecord], accounts: _Accounts, now: float
) -> tuple[Asked, ...]:
    """Those that are asked, then those that were, by name."""
    entries = _by_metric(ledger.entries())
    enrolments = _by_metric(ledger.enrolments())
    departures = _by_metric(ledger.departures())
    newest = {record.operator: record for record in records}
    askers = _askers(newest.values())
    sole = next(iter(newest)) if len(newest) == 1 else None
    # Of a bundle that is not kept nothing says that it no longer asks something.
    all_kept = all(record.signed is not None for record in newest.values())
    metrics: list[Asked] = []
    for name, contract in ledger.contracts().items():
        metric = read_metric(contract)
        history = History(
            entries=entries[name],
            enrolments=enrolments[name],
            departures=departures[name],
            left=accounts.left(metric.source) if metric.source in accounts.budgets else None,
            operator=askers.get(contract, sole),
            asked=contract in askers or not all_kept,
        )
        metrics.append(asked(metric, history, now))
    return tuple(sorted(metrics, key=lambda facts: not facts.asked))


def _by_metric(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row.metric].append(row)
    return grouped


def _askers(newest: Iterable[BundleRecord]) -> dict[bytes, str]:
    """The operator of every contract that is asked now, from each operator's newest bundle."""
    return {
        contract: record.operator
        for record in newest
        if record.signed is not None
        for contract in read_bundle(open_envelope(record.signed).bundle).contracts
    }


def _plain(fact: Any) -> Any:
    """A fact as what JSON has."""
    if isinstance(fact, bytes):
        return fact.hex()
    if isinstance(fact, datetime):
        return iso(fact)
    if isinstance(fact, tuple):
        fields = getattr(fact, "_fields", None)
        if fields is None:
            return [_plain(each) for each in fact]
        return {field: _plain(getattr(fact, field)) for field in fields}
    return fact
