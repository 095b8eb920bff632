"""The contract, one metric's bytes, as a device checks it: form, limits, proof of ε.

Every function here takes bytes that a stranger may have written and returns an immutable
object, or raises a BundleError that says which metric breaks which rule.
"""

import re
from typing import Final, NamedTuple

from hubbub.canonical import NotCanonical, Reader
from hubbub.digest import sha256
from hubbub.domain import Domain, is_printable, read_domain
from hubbub.errors import InvalidContract, MalformedBundle, PrivacyNotProved
from hubbub.exact import Certificate, Epsilon, charge_text
from hubbub.limits import (
    MAX_CHARGE_PER_REPORT,
    MAX_CHARGE_PER_SOURCE,
    MAX_QUESTION_BYTES,
)
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    MemoisedMechanism,
    MemoisedRandomisedResponse,
    MemoisedUnary,
)
from hubbub.parameters import read_memoised, read_one_time, the_only
from hubbub.randomness import Source
from hubbub.schedule import Periodic, Schedule, read_schedule

_NAME: Final = re.compile(r"[a-z0-9._-]{1,64}", re.ASCII)
_MEMOISED: Final = (MemoisedUnary, MemoisedRandomisedResponse, MemoisedLocalHashing)


class Metric(NamedTuple):
    """One question, checked: its thresholds are proved to keep its declared ε."""

    name: str
    question: str
    source: str
    epsilon: Epsilon
    """What one report tells at most; of a mechanism without a memo, also what it costs."""
    permanent: Epsilon | None
    """ε∞ of a memoised mechanism: what each row of a memo costs."""
    domain: Domain
    schedule: Schedule
    mechanism: Mechanism
    retain: bool
    """Whether the aggregator keeps opened reports; else it keeps counts only."""
    contract: bytes
    """The bytes that were signed."""
    digest: bytes
    """SHA-256 of the contract: 32 bytes. Names the metric everywhere but to people."""

    @property
    def certificate(self) -> Certificate:
        """Of one report."""
        return Certificate(self.epsilon, self.mechanism.ratio)

    @property
    def certificates(self) -> list[Certificate]:
        """Of one report; and of a memo's row, if there is a memo. Raises ValueError if the
        mechanism's parameters make none."""
        if self.permanent is None or self.memoised is None:
            return [self.certificate]
        return [self.certificate, Certificate(self.permanent, self.memoised.row_ratio)]

    @property
    def memoised(self) -> MemoisedMechanism | None:
        """The mechanism, if it has a memo."""
        mechanism = self.mechanism
        return mechanism if isinstance(mechanism, _MEMOISED) else None

    @property
    def is_series(self) -> bool:
        """Whether a device is charged for all its reports at once, before the first."""
        return self.permanent is not None or (
            isinstance(self.schedule, Periodic) and self.schedule.join > 0
        )

    @property
    def series_charge(self) -> int | None:
        """What a device is charged before its first report, for all of them at once.

        In units of 10^-12. None: it is charged for each report, as it makes it.
        """
        if self.permanent is not None and self.memoised is not None:
            return self.memoised.rows * self.permanent.charge
        if isinstance(self.schedule, Periodic) and self.schedule.join:
            return self.schedule.join * self.epsilon.charge
        return None

    @property
    def total_charge(self) -> int:
        """What all its rounds cost together at most, in units of 10^-12."""
        series = self.series_charge
        return self.schedule.rounds * self.epsilon.charge if series is None else series

    def draw_secret(self, first_round: int, source: Source) -> bytes:
        """Draw what a device keeps of a series: its memo, or the rounds it joins from the first
        on. Whatever it will be asked, the law is the same."""
        if self.memoised is not None:
            return self.memoised.memorise(source)
        if isinstance(self.schedule, Periodic):
            return self.schedule.draw_rounds(first_round, source)
        return b""

    def supported(self, payload: bytes) -> tuple[str, ...]:
        """The labels that a payload supports; none in an open domain, whose texts nobody lists.

        Raises ValueError if it is not a payload of this metric.
        """
        if self.domain.open:
            return ()
        return tuple(self.domain.labels[value] for value in self.mechanism.supported(payload))

    def __repr__(self) -> str:
        return f"<metric {self.name!r}, digest {self.digest.hex()[:16]}…>"


def is_name(text: object) -> bool:
    """Whether it can name a metric or a source."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def parse_metric(contract: bytes) -> Metric:
    """Check one metric's bytes and its proof. Raises MalformedBundle or InvalidContract."""
    metric = read_metric(contract)
    require_proof(metric)
    return metric


