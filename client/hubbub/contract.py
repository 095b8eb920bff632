"""The contract as a device checks it: signature, canonical bytes, limits, proof of ε.

Every function here takes bytes that a stranger may have written and returns an immutable
object, or raises a BundleError that says which metric breaks which rule.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from os import PathLike
from types import MappingProxyType
from typing import Final, NamedTuple

from hubbub.canonical import NotCanonical, Reader
from hubbub.digest import sha256
from hubbub.domain import Domain, is_printable, read_domain
from hubbub.errors import (
    BadSignature,
    InvalidContract,
    InvalidOperatorKey,
    MalformedBundle,
    PrivacyNotProved,
)
from hubbub.exact import Certificate, Epsilon
from hubbub.limits import (
    MAX_BUNDLE_BYTES,
    MAX_CHARGE_PER_REPORT,
    MAX_QUESTION_BYTES,
    MAX_ROUNDS,
    MAX_TIME,
)
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.schedule import Once, Periodic, Schedule

# What a bundle's signature covers begins with this, so that it can mean nothing else.
SIGNATURE_CONTEXT: Final = b"hubbub/v1/bundle\0"

_NAME: Final = re.compile(r"[a-z0-9._-]{1,64}", re.ASCII)
_ENDPOINT: Final = re.compile(
    r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([1-9][0-9]{0,4})"
)
_OPERATOR_KEY: Final = re.compile(r"ed25519:[0-9a-f]{64}", re.ASCII)


class _Message(NamedTuple):
    """What a mechanism's message holds."""

    make: Callable[..., Mechanism]
    more: int
    """How many parameters there are beside the threshold, which is field 1."""


# By field number of Metric's oneof.
_MECHANISMS: Final = {
    7: _Message(RandomisedResponse, 0),
    8: _Message(SymmetricUnary, 0),
    9: _Message(OptimisedUnary, 0),
    10: _Message(SubsetSelection, 1),
    11: _Message(ProjectiveGeometry, 2),
    12: _Message(LocalHashing, 2),
}


class SealingSuite(IntEnum):
    """HPKE suites, by their numbers on the wire; both with HKDF-SHA256 and AES-128-GCM."""

    X25519 = 1
    MLKEM768_X25519 = 2


# X25519's public key is 32 bytes, ML-KEM-768's 1,184.
_PUBLIC_KEY_BYTES: Final = {SealingSuite.X25519: 32, SealingSuite.MLKEM768_X25519: 1_184 + 32}


class Metric(NamedTuple):
    """One question, checked: its thresholds are proved to keep its declared ε."""

    name: str
    question: str
    source: str
    epsilon: Epsilon
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
        return Certificate(self.epsilon, self.mechanism.ratio)

    def supported(self, payload: bytes) -> tuple[str, ...]:
        """The labels that a payload supports; none in an open domain, whose texts nobody lists.

        Raises ValueError if it is not a payload of this metric.
        """
        if self.domain.open:
            return ()
        return tuple(self.domain.labels[value] for value in self.mechanism.supported(payload))

    def __repr__(self) -> str:
        return f"<metric {self.name!r}, digest {self.digest.hex()[:16]}…>"


class SealingKey(NamedTuple):
    """A public key that reports are sealed to."""

    key_id: bytes
    suite: SealingSuite
    public_key: bytes


