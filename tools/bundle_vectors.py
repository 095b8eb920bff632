"""Signed bundles that every implementation must accept, and the parts they are made of.

Keys come from fixed seeds, so that the same bytes are made each time; they protect nothing.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from google.protobuf.message import Message

from hubbub.bundle import SIGNATURE_CONTEXT
from hubbub.exact import Epsilon
from hubbub.limits import MAX_BUCKETS, MAX_LABEL_BYTES, MAX_QUESTION_BYTES, MAX_ROUNDS
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.v1 import contract_pb2 as pb

OPERATOR = Ed25519PrivateKey.from_private_bytes(b"hubbub test vectors: operator...")
FOREIGN = Ed25519PrivateKey.from_private_bytes(b"hubbub test vectors: foreigner..")

NAME = "health.self_rated"
VALUES = ["excellent", "good", "fair", "poor"]
STARTS = 1_790_000_000  # 2026-09-21
ONE = 1 << 64


def operator_key(key: Ed25519PrivateKey) -> str:
    return f"ed25519:{key.public_key().public_bytes_raw().hex()}"


# -- Builders; they check nothing ---------------------------------------------------------


def encode(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def sealing_key(suite: int, public_key: bytes, key_id: bytes | None = None) -> pb.SealingKey:
    return pb.SealingKey(
        key_id=hashlib.sha256(public_key).digest()[:8] if key_id is None else key_id,
        suite=pb.SealingSuite.ValueType(suite),
        public_key=public_key,
    )


X25519_PRIVATE = X25519PrivateKey.from_private_bytes(b"hubbub test vectors: sealing....")
X25519_KEY = sealing_key(1, X25519_PRIVATE.public_key().public_bytes_raw())
HYBRID_KEY = sealing_key(
    2,
    MLKEM768PrivateKey.from_seed_bytes(bytes(range(64))).public_key().public_bytes_raw()
    + X25519_KEY.public_key,
)


def once(starts: int = STARTS, ends: int = 0) -> pb.Schedule:
    return pb.Schedule(starts=starts, once=pb.Once(ends=ends))


def periodic(
    every: int, rounds: int, grace: int, starts: int = STARTS, join: int = 0
) -> pb.Schedule:
    form = pb.Periodic(every=every, rounds=rounds, grace=grace, join=join)
    return pb.Schedule(starts=starts, periodic=form)


def metric(
    mechanism: Mechanism | None = RandomisedResponse.calibrate(4, Epsilon.parse("1")),  # noqa: B008
    values: Sequence[str] = VALUES,
    other: str = "",
    absent: str = "",
    schedule: pb.Schedule | None = None,
    *,
    open: bool = False,
    retain: bool = False,
    **texts: str,
) -> bytes:
    """One metric's contract, of four values at ε = 1 unless told otherwise."""
    parameters: dict[str, Any] = {
        "name": NAME,
        "question": "How do you rate your own health?",
        "source": "health",
        "epsilon": "1",
        **texts,
    }
    if mechanism is not None:
        parameters[mechanism.name.replace("-", "_")] = mechanism.parameters
    domain = pb.Domain(values=values, other=other, absent=absent, open=open)
    return encode(
        pb.Metric(domain=domain, schedule=schedule or once(), retain=retain, **parameters)
    )


def open_metric(mechanism: Mechanism | None = None, **changes: Any) -> bytes:
    """A contract for which every text is an answer, unless told otherwise."""
    hashing = LocalHashing.calibrate(OPEN_PRIME, Epsilon.parse("1"), 4, OPEN_PRIME)
    changes = {"values": [], "open": True, "retain": True, **changes}
    return metric(mechanism or hashing, **changes)


def bundle(*metrics: bytes, **changes: Any) -> bytes:
    """A bundle, not yet signed; of one metric unless told otherwise."""
    parameters: dict[str, Any] = {
        "revision": 1,
        "endpoint": "collect.example.com:7443",
        "sealing_keys": [X25519_KEY],
        "metrics": metrics or [metric()],
        **changes,
    }
    return encode(pb.Bundle(**parameters))


def sign(content: bytes, key: Ed25519PrivateKey = OPERATOR) -> bytes:
    signature = key.sign(SIGNATURE_CONTEXT + content)
    return encode(pb.SignedBundle(bundle=content, signature=signature))


# -- Good ones ----------------------------------------------------------------------------


