"""Bundles: whatever is signed is refused by a BundleError, or is all that a device counts on.

An input is a byte and a Bundle, which is signed here; or, if the byte is odd, a SignedBundle.
"""

import contextlib
import functools
import io
import json
import math
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from hubbub import Bundle
from hubbub.contract import Metric
from hubbub.errors import BundleError
from hubbub.exact import Epsilon
from hubbub.ledger import Ledger
from hubbub.mechanisms import MECHANISMS
from hubbub.randomness import SYSTEM
from hubbub.statement import statement
from hubbub.v1 import contract_pb2
from hubbub_aggregator.commands.certify import CertificateFormat, certify
from hubbub_aggregator.oracles import oracle_for
from tests.fuzz import keys, metrics, scratch
from tests.fuzz.chance import Chance

LONGEST = 2_048
# Larger memos and domains are legitimate, and only slower.
_LARGEST_MEMO = 1 << 13
_MOST_VALUES = 2_048
# Of what mutants are made of: many small ones are tried in the time of a large one.
_SHORT = 180
_MOST_METRICS = 2
_TOKENS = (
    *("1", "0.5", "2", "8", "8.000000000001", "0.000000000001", "ln 3", "ln 2980.957987041728"),
    *("ln 1.000000000001", "1.0", "ln3", "128", "129", "a", "lunch.today", "?", "\u202e", " a"),
    *(
        "localhost:7443",
        "[::1]:65535",
        "h:65536",
        "\u00e9",
        "e\u0301",
        "\U0001f469\u200d\U0001f52c",
    ),
)


def execute(data: bytes, *, thorough: bool = True) -> None:
    if not data:
        return
    # Checking a signature takes longer than all the rest.
    with contextlib.nullcontext() if thorough or data[0] & 1 else keys.any_signature():
        signed = data[1:] if data[0] & 1 else keys.sign(data[1:], really=thorough)
        try:
            bundle = Bundle.verify(signed, operator_key=keys.OPERATOR)
        except BundleError as refusal:
            assert str(refusal)
            return
        if thorough:
            assert Bundle.verify(bundle.signed, operator_key=keys.OPERATOR) == bundle
    _require_canonical(signed)
    for metric in bundle.metrics.values():
        _require_private(metric)
        _require_answers(metric)
    if thorough:
        _require_statements(bundle)
        _require_figures(bundle)


def _require_canonical(signed: bytes) -> None:
    """What was accepted, the protobuf library reads as well, and would write like that."""
    envelope = contract_pb2.SignedBundle.FromString(signed)
    bundle = contract_pb2.Bundle.FromString(envelope.bundle)
    for message, data in (
        (envelope, signed),
        (bundle, envelope.bundle),
        *((contract_pb2.Metric.FromString(metric), metric) for metric in bundle.metrics),
    ):
        message.DiscardUnknownFields()
        assert message.SerializeToString(deterministic=True) == data


def _require_private(metric: Metric) -> None:
    """The proof, roughly but once more: by floating point's logarithm."""
    for certificate in metric.certificates:
        epsilon = certificate.declared
        most = math.log(epsilon.number) if epsilon.logarithm else float(epsilon.number)
        ratio = certificate.ratio
        assert ratio > 1
        assert math.log(ratio.numerator) - math.log(ratio.denominator) <= most + 1e-9 <= 8 + 1e-8
        assert epsilon.charge + 1 >= most * 10**12 * (1 - 1e-12)
    if metric.is_series:
        assert metric.series_charge is not None
        assert 0 < metric.series_charge <= 32 * 10**12


def _require_answers(metric: Metric) -> None:
    """Its first and last values can be answered, and the aggregator would count that."""
    domain, mechanism, oracle = metric.domain, metric.mechanism, oracle_for(metric.mechanism)
    for label in domain.labels[:1] + domain.labels[-1:]:
        value = domain.index_of(label)
        assert value is not None
        assert 0 <= value < domain.k
        memoised = metric.memoised
        if memoised is None:
            payload = mechanism.randomise(value, SYSTEM)
        elif memoised.memo_size <= _LARGEST_MEMO:
            payload = memoised.respond(metric.draw_secret(0, SYSTEM), value, SYSTEM)
        else:
            continue
        assert len(payload) == mechanism.payload_size == oracle.payload_size
        if domain.k <= _MOST_VALUES:
            assert set(metric.supported(payload)) <= set(domain.labels)
    if metric.is_series and metric.memoised is None:
        metric.draw_secret(0, SYSTEM)


def _require_statements(bundle: Bundle) -> None:
    """Whoever holds it can say what it asks, before and after its rounds."""
    ledger = Ledger.open(None)
    ledger.adopt(bundle, [bundle.operator], {}, now=0)
    for now in (0, metrics.START + metrics.EVERY, 20_000_000_001):
        said = statement(ledger, now=now)
        assert all(name in said.text(newest=None) for name in bundle.metrics)
        assert len(json.loads(said.json())["metrics"]) == len(bundle.metrics)
    ledger.close()