def read_metric(contract: bytes) -> Metric:
    """Check everything about a metric's bytes but what its thresholds reveal.

    For looking at a contract that may be refused; a device uses `parse_metric`.
    """
    try:
        return _metric(contract)
    except NotCanonical:
        raise MalformedBundle("a metric is not in its canonical form") from None


def _metric(contract: bytes) -> Metric:
    reader = Reader(contract)
    name = reader.text(1)
    if not _NAME.fullmatch(name):
        raise InvalidContract(name[:64], "name", "must be 1 to 64 of a-z, 0-9, '.', '_', '-'")
    question = reader.text(2)
    if not is_printable(question, MAX_QUESTION_BYTES):
        raise InvalidContract(
            name, "question", f"must be 1 to {MAX_QUESTION_BYTES:,} bytes of printable text"
        )
    source = reader.text(3)
    if not _NAME.fullmatch(source):
        raise InvalidContract(name, "source", "must be 1 to 64 of a-z, 0-9, '.', '_', '-'")
    epsilon = _epsilon(name, "epsilon", reader.text(4))
    domain = read_domain(name, reader.message(5))
    schedule = read_schedule(name, reader.message(6))
    mechanisms = read_one_time(reader, domain.k)
    retain = reader.flag(13)
    permanent = reader.text(14)
    mechanism = the_only(name, mechanisms + read_memoised(reader, domain.k))
    reader.end()
    if domain.open and not (retain and isinstance(mechanism, LocalHashing)):
        raise InvalidContract(
            name, "values", "may be open only with local hashing and reports that are retained"
        )
    metric = Metric(
        name=name,
        question=question,
        source=source,
        epsilon=epsilon,
        permanent=_epsilon(name, "permanent", permanent) if permanent else None,
        domain=domain,
        schedule=schedule,
        mechanism=mechanism,
        retain=retain,
        contract=contract,
        digest=sha256(contract),
    )
    _require_series(metric)
    return metric


def _epsilon(name: str, field: str, text: str) -> Epsilon:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError as error:
        raise InvalidContract(name, field, str(error)) from None
    if epsilon.text != text:
        raise InvalidContract(name, field, f"must be written {epsilon.text!r}, not {text!r}")
    return epsilon


def _require_series(metric: Metric) -> None:
    """Raise InvalidContract unless schedule, memo and mechanism belong together."""
    name, schedule = metric.name, metric.schedule
    if (metric.permanent is None) != (metric.memoised is None):
        raise InvalidContract(name, "permanent", "belongs to a memoised mechanism, and to no other")
    if metric.permanent is not None:
        if not isinstance(schedule, Periodic) or schedule.join:
            raise InvalidContract(
                name,
                "schedule",
                "of a memoised mechanism is every round of many: not once, and without join",
            )
        if metric.permanent.charge <= metric.epsilon.charge:
            raise InvalidContract(
                name, "permanent", "must be above epsilon, which one report tells"
            )
    if metric.series_charge is None or not isinstance(schedule, Periodic):
        return
    if not schedule.grace:
        raise InvalidContract(
            name, "schedule", "needs a grace: reports of a series leave when their round is over"
        )
    if metric.series_charge > MAX_CHARGE_PER_SOURCE:
        raise InvalidContract(
            name,
            "schedule",
            f"costs ε = {charge_text(metric.series_charge)} as a whole, above 32, the most that a "
            f"source may ever give away",
        )


def require_proof(metric: Metric) -> None:
    """Raise PrivacyNotProved unless the metric's integers prove that a report costs at most
    its ε, and that is at most what any report may cost."""
    for epsilon in filter(None, (metric.epsilon, metric.permanent)):
        if epsilon.charge > MAX_CHARGE_PER_REPORT:
            raise PrivacyNotProved(
                metric.name, f"ε = {epsilon.text} is above 8, the most a report may cost"
            )
    try:
        certificates = metric.certificates
    except ValueError as error:
        raise PrivacyNotProved(metric.name, str(error)) from None
    for certificate in certificates:
        if not certificate.holds:
            ratio = certificate.ratio
            raise PrivacyNotProved(
                metric.name,
                f"its thresholds reveal more than the declared ε = {certificate.declared.text}: "
                f"the worst ratio is {ratio.numerator}/{ratio.denominator}, which is "
                f"ε = {certificate.realised}",
            )
