"""Signed bundles that every implementation must refuse, each with its reason.

They are signed by the right operator unless the signature is what is wrong.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hubbub.contract import SIGNATURE_CONTEXT
from hubbub.exact import Epsilon
from hubbub.limits import MAX_ROUNDS, MAX_TIME
from hubbub.mechanisms import Mechanism, OptimisedUnary, RandomisedResponse, SymmetricUnary
from hubbub.v1 import contract_pb2 as pb
from tools.bundle_vectors import (
    FOREIGN,
    NAME,
    ONE,
    OPERATOR,
    STARTS,
    X25519_KEY,
    bundle,
    encode,
    metric,
    once,
    periodic,
    sealing_key,
    sign,
)


class Refused(NamedTuple):
    """A signed bundle that must be refused, with this error."""

    name: str
    signed: bytes
    error: str
    """The class in hubbub.errors."""
    facts: dict[str, str]
    """The error's fields; of `reason` only a part is given."""


def bad_bundles() -> Iterator[Refused]:
    yield from _bad_signatures()
    yield from _not_canonical()
    yield from _bad_contents()
    yield from _bad_contracts()
    yield from _not_private()


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
        "a mechanism of another version": ("mechanism", metric(None) + b"\x52\x00"),
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


def _bad_contracts() -> Iterator[Refused]:
    def refused(case: str, field: str, reason: str, name: str = NAME, **changes: Any) -> Refused:
        signed = sign(bundle(metric(name=name, **changes)))
        facts = {"metric": name[:64], "field": field, "reason": reason}
        return Refused(case, signed, "InvalidContract", facts)

    for name in ("", "Health", "a b", "../x", "naïve", "x\n", "x" * 65, "x\0", "a/b"):
        yield refused(f"name {name!a}", "name", "must be 1 to 64", name=name)
        yield refused(f"source {name!a}", "source", "must be 1 to 64", source=name)
    for question in ("", " ", " Why?", "Why?\n", "Why?\0", "\u202eWhy?", "?" * 1_025, "é" * 513):
        case = f"question {question[:10]!a}, {len(question)} long"
        yield refused(case, "question", "printable", question=question)
    for epsilon in (
        "",
        "0",
        "-1",
        "1e0",
        "one",
        "nan",
        "0.0000000000001",
        "ln 1",
        "1\n",
        "１",
        "129",
        "999999",
    ):
        yield refused(f"epsilon {epsilon!a}", "epsilon", "ε must be", epsilon=epsilon)
    for epsilon in ("1.0", "0.50", "ln3", "ln 3.0"):
        yield refused(f"epsilon {epsilon!a}", "epsilon", "must be written", epsilon=epsilon)
    yield refused("no values", "values", "not 0", values=[])
    yield refused("one value", "values", "not 1", values=["yes"])
    yield refused("only the rest", "values", "not 1", values=[], other="rest")
    for label in ("", " ", " a", "a ", "a\n", "a\tb", "a\0", "\x7f", "\x85", "a\u2028", "a\u202eb",
                  "\u2066a", "\u200e", "\u200b", "\u200d", "\ufeffa", "\ue000", "\U000e0041",
                  "a\u3000", "x" * 257, "é" * 129):  # fmt: skip
        case = f"label {label[:10]!a}, {len(label)} long"
        yield refused(case, "values", "printable", values=["yes", label])
    yield refused("a bad label for other", "values", "printable", other="\n")
    yield refused("a bad label for absent", "values", "printable", absent="\n")
    yield refused("a value twice", "values", "twice", values=["a", "b", "a"])
    yield refused("other is a value", "values", "twice", other="good")
    yield refused("absent is a value", "values", "twice", absent="good")
    yield refused("absent is other", "values", "twice", other="none", absent="none")
    huge = ONE - 1
    schedules = [
        ("no form of schedule", "either", pb.Schedule(starts=STARTS)),
        ("starts in the far future", "far", once(starts=MAX_TIME + 1)),
        ("ends as it starts", "end after", once(ends=STARTS)),
        ("ends before it starts", "end after", once(ends=1)),
        ("ends in the far future", "end after", once(ends=MAX_TIME + 1)),
        ("no rounds", "rounds", periodic(86_400, 0, 0)),
        ("too many rounds", "rounds", periodic(1, MAX_ROUNDS + 1, 0)),
        ("rounds without end", "rounds", periodic(1, huge, 0)),
        ("rounds of no length", "one second", periodic(0, 1, 0)),
        ("rounds longer than time", "far", periodic(huge, MAX_ROUNDS, huge)),
        ("grace longer than time", "far", periodic(1, 1, huge)),
    ]
    for case, reason, schedule in schedules:
        yield refused(case, "schedule", reason, schedule=schedule)
    twice = metric() + encode(pb.Metric(optimised_unary=pb.OptimisedUnary(raised=1 << 62)))
    facts = {"metric": NAME, "field": "mechanism"}
    yield Refused("two mechanisms", sign(bundle(twice)), "InvalidContract", facts)
    yield refused("no mechanism", "mechanism", "missing", mechanism=None)
    domainless = encode(pb.Metric(name=NAME, question="?", source="a", epsilon="1"))
    facts = {"metric": NAME, "field": "values", "reason": "missing"}
    yield Refused("no domain", sign(bundle(domainless)), "InvalidContract", facts)
    facts = {"metric": NAME, "field": "name", "reason": "twice"}
    yield Refused("a name twice", sign(bundle(metric(), metric())), "InvalidContract", facts)
    again = metric(epsilon="2")
    yield Refused("a name twice, unlike", sign(bundle(metric(), again)), "InvalidContract", facts)


