"""Signed bundles that every implementation must refuse, each with its reason.

They are signed by the right operator unless the signature is what is wrong.
"""

from collections.abc import Iterator
from typing import Any

from hubbub.bundle import SIGNATURE_CONTEXT
from hubbub.v1 import contract_pb2 as pb
from tools.bundle_vectors import (
    FOREIGN,
    NAME,
    OPERATOR,
    X25519_KEY,
    bundle,
    encode,
    metric,
    once,
    open_metric,
    sealing_key,
    sign,
)
from tools.hostile_contracts import Refused, bad_contracts
from tools.hostile_series import bad_series


def bad_bundles() -> Iterator[Refused]:
    yield from _bad_signatures()
    yield from _not_canonical()
    yield from _bad_contents()
    yield from bad_contracts()
    yield from bad_series()


def _bad_signatures() -> Iterator[Refused]:
    content = bundle()
    signature = OPERATOR.sign(SIGNATURE_CONTEXT + content)
    flipped = bytes([signature[0] ^ 1]) + signature[1:]
    for name, signed in {
        "nothing": b"",
        "no signature": encode(pb.SignedBundle(bundle=content)),
        "one bit of the signature flipped": encode(
            pb.SignedBundle(bundle=content, signature=flipped)
        ),
        "signature cut short": encode(pb.SignedBundle(bundle=content, signature=signature[:-1])),
        "signed without its context": encode(
            pb.SignedBundle(bundle=content, signature=OPERATOR.sign(content))
        ),
        "changed after signing": encode(
            pb.SignedBundle(bundle=bundle(revision=2), signature=signature)
        ),
        "signed by somebody else": sign(content, FOREIGN),
    }.items():
        yield Refused(name, signed, "BadSignature", {})