class Bundle(NamedTuple):
    """A verified bundle; may be shared by any number of clients."""

    operator: str
    """The operator key whose signature it bears."""
    revision: int
    endpoint: str
    certificate_authority: bytes
    """PEM, or empty for the system's authorities."""
    sealing_keys: tuple[SealingKey, ...]
    metrics: Mapping[str, Metric]
    """By name, in the bundle's order."""
    signed: bytes
    """The SignedBundle, as received."""

    def __repr__(self) -> str:
        return f"<bundle of {self.operator[:24]}…, revision {self.revision}>"

    @classmethod
    def load(cls, path: str | PathLike[str], *, operator_key: str | Sequence[str]) -> "Bundle":
        """Read and verify a bundle file. Raises BundleError or OSError."""
        with open(path, "rb") as file:
            return cls.verify(file.read(MAX_BUNDLE_BYTES + 1), operator_key=operator_key)

    @classmethod
    def verify(cls, signed: bytes, *, operator_key: str | Sequence[str]) -> "Bundle":
        """Check signature, form, limits and every metric's privacy.

        `operator_key` is "ed25519:" and 64 hexadecimal digits, as in operator.pub; of
        several, any one may have signed. Raises BundleError.
        """
        keys = (operator_key,) if isinstance(operator_key, str) else tuple(operator_key)
        envelope = open_envelope(signed)
        operator = _signer(envelope, keys)
        content = read_bundle(envelope.bundle)
        metrics: dict[str, Metric] = {}
        for contract in content.contracts:
            metric = parse_metric(contract)
            if metric.name in metrics:
                raise InvalidContract(metric.name, "name", "is defined twice")
            metrics[metric.name] = metric
        return cls(
            operator=operator,
            revision=content.revision,
            endpoint=content.endpoint,
            certificate_authority=content.certificate_authority,
            sealing_keys=content.sealing_keys,
            metrics=MappingProxyType(metrics),
            signed=signed,
        )


class Envelope(NamedTuple):
    """A signed bundle, taken apart; nothing about it is checked yet."""

    bundle: bytes
    signature: bytes


class BundleContent(NamedTuple):
    """A bundle's fields, checked for form; its contracts are still bytes."""

    revision: int
    endpoint: str
    certificate_authority: bytes
    sealing_keys: tuple[SealingKey, ...]
    contracts: tuple[bytes, ...]


def open_envelope(signed: bytes) -> Envelope:
    """Take a SignedBundle apart. Raises MalformedBundle."""
    if len(signed) > MAX_BUNDLE_BYTES:
        raise MalformedBundle(f"larger than {MAX_BUNDLE_BYTES:,} bytes")
    try:
        reader = Reader(signed)
        envelope = Envelope(reader.octets(1), reader.octets(2))
        reader.end()
    except NotCanonical:
        raise MalformedBundle("it is not a signed bundle in its canonical form") from None
    return envelope


def read_bundle(bundle: bytes) -> BundleContent:
    """Check everything about a bundle's bytes but its metrics. Raises MalformedBundle."""
    try:
        reader = Reader(bundle)
        content = BundleContent(
            revision=reader.uint(1),
            endpoint=reader.text(2),
            certificate_authority=reader.octets(3),
            sealing_keys=tuple(_sealing_key(Reader(key)) for key in reader.each(4)),
            contracts=tuple(reader.each(5)),
        )
        reader.end()
    except NotCanonical:
        raise MalformedBundle("a bundle is not in its canonical form") from None
    if not 0 < content.revision < 1 << 63:
        raise MalformedBundle(f"revision {content.revision} is out of range")
    endpoint = _ENDPOINT.fullmatch(content.endpoint)
    if endpoint is None or int(endpoint[1]) > 65_535:
        raise MalformedBundle(f"the endpoint {content.endpoint[:80]!r} is not host:port")
    if not content.sealing_keys:
        raise MalformedBundle("it lists no sealing key, and reports are never sent unsealed")
    if len({key.key_id for key in content.sealing_keys}) < len(content.sealing_keys):
        raise MalformedBundle("it lists a sealing key twice")
    return content


