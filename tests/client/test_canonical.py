"""The strict reader against the protobuf library: both must call the same bytes canonical."""

import pytest
from google.protobuf.internal import encoder
from google.protobuf.message import DecodeError, Message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubbub.bundle import open_envelope, read_bundle
from hubbub.canonical import NotCanonical, Reader
from hubbub.contract import read_metric
from hubbub.errors import BundleError, InvalidContract, MalformedBundle
from hubbub.schedule import Periodic
from hubbub.v1 import contract_pb2 as pb
from tests.hostile import mutated
from tools.bundle_vectors import good_bundles
from tools.hostile_bundles import bad_bundles
from tools.series_vectors import good_series

SIGNED = [
    *(signed for _, signed in (*good_bundles(), *good_series())),
    *(bad.signed for bad in bad_bundles() if bad.error in {"InvalidContract", "PrivacyNotProved"}),
]
BUNDLES = [pb.SignedBundle.FromString(signed).bundle for signed in SIGNED]
METRICS = [contract for bundle in BUNDLES for contract in pb.Bundle.FromString(bundle).metrics]


def is_canonical(kind: type[Message], data: bytes) -> bool:
    """Decode, drop what is unknown, encode again: does that give the same bytes?"""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    message.DiscardUnknownFields()
    return message.SerializeToString(deterministic=True) == data


def refused_for_form(error: BundleError) -> bool:
    return isinstance(error, MalformedBundle) and "canonical form" in error.reason


@settings(max_examples=300)
@given(mutated(SIGNED) | st.binary(max_size=64))
def test_envelopes(data: bytes) -> None:
    try:
        envelope = open_envelope(data)
    except MalformedBundle:
        assert not is_canonical(pb.SignedBundle, data)
        return
    assert is_canonical(pb.SignedBundle, data)
    assert envelope == (
        pb.SignedBundle.FromString(data).bundle,
        pb.SignedBundle.FromString(data).signature,
    )


@settings(max_examples=300)
@given(mutated(BUNDLES) | st.binary(max_size=64))
def test_bundles(data: bytes) -> None:
    try:
        content = read_bundle(data)
    except MalformedBundle as error:
        if refused_for_form(error):
            assert not is_canonical(pb.Bundle, data)
        return
    assert is_canonical(pb.Bundle, data)
    message = pb.Bundle.FromString(data)
    assert content.revision == message.revision
    assert content.endpoint == message.endpoint
    assert content.certificate_authority == message.certificate_authority
    assert content.contracts == tuple(message.metrics)
    assert [tuple(key) for key in map(_key_fields, message.sealing_keys)] == [
        (key.key_id, key.suite, key.public_key) for key in content.sealing_keys
    ]


def _key_fields(key: pb.SealingKey) -> tuple[bytes, int, bytes]:
    return key.key_id, key.suite, key.public_key


@settings(max_examples=600)
@given(mutated(METRICS) | st.binary(max_size=64))
def test_metrics(data: bytes) -> None:
    try:
        metric = read_metric(data)
    except MalformedBundle:
        assert not is_canonical(pb.Metric, data)
        return
    except InvalidContract:
        return
    assert is_canonical(pb.Metric, data)
    message = pb.Metric.FromString(data)
    assert (metric.name, metric.question) == (message.name, message.question)
    assert (metric.source, metric.epsilon.text) == (message.source, message.epsilon)
    domain = message.domain
    labels = [*domain.values, *filter(None, (domain.other, domain.absent))]
    assert list(metric.domain.labels) == labels
    assert (metric.domain.open, metric.retain) == (domain.open, message.retain)
    assert (metric.permanent.text if metric.permanent else "") == message.permanent
    assert metric.schedule.starts == message.schedule.starts
    if message.schedule.HasField("periodic"):
        assert isinstance(metric.schedule, Periodic)
        _, *form = metric.schedule
        periodic = message.schedule.periodic
        assert form == [periodic.every, periodic.rounds, periodic.grace, periodic.join]
    chosen = metric.mechanism.name.replace("-", "_")
    assert message.WhichOneof("mechanism") == chosen
    assert metric.mechanism.parameters == {
        field.name: getattr(getattr(message, chosen), field.name)
        for field in getattr(message, chosen).DESCRIPTOR.fields
    }


@given(st.integers(0, (1 << 64) - 1))
@example((1 << 64) - 1)
def test_numbers_are_read_in_their_shortest_form(number: int) -> None:
    data = pb.Bundle(revision=number).SerializeToString()
    reader = Reader(data)
    assert reader.uint(1) == number
    reader.end()
    if number:
        longer = data[:-1] + bytes([data[-1] | 0x80, 0])
        with pytest.raises(NotCanonical):
            Reader(longer).uint(1)


@pytest.mark.parametrize(
    "varint",
    [
        b"",
        b"\x80",
        b"\xff" * 9,
        b"\xff" * 9 + b"\x02",
        b"\xff" * 10,
        b"\xff" * 10 + b"\x01",
        b"\x80" * 10 + b"\x01",
        b"\xff" * (4 << 20),
    ],
    ids=lambda varint: f"{varint[-1:].hex()}-{len(varint)}",
)
def test_a_number_of_more_than_64_bits_is_refused_at_once(varint: bytes) -> None:
    """Four megabytes of continuation bytes would otherwise be added up for half an hour."""
    with pytest.raises(NotCanonical):
        Reader(b"\x08" + varint).uint(1)


@pytest.mark.parametrize(
    ("wire_type", "value"), [(0, b"\x05"), (1, b"\x05" + bytes(7)), (2, b"\x01a")]
)
def test_a_tag_is_read_in_its_one_form(wire_type: int, value: bytes) -> None:
    """One byte up to field 15, two from there on; no other field's passes for it."""

    def read(reader: Reader, number: int) -> object:
        ask = (reader.uint, reader.fixed64, reader.octets)[wire_type]
        return ask(number)

    expected: object = 5 if wire_type < 2 else b"a"
    for number in range(1, 128):
        tag = encoder.TagBytes(number, wire_type)
        for asked in range(1, 128):
            reader = Reader(tag + value)
            assert read(reader, asked) == (expected if asked == number else type(expected)())
            if asked == number:
                reader.end()
        longer = tag[:-1] + bytes([tag[-1] | 0x80, 0])
        assert read(Reader(longer + value), number) == type(expected)()


@pytest.mark.parametrize(
    ("data", "flag"), [(b"", False), (b"\x68\x01", True), (b"\x60\x01", False)]
)
def test_a_flag(data: bytes, flag: bool) -> None:
    assert Reader(data).flag(13) is flag


@pytest.mark.parametrize("data", [b"\x68", b"\x68\x00", b"\x68\x02", b"\x68\x81\x00"])
def test_a_flag_has_one_form(data: bytes) -> None:
    with pytest.raises(NotCanonical):
        Reader(data).flag(13)


def test_the_largest_number() -> None:
    assert Reader(b"\x08" + b"\xff" * 9 + b"\x01").uint(1) == (1 << 64) - 1