def _require_figures(bundle: Bundle) -> None:
    """`hubbub certify` has something to say about it."""
    path = scratch.folder() / "bundle"
    path.write_bytes(bundle.signed)
    for form in CertificateFormat:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            certify(path, bundle.operator, form)
        assert said.getvalue()


def seeds() -> list[bytes]:
    every = _contracts()
    bundles = [metrics.bundle(contracts) for contracts in (*([one] for one in every), every[:2])]
    # Keys of post-quantum suites are long, and everywhere the same.
    for bundle in bundles[1:]:
        del bundle.sealing_keys[1]
    written = [bundle.SerializeToString(deterministic=True) for bundle in bundles]
    return [b"\0" + bundle for bundle in written] + [b"\1" + keys.sign(written[1])]


def mutate(data: bytes, chance: Chance) -> bytes:
    if not data or data[0] & 1 or chance.happens(0.05):
        return chance.octets(data)
    try:
        bundle = contract_pb2.Bundle.FromString(data[1:])
    except DecodeError:
        return data[:1] + chance.octets(data[1:])
    for _ in range(chance.pick((1, 1, 1, 2, 4))):
        _edit_bundle(bundle, chance)
    return b"\0" + bundle.SerializeToString(deterministic=True)


def _edit_bundle(bundle: contract_pb2.Bundle, chance: Chance) -> None:
    del bundle.metrics[_MOST_METRICS:]
    if not bundle.metrics or (len(bundle.metrics) < _MOST_METRICS and chance.happens(0.05)):
        bundle.metrics.append(chance.pick(_contracts()))
    elif chance.happens(0.15):
        _edit(bundle, chance)
    elif chance.happens(0.1):
        del bundle.metrics[chance.randrange(len(bundle.metrics))]
    else:
        place = chance.randrange(len(bundle.metrics))
        try:
            metric = contract_pb2.Metric.FromString(bundle.metrics[place])
        except DecodeError:
            bundle.metrics[place] = chance.pick(_contracts())
            return
        for _ in range(chance.pick((1, 1, 2, 3))):
            _edit(metric, chance)
        if chance.happens(0.3):
            _calibrate(metric)
        bundle.metrics[place] = metric.SerializeToString(deterministic=True)
        if chance.happens(0.02):
            bundle.metrics[place] = chance.octets(bundle.metrics[place])


@functools.cache
def _contracts() -> list[bytes]:
    return [contract for contract in metrics.contracts() if len(contract) < _SHORT]


def _edit(message: Message, chance: Chance) -> None:
    """Change a field of a message, or of one in it; more often one that is set."""
    fields = list(message.DESCRIPTOR.fields)
    present = [field for field, _ in message.ListFields()]
    field = chance.pick(present if present and chance.happens(0.8) else fields)
    if field.is_repeated:
        _edit_list(getattr(message, field.name), field, chance)
    elif chance.happens(0.05):
        message.ClearField(field.name)
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _edit(inner, chance)
    else:
        setattr(message, field.name, _other(getattr(message, field.name), field, chance))


def _edit_list(items: Any, field: FieldDescriptor, chance: Chance) -> None:
    place = chance.randint(0, len(items))
    match chance.randrange(4):
        case 0 if place < len(items):
            del items[place]
        case 1 if place < len(items):
            items.append(items[place])
        case 2 if place < len(items) and field.message_type is not None:
            _edit(items[place], chance)
        case 2 if place < len(items):
            items[place] = _other(items[place], field, chance)
        case _ if field.type == field.TYPE_STRING:
            items.extend(f"{len(items) + more}" for more in range(chance.pick((1, 1, 2, 8))))


def _other(value: Any, field: FieldDescriptor, chance: Chance) -> Any:
    match field.type:
        case field.TYPE_STRING:
            return chance.text(value, _TOKENS)
        case field.TYPE_BYTES:
            return chance.octets(value)
        case field.TYPE_BOOL:
            return not value
        case field.TYPE_ENUM:
            return chance.randrange(4)
        case _:
            return chance.number(value)


def _calibrate(metric: contract_pb2.Metric) -> None:
    """Make the threshold the most telling one, where anything is to be calibrated."""
    chosen = metric.WhichOneof("mechanism")
    mechanism = MECHANISMS.get((chosen or "").replace("_", "-"))
    if mechanism is None:
        return
    domain, parameters = metric.domain, getattr(metric, chosen)
    k = len(domain.values) + bool(domain.other) + bool(domain.absent)
    _, *others = parameters.DESCRIPTOR.fields
    numbers = [min(getattr(parameters, other.name), 1 << 16) for other in others]
    with contextlib.suppress(ValueError, ArithmeticError, MemoryError):
        made = mechanism.calibrate(k, Epsilon.parse(metric.epsilon), *numbers)
        for name, number in made.parameters.items():
            setattr(parameters, name, number)