def is_name(text: object) -> bool:
    """Whether it can name a metric or a source."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def operator_key_bytes(text: str) -> bytes:
    """Return the 32 bytes of "ed25519:<64 hex digits>"; raises InvalidOperatorKey."""
    if not _OPERATOR_KEY.fullmatch(text):
        raise InvalidOperatorKey(text)
    return bytes.fromhex(text.removeprefix("ed25519:"))


def _signer(envelope: Envelope, operator_keys: Sequence[str]) -> str:
    # Imported here: an app that is handed a verified bundle never loads it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    for text in operator_keys:
        key = Ed25519PublicKey.from_public_bytes(operator_key_bytes(text))
        try:
            key.verify(envelope.signature, SIGNATURE_CONTEXT + envelope.bundle)
        except InvalidSignature:
            continue
        return text
    raise BadSignature(operator_keys)


def _sealing_key(reader: Reader) -> SealingKey:
    identity, suite, public_key = reader.octets(1), reader.uint(2), reader.octets(3)
    reader.end()
    if suite not in _PUBLIC_KEY_BYTES:
        raise MalformedBundle(f"sealing suite {suite} is unknown to this version")
    key = SealingKey(identity, SealingSuite(suite), public_key)
    if len(public_key) != _PUBLIC_KEY_BYTES[key.suite]:
        raise MalformedBundle("a sealing key is not of its suite's length")
    if identity != key_id(public_key):
        raise MalformedBundle("a sealing key's id does not belong to it")
    return key


def key_id(public_key: bytes) -> bytes:
    """The first 8 bytes of the SHA-256 of a sealing key."""
    return sha256(public_key)[:8]


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
    epsilon = _epsilon(name, reader.text(4))
    domain = read_domain(name, reader.message(5))
    schedule = _schedule(name, reader.message(6))
    mechanism = _mechanism(name, reader, domain.k)
    retain = reader.flag(13)
    reader.end()
    if domain.open and not (retain and isinstance(mechanism, LocalHashing)):
        raise InvalidContract(
            name, "values", "may be open only with local hashing and reports that are retained"
        )
    return Metric(
        name=name,
        question=question,
        source=source,
        epsilon=epsilon,
        domain=domain,
        schedule=schedule,
        mechanism=mechanism,
        retain=retain,
        contract=contract,
        digest=sha256(contract),
    )


def _epsilon(name: str, text: str) -> Epsilon:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError as error:
        raise InvalidContract(name, "epsilon", str(error)) from None
    if epsilon.text != text:
        raise InvalidContract(name, "epsilon", f"must be written {epsilon.text!r}, not {text!r}")
    return epsilon


def _schedule(name: str, reader: Reader | None) -> Schedule:
    if reader is None:
        raise InvalidContract(name, "schedule", "is missing")
    starts, once, periodic = reader.uint(1), reader.message(2), reader.message(3)
    reader.end()
    if starts > MAX_TIME:
        raise InvalidContract(name, "schedule", "starts too far in the future")
    if once is not None and periodic is None:
        ends = once.uint(1)
        once.end()
        if ends and not starts < ends <= MAX_TIME:
            raise InvalidContract(name, "schedule", "must end after it starts")
        return Once(starts, ends or None)
    if periodic is not None and once is None:
        every, rounds, grace = periodic.uint(1), periodic.uint(2), periodic.uint(3)
        periodic.end()
        if not 1 <= rounds <= MAX_ROUNDS:
            raise InvalidContract(name, "schedule", f"must have 1 to {MAX_ROUNDS:,} rounds")
        if not every:
            raise InvalidContract(name, "schedule", "a round must last at least one second")
        if starts + every * rounds + grace > MAX_TIME:
            raise InvalidContract(name, "schedule", "ends too far in the future")
        return Periodic(starts, every, rounds, grace)
    raise InvalidContract(name, "schedule", "must be either once or periodic")


def _mechanism(name: str, reader: Reader, k: int) -> Mechanism:
    """Read the mechanism and its parameters, whichever it is."""
    mechanism: Mechanism | None = None
    for number, message in _MECHANISMS.items():
        parameters = reader.message(number)
        if parameters is None:
            continue
        if mechanism is not None:
            raise InvalidContract(name, "mechanism", "must be one only")
        threshold = parameters.fixed64(1)
        others = [parameters.uint(2 + place) for place in range(message.more)]
        mechanism = message.make(k, threshold, *others)
        parameters.end()
    if mechanism is None:
        raise InvalidContract(name, "mechanism", "is missing or unknown to this version")
    return mechanism


def require_proof(metric: Metric) -> None:
    """Raise PrivacyNotProved unless the metric's integers prove that a report costs at most
    its ε, and that is at most what any report may cost."""
    if metric.epsilon.charge > MAX_CHARGE_PER_REPORT:
        raise PrivacyNotProved(
            metric.name, f"ε = {metric.epsilon.text} is above 8, the most a report may cost"
        )
    try:
        certificate = metric.certificate
    except ValueError as error:
        raise PrivacyNotProved(metric.name, str(error)) from None
    if not certificate.holds:
        ratio = certificate.ratio
        raise PrivacyNotProved(
            metric.name,
            f"its thresholds reveal more than the declared ε = {metric.epsilon.text}: the worst "
            f"ratio is {ratio.numerator}/{ratio.denominator}, which is ε = {certificate.realised}",
        )