def _not_private() -> Iterator[Refused]:
    one, two = Epsilon.parse("1"), Epsilon.parse("2")

    def refused(case: str, reason: str, mechanism: Mechanism, epsilon: str = "1") -> Refused:
        signed = sign(bundle(metric(mechanism, epsilon=epsilon)))
        return Refused(case, signed, "PrivacyNotProved", {"metric": NAME, "reason": reason})

    for epsilon in ("8.000000000001", "9", "128", "ln 2981", "ln 999999"):
        yield refused(f"epsilon {epsilon}", "above 8", OptimisedUnary.calibrate(4, one), epsilon)
    too_far: dict[str, Mechanism] = {
        "randomised response": RandomisedResponse(4, RandomisedResponse.calibrate(4, one).keep + 1),
        "symmetric unary": SymmetricUnary(4, SymmetricUnary.calibrate(4, one).flip - 1),
        "optimised unary": OptimisedUnary(4, OptimisedUnary.calibrate(4, one).raised - 1),
        "ε = 2 for 1": OptimisedUnary.calibrate(4, two),
        "randomised response for fewer values": RandomisedResponse.calibrate(3, one),
        "symmetric unary with ε for ε/2": SymmetricUnary(
            4, OptimisedUnary.calibrate(4, one).raised
        ),
    }
    for case, mechanism in too_far.items():
        yield refused(f"one step too far: {case}", "reveal more", mechanism)
    yield refused("ln 9, one step too far", "reveal more", SymmetricUnary(4, ONE // 4 - 1), "ln 9")
    for keep in (0, 1, ONE // 4):
        yield refused(f"keep = {keep}", "nothing or everything", RandomisedResponse(4, keep))
    yield refused("always the truth", "reveal more", RandomisedResponse(4, ONE - 1))
    for threshold in (0, ONE // 2, ONE - 1):
        for kind in (SymmetricUnary, OptimisedUnary):
            case = f"{kind(4, 1).name} with {threshold}"
            yield refused(case, "nothing or everything", kind(4, threshold))
    for kind in (SymmetricUnary, OptimisedUnary):
        yield refused(f"{kind(4, 1).name} with 1", "reveal more", kind(4, 1))
