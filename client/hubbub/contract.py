"""The contract as a device checks it: signature, canonical bytes, limits, proof of ε.

Every function here takes bytes that a stranger may have written and returns an immutable
object, or raises a BundleError that says which metric breaks which rule.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from hubbub.errors import BadSignature, InvalidContract, MalformedBundle, PrivacyNotProved
from hubbub.exact import Certificate, Epsilon
from hubbub.limits import (
    MAX_BUNDLE_BYTES,
    MAX_CHARGE_PER_REPORT,
    MAX_LABEL_BYTES,
    MAX_QUESTION_BYTES,
    MAX_ROUNDS,
    MAX_TIME,
    MAX_VALUES,
)
from hubbub.mechanisms import Mechanism, OptimisedUnary, RandomisedResponse, SymmetricUnary
from hubbub.schedule import Once, Periodic, Schedule
from hubbub.v1 import contract_pb2

# What a bundle's signature covers begins with this, so that it can mean nothing else.
SIGNATURE_CONTEXT: Final = b"hubbub/v1/bundle\0"

# Length of each sealing suite's public key; X25519's is 32, ML-KEM-768's 1,184.
PUBLIC_KEY_BYTES: Final[Mapping[int, int]] = MappingProxyType(
    {
        contract_pb2.SEALING_SUITE_X25519_HKDF_SHA256_AES128GCM: 32,
        contract_pb2.SEALING_SUITE_MLKEM768_X25519_HKDF_SHA256_AES128GCM: 1_184 + 32,
    }
)

_NAME: Final = re.compile(r"[a-z0-9._-]{1,64}", re.ASCII)
_ENDPOINT: Final = re.compile(
    r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]{2,45}\]:[0-9]{1,5}"
)
_OPERATOR_KEY: Final = re.compile(r"ed25519:[0-9a-f]{64}", re.ASCII)

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Domain:
    """The possible answers. Indices count values, then `other`, then `absent`."""

    labels: tuple[str, ...]
    other: int | None
    """Index of the answer that stands for everything outside the domain."""
    absent: int | None
    """Index of the answer that stands for "nothing to report"."""

    @property
    def k(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Metric:
    """One question, checked: its thresholds are proved to keep its declared ε."""

    name: str
    question: str
    source: str
    epsilon: Epsilon
    domain: Domain
    schedule: Schedule
    mechanism: Mechanism
    contract: bytes
    """The bytes that were signed."""

    @property
    def digest(self) -> bytes:
        """SHA-256 of the contract: 32 bytes."""
        return hashlib.sha256(self.contract).digest()

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.epsilon, self.mechanism.ratio)


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A public key that reports are sealed to."""

    key_id: bytes
    suite: int
    """A contract_pb2.SealingSuite."""
    public_key: bytes


@dataclass(frozen=True, slots=True)
class Bundle:
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

    @classmethod
    def load(cls, path: str | Path, *, operator_key: str | Sequence[str]) -> "Bundle":
        """Read and verify a bundle file. Raises BundleError or OSError."""
        return cls.verify(Path(path).read_bytes(), operator_key=operator_key)

    @classmethod
    def verify(cls, signed: bytes, *, operator_key: str | Sequence[str]) -> "Bundle":
        """Check signature, form, limits and every metric's privacy.

        `operator_key` is "ed25519:" and 64 hexadecimal digits, as in operator.pub; of
        several, any one may have signed. Raises BundleError.
        """
        keys = (operator_key,) if isinstance(operator_key, str) else tuple(operator_key)
        if len(signed) > MAX_BUNDLE_BYTES:
            raise MalformedBundle(f"larger than {MAX_BUNDLE_BYTES:,} bytes")
        envelope = parse_canonical(contract_pb2.SignedBundle, signed)
        operator = _signer(envelope.bundle, envelope.signature, keys)
        message = parse_canonical(contract_pb2.Bundle, envelope.bundle)
        if not 0 < message.revision < 1 << 63:
            raise MalformedBundle(f"revision {message.revision} is out of range")
        if not _ENDPOINT.fullmatch(message.endpoint):
            raise MalformedBundle(f"the endpoint {message.endpoint[:80]!r} is not host:port")
        metrics: dict[str, Metric] = {}
        for contract in message.metrics:
            metric = parse_metric(contract)
            if metric.name in metrics:
                raise InvalidContract(metric.name, "name", "is defined twice")
            metrics[metric.name] = metric
        return cls(
            operator=operator,
            revision=message.revision,
            endpoint=message.endpoint,
            certificate_authority=message.certificate_authority,
            sealing_keys=_sealing_keys(message),
            metrics=MappingProxyType(metrics),
            signed=signed,
        )


