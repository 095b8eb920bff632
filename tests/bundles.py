"""Signed bundles for tests: real keys, real signatures, any metric in a line."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundle import SIGNATURE_CONTEXT, Bundle, SealingKey
from hubbub.contract import Metric
from hubbub.exact import Epsilon
from hubbub.mechanisms import MEMOISED, Mechanism
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.randomness import SYSTEM
from hubbub.sealing import seal
from hubbub.v1 import contract_pb2, report_pb2
from hubbub_aggregator import keys as keys_folder
from hubbub_aggregator.planning.choice import best, most_accurate
from tests.calibrated import memoised


def make_metric(
    name: str = "health.self_rated",
    *,
    values: Sequence[str] = ("excellent", "good", "fair", "poor"),
    epsilon: str = "1",
    mechanism: str | Mechanism = "auto",
    source: str = "health",
    question: str = "How do you rate your own health?",
    starts: int = 0,
    ends: int = 0,
    periodic: tuple[int, int, int] | None = None,
    join: int = 0,
    permanent: str = "",
    other: str = "",
    absent: str = "",
    open: bool = False,
    retain: bool = False,
) -> bytes:
    """One metric's contract; `periodic` is (every, rounds, grace) in place of one round.

    An open one has no values, whatever `values` says. A memoised mechanism may be named, and
    then takes `permanent` for ε∞; local hashing has two cells.
    """
    declared = Epsilon.parse(epsilon)
    values = () if open else values
    k = OPEN_PRIME if open else len(values) + bool(other) + bool(absent)
    if isinstance(mechanism, str) and mechanism in MEMOISED:
        mechanism = memoised(mechanism, k, permanent=permanent, epsilon=epsilon)
    elif isinstance(mechanism, str):
        mechanism = (
            most_accurate(k, declared) if mechanism == "auto" else best(mechanism, k, declared)
        )
    schedule = contract_pb2.Schedule(starts=starts)
    if periodic is None:
        schedule.once.ends = ends
        schedule.once.SetInParent()
    else:
        every, rounds, grace = periodic
        form = contract_pb2.Periodic(every=every, rounds=rounds, grace=grace, join=join)
        schedule.periodic.CopyFrom(form)
    parameters: Any = {mechanism.name.replace("-", "_"): mechanism.parameters}
    message = contract_pb2.Metric(
        name=name,
        question=question,
        source=source,
        epsilon=epsilon,
        domain=contract_pb2.Domain(values=values, other=other, absent=absent, open=open),
        schedule=schedule,
        retain=retain or open,
        permanent=permanent,
        **parameters,
    )
    return message.SerializeToString(deterministic=True)


@dataclass(frozen=True)
class Operator:
    """A keys folder, and whoever holds it."""

    folder: Path
    signing_key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def create(cls, folder: Path, *, hybrid: bool = False) -> "Operator":
        keys_folder.create_keys(folder, [], hybrid=hybrid, now=time.time())
        return cls(folder, keys_folder.load_signing_key(folder))

    @property
    def key(self) -> str:
        """What devices pin."""
        return keys_folder.read_operator_key(self.folder)

    @property
    def sealing_keys(self) -> list[SealingKey]:
        return [key.sealing_key for key in keys_folder.load_opening_keys(self.folder).values()]

    def sign(
        self,
        metrics: Iterable[bytes],
        *,
        revision: int = 1,
        endpoint: str = "localhost:7443",
        sealing_keys: Iterable[SealingKey] | None = None,
    ) -> bytes:
        """A SignedBundle; checks nothing, so it can sign what must be refused."""
        bundle = contract_pb2.Bundle(
            revision=revision,
            endpoint=endpoint,
            certificate_authority=(self.folder / "ca.crt").read_bytes(),
            sealing_keys=[
                contract_pb2.SealingKey(
                    key_id=key.key_id,
                    suite=contract_pb2.SealingSuite.ValueType(key.suite),
                    public_key=key.public_key,
                )
                for key in (self.sealing_keys if sealing_keys is None else sealing_keys)
            ],
            metrics=metrics,
        ).SerializeToString(deterministic=True)
        signature = self.signing_key.sign(SIGNATURE_CONTEXT + bundle)
        envelope = contract_pb2.SignedBundle(bundle=bundle, signature=signature)
        return envelope.SerializeToString(deterministic=True)


def make_bundle(operator: Operator, *metrics: bytes, revision: int = 1, **rest: Any) -> Bundle:
    """A verified bundle; without metrics, of `make_metric`'s."""
    signed = operator.sign(metrics or (make_metric(),), revision=revision, **rest)
    return Bundle.verify(signed, operator_key=operator.key)


def make_request(
    bundle: Bundle,
    metric: str,
    reports: Iterable[tuple[bytes, bytes]] | None = None,
    round_number: int = 0,
) -> report_pb2.SubmitReportsRequest:
    """(id, payload) pairs as a request; without them, one honest report of value 0."""
    asked = bundle.metrics[metric]
    if reports is None:
        reports = [(os.urandom(16), asked.mechanism.randomise(0, SYSTEM))]
    return report_pb2.SubmitReportsRequest(
        digest=asked.digest,
        round=round_number,
        key_id=bundle.sealing_keys[0].key_id,
        sealed=seal_all(bundle, asked, round_number, reports),
    )


def seal_all(
    bundle: Bundle, metric: Metric, round_number: int, reports: Iterable[tuple[bytes, bytes]]
) -> bytes:
    """Seal (id, payload) pairs as a request holds them: back to back, to the first key."""
    key = bundle.sealing_keys[0]
    return b"".join(
        seal(key, metric.digest, round_number, report_id + payload)
        for report_id, payload in reports
    )