def _not_canonical() -> Iterator[Refused]:
    """Other encodings of the same messages, and bytes that are no messages."""
    signed, content, contract = sign(bundle()), bundle(), metric()
    revision, rest = content[:2], content[2:]
    name_field = encode(pb.Metric(name=NAME))
    unknown = bytes.fromhex("980601")  # field 99, varint 1
    in_key = encode(X25519_KEY)
    tail = content[len(encode(pb.Bundle(revision=1, endpoint="collect.example.com:7443"))) :]
    head = content[: -len(tail)]

    def with_key(key: bytes) -> bytes:
        keys = b"\x22" + bytes([len(key)]) + key
        return head + keys + encode(pb.Bundle(metrics=[contract]))

    envelopes = {
        "not protobuf": b"once upon a time",
        "cut short": signed[:-1],
        "a byte too many": signed + b"\0",
        "an unknown field in the envelope": signed + unknown,
        "envelope reversed": encode(pb.SignedBundle(signature=signed[-64:]))
        + encode(pb.SignedBundle(bundle=content)),
        "a length without end": b"\x0a" + b"\xff" * 64,
        "a length past the end": b"\x0a\xff\xff\xff\xff\x0f",
        "nested groups": b"\x0b" * 1_000,
    }
    for name, octets in envelopes.items():
        yield Refused(name, octets, "MalformedBundle", {"reason": "canonical form"})
    contents = {
        "an unknown field": content + unknown,
        "fields in another order": rest + revision,
        "revision twice": revision + content,
        "revision in two bytes": b"\x08\x81\x00" + rest,
        "revision in eleven bytes": b"\x08" + b"\x81" + b"\x80" * 9 + b"\x00" + rest,
        "revision as fixed64": b"\x09" + (1).to_bytes(8, "little") + rest,
        "an explicit zero": b"\x08\x00" + rest,
        "an explicit empty authority": head + b"\x1a\x00" + tail,
        "endpoint not UTF-8": revision + b"\x12\x02\xc0\xaf" + tail,
        "endpoint with a surrogate": revision + b"\x12\x03\xed\xa0\x80" + tail,
        "an unknown field in a sealing key": with_key(in_key + unknown),
    }
    contracts = {
        "an unknown field in a metric": contract + unknown,
        "an empty name": b"\x0a\x00" + contract[len(name_field) :],
        "domain in two pieces": contract + encode(pb.Metric(domain=pb.Domain(values=["more"]))),
        "an explicit threshold of zero": metric(None) + b"\x3a\x09\x09" + bytes(8),
        "threshold as varint": metric(None) + b"\x3a\x02\x08\x01",
        "size as fixed64": metric(None) + b"\x52\x09\x11" + (2).to_bytes(8, "little"),
        "an unknown parameter": metric(None) + b"\x52\x02\x18\x01",
        "an explicit size of zero": metric(None) + b"\x52\x02\x10\x00",
        "retain is 2": contract + b"\x68\x02",
        "retain is explicitly not": contract + b"\x68\x00",
        "retain twice": contract + b"\x68\x01\x68\x01",
        "open is 2": open_metric().replace(b"\x20\x01", b"\x20\x02"),
        "open is explicitly not": open_metric().replace(b"\x20\x01", b"\x20\x00"),
        "an explicit end of zero": metric(schedule=once())
        .replace(b"\x12\x00", b"\x12\x02\x08\x00")
        .replace(b"\x32\x08", b"\x32\x0a"),
    }
    for name, octets in contents.items():
        yield Refused(name, sign(octets), "MalformedBundle", {"reason": "canonical form"})
    for name, octets in contracts.items():
        yield Refused(name, sign(bundle(octets)), "MalformedBundle", {"reason": "canonical form"})
    # Read from front to back, these lack a field before the bytes turn out not to fit.
    lacking = {
        "name last": ("name", contract[len(name_field) :] + name_field),
        "name twice": ("question", name_field + contract),
        "one byte for a metric": ("name", b"\0"),
        "a mechanism of another version": ("mechanism", metric(None) + b"\x9a\x01\x00"),
        "retain before the mechanism": ("mechanism", metric(None, retain=True) + b"\x3a\x00"),
    }
    for name, (field, octets) in lacking.items():
        yield Refused(name, sign(bundle(octets)), "InvalidContract", {"field": field})


def _bad_contents() -> Iterator[Refused]:
    x25519 = X25519_KEY.public_key
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("revision 0", "revision", {"revision": 0}),
        ("revision 2^63", "revision", {"revision": 1 << 63}),
        *(
            (f"endpoint {endpoint!a}", "endpoint", {"endpoint": endpoint})
            for endpoint in (
                "", "localhost", "localhost:", ":7443", "https://localhost:7443", "a b:1",
                "localhost:0", "localhost:65536", "localhost:123456", "localhost:7443\n",
                "::1:7443", "unix:/tmp/socket", "löcalhost:7443", "localhost:７443",
            )
        ),
        ("no sealing key", "no sealing key", {"sealing_keys": []}),
        ("a sealing key twice", "twice", {"sealing_keys": [X25519_KEY, X25519_KEY]}),
        ("key id of another key", "id", {"sealing_keys": [sealing_key(1, x25519, b"8 bytes.")]}),
        ("no key id", "id", {"sealing_keys": [sealing_key(1, x25519, b"")]}),
        ("no suite", "suite 0", {"sealing_keys": [sealing_key(0, x25519)]}),
        ("unknown suite", "suite 3", {"sealing_keys": [sealing_key(3, x25519)]}),
        ("key too short", "length", {"sealing_keys": [sealing_key(1, x25519[:-1])]}),
        ("key of another suite", "length", {"sealing_keys": [sealing_key(2, x25519)]}),
        ("an empty sealing key", "suite 0", {"sealing_keys": [pb.SealingKey()]}),
    ]  # fmt: skip
    for name, reason, changes in cases:
        yield Refused(name, sign(bundle(**changes)), "MalformedBundle", {"reason": reason})