def parse_canonical(kind: type[M], data: bytes) -> M:
    """Decode a message, requiring that its known fields encode to exactly `data`."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise MalformedBundle(f"not a {kind.DESCRIPTOR.name}") from None
    message.DiscardUnknownFields()
    if message.SerializeToString(deterministic=True) != data:
        raise MalformedBundle(f"a {kind.DESCRIPTOR.name} is not in its canonical form")
    return message


def operator_key_bytes(text: str) -> bytes:
    """Return the 32 bytes of "ed25519:<64 hex digits>"; raises ValueError."""
    if not _OPERATOR_KEY.fullmatch(text):
        raise ValueError(
            'an operator key is "ed25519:" and 64 hexadecimal digits, the line in operator.pub, '
            f"not {text[:80]!r}"
        )
    return bytes.fromhex(text.removeprefix("ed25519:"))


def _signer(bundle: bytes, signature: bytes, operator_keys: Sequence[str]) -> str:
    # Imported here: an app that is handed a verified bundle never loads it.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    for text in operator_keys:
        key = Ed25519PublicKey.from_public_bytes(operator_key_bytes(text))
        try:
            key.verify(signature, SIGNATURE_CONTEXT + bundle)
        except InvalidSignature:
            continue
        return text
    raise BadSignature(operator_keys)


def _sealing_keys(bundle: contract_pb2.Bundle) -> tuple[SealingKey, ...]:
    keys = tuple(SealingKey(key.key_id, key.suite, key.public_key) for key in bundle.sealing_keys)
    if not keys:
        raise MalformedBundle("it lists no sealing key, and reports are never sent unsealed")
    for key in keys:
        if key.key_id != key_id(key.public_key):
            raise MalformedBundle("a sealing key's id does not belong to it")
        if key.suite not in PUBLIC_KEY_BYTES:
            raise MalformedBundle(f"sealing suite {key.suite} is unknown to this version")
        if len(key.public_key) != PUBLIC_KEY_BYTES[key.suite]:
            raise MalformedBundle("a sealing key is not of its suite's length")
    if len({key.key_id for key in keys}) < len(keys):
        raise MalformedBundle("it lists a sealing key twice")
    return keys


def key_id(public_key: bytes) -> bytes:
    """The first 8 bytes of the SHA-256 of a sealing key."""
    return hashlib.sha256(public_key).digest()[:8]


def parse_metric(contract: bytes) -> Metric:
    """Check one metric's bytes. Raises MalformedBundle or InvalidContract."""
    message = parse_canonical(contract_pb2.Metric, contract)
    name = message.name
    if not _NAME.fullmatch(name):
        raise InvalidContract(name[:64], "name", "must be 1 to 64 of a-z, 0-9, '.', '_', '-'")
    if not _NAME.fullmatch(message.source):
        raise InvalidContract(name, "source", "must be 1 to 64 of a-z, 0-9, '.', '_', '-'")
    if not _is_text(message.question, MAX_QUESTION_BYTES):
        raise InvalidContract(
            name, "question", f"must be 1 to {MAX_QUESTION_BYTES:,} bytes of printable text"
        )
    epsilon = _epsilon(name, message.epsilon)
    domain = _domain(name, message.domain)
    schedule = _schedule(name, message.schedule)
    mechanism = _mechanism(name, message, domain.k)
    metric = Metric(
        name, message.question, message.source, epsilon, domain, schedule, mechanism, contract
    )
    _require_proof(metric)
    return metric


def _is_text(text: str, most_bytes: int) -> bool:
    return 0 < len(text.encode()) <= most_bytes and text.isprintable() and bool(text.strip())


def _epsilon(name: str, text: str) -> Epsilon:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError as error:
        raise InvalidContract(name, "epsilon", str(error)) from None
    if epsilon.text != text:
        raise InvalidContract(name, "epsilon", f"must be written {epsilon.text!r}, not {text!r}")
    if epsilon.charge > MAX_CHARGE_PER_REPORT:
        raise PrivacyNotProved(name, f"ε = {text} is above 8, the most a report may cost")
    return epsilon


def _domain(name: str, message: contract_pb2.Domain) -> Domain:
    labels = list(message.values)
    other = absent = None
    if message.other:
        other = len(labels)
        labels.append(message.other)
    if message.absent:
        absent = len(labels)
        labels.append(message.absent)
    if not 2 <= len(labels) <= MAX_VALUES:
        raise InvalidContract(name, "values", f"must be 2 to {MAX_VALUES:,}, not {len(labels)}")
    seen: set[str] = set()
    for label in labels:
        if not _is_text(label, MAX_LABEL_BYTES):
            raise InvalidContract(
                name,
                "values",
                f"{label[:40]!r} is not 1 to {MAX_LABEL_BYTES} bytes of printable text",
            )
        if label in seen:
            raise InvalidContract(name, "values", f"{label[:40]!r} is listed twice")
        seen.add(label)
    return Domain(tuple(labels), other, absent)


def _schedule(name: str, message: contract_pb2.Schedule) -> Schedule:
    starts = message.starts
    form = message.WhichOneof("form")
    if starts > MAX_TIME:
        raise InvalidContract(name, "schedule", "starts too far in the future")
    if form == "once":
        ends = message.once.ends
        if ends and not starts < ends <= MAX_TIME:
            raise InvalidContract(name, "schedule", "must end after it starts")
        return Once(starts, ends or None)
    if form == "periodic":
        periodic = message.periodic
        if not 1 <= periodic.rounds <= MAX_ROUNDS:
            raise InvalidContract(name, "schedule", f"must have 1 to {MAX_ROUNDS:,} rounds")
        if not periodic.every:
            raise InvalidContract(name, "schedule", "a round must last at least one second")
        if starts + periodic.every * periodic.rounds + periodic.grace > MAX_TIME:
            raise InvalidContract(name, "schedule", "ends too far in the future")
        return Periodic(starts, periodic.every, periodic.rounds, periodic.grace)
    raise InvalidContract(name, "schedule", "is missing")


def _mechanism(name: str, message: contract_pb2.Metric, k: int) -> Mechanism:
    match message.WhichOneof("mechanism"):
        case "randomised_response":
            return RandomisedResponse(k, message.randomised_response.keep)
        case "symmetric_unary":
            return SymmetricUnary(k, message.symmetric_unary.flip)
        case "optimised_unary":
            return OptimisedUnary(k, message.optimised_unary.raised)
        case None:
            raise InvalidContract(name, "mechanism", "is missing or unknown to this version")


def _require_proof(metric: Metric) -> None:
    """Raise unless the metric's own integers prove that a report costs at most its ε."""
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