def good_bundles() -> Iterator[tuple[str, bytes]]:
    """Pairs of a name and a signed bundle that must be accepted."""
    one, ln3 = Epsilon.parse("1"), Epsilon.parse("ln 3")
    smallest, largest = Epsilon.parse("0.000000000001"), Epsilon.parse("8")
    yes_no = ["yes", "no"]
    buckets = [f"bucket {i}" for i in range(128)]
    scripts = ["sehr gut", "отлично", "ممتاز", "می‌خواهم", "很好", "बहुत अच्छा", "👩‍⚕️", "é", "e\u0301"]
    many = partial(SymmetricUnary.calibrate, len(scripts))
    yield "randomised response", sign(bundle())
    yield (
        "Warner's coins",
        sign(bundle(metric(RandomisedResponse.calibrate(2, ln3), yes_no, epsilon="ln 3"))),
    )
    yield "symmetric unary", sign(bundle(metric(SymmetricUnary.calibrate(4, one))))
    yield (
        "symmetric unary, exactly ln 9",
        sign(bundle(metric(SymmetricUnary(4, ONE // 4), epsilon="ln 9"))),
    )
    yield "optimised unary", sign(bundle(metric(OptimisedUnary.calibrate(128, one), buckets)))
    yield (
        "subset selection, as ranks",
        sign(bundle(metric(SubsetSelection.calibrate(4, one, 2)))),
    )
    yield (
        "subset selection, as bit vectors",
        sign(bundle(metric(SubsetSelection.calibrate(128, one, 34), buckets))),
    )
    yield (
        "projective geometry",
        sign(bundle(metric(ProjectiveGeometry.calibrate(128, one, 3, 6), buckets))),
    )
    yield (
        "projective geometry, as many points as values",
        sign(bundle(metric(ProjectiveGeometry.calibrate(4, one, 3, 2)))),
    )
    yield (
        "projective geometry, as many points as there may be",
        sign(bundle(metric(ProjectiveGeometry.calibrate(4, one, 2, 18)))),
    )
    yield "local hashing", sign(bundle(metric(LocalHashing.calibrate(4, one, 4, 65_537))))
    yield (
        "local hashing, another prime",
        sign(bundle(metric(LocalHashing.calibrate(4, ln3, 5, 5), epsilon="ln 3"))),
    )
    yield (
        "local hashing, as many buckets as there may be",
        sign(bundle(metric(LocalHashing.calibrate(4, one, MAX_BUCKETS, 65_537)))),
    )
    yield (
        "local hashing, reports retained",
        sign(bundle(metric(LocalHashing.calibrate(4, one, 4, 65_537), retain=True))),
    )
    yield "retained, another mechanism", sign(bundle(metric(retain=True)))
    yield "an open domain", sign(bundle(open_metric()))
    yield "an open domain with absent", sign(bundle(open_metric(absent="no answer")))
    yield "more noise than needed", sign(bundle(metric(RandomisedResponse(4, ONE // 3))))
    yield (
        "the smallest ε",
        sign(bundle(metric(OptimisedUnary.calibrate(4, smallest), epsilon=smallest.text))),
    )
    yield "the largest ε", sign(bundle(metric(OptimisedUnary.calibrate(4, largest), epsilon="8")))
    yield (
        "other and absent",
        sign(
            bundle(
                metric(OptimisedUnary.calibrate(6, one), other="something else", absent="no answer")
            )
        ),
    )
    yield (
        "two values of which one stands for the rest",
        sign(bundle(metric(RandomisedResponse.calibrate(2, one), ["chrome"], other="another"))),
    )
    yield "labels of many scripts", sign(bundle(metric(many(one), scripts)))
    yield (
        "longest texts",
        sign(
            bundle(
                metric(
                    RandomisedResponse.calibrate(2, one),
                    ["a" * MAX_LABEL_BYTES, "é" * (MAX_LABEL_BYTES // 2)],
                    name="n" * 64,
                    source="._-" + "9" * 61,
                    question="?" * MAX_QUESTION_BYTES,
                )
            )
        ),
    )
    yield "once, with an end", sign(bundle(metric(schedule=once(ends=STARTS + 1))))
    yield "once, since ever", sign(bundle(metric(schedule=once(starts=0))))
    yield "periodic", sign(bundle(metric(schedule=periodic(86_400, 8, 86_400))))
    yield "periodic, without grace", sign(bundle(metric(schedule=periodic(1, MAX_ROUNDS, 0))))
    yield (
        "no metrics",
        sign(
            encode(
                pb.Bundle(revision=(1 << 63) - 1, endpoint="[::1]:65535", sealing_keys=[X25519_KEY])
            )
        ),
    )
    yield (
        "two metrics, two keys, an authority",
        sign(
            bundle(
                metric(),
                metric(name="health.doctor"),
                revision=2,
                endpoint="localhost:1",
                certificate_authority=b"-----BEGIN CERTIFICATE-----\n",
                sealing_keys=[HYBRID_KEY, X25519_KEY],
            )
        ),
    )
