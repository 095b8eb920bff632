"""Signed bundles whose one metric must be refused, each with its reason."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from hubbub.exact import Epsilon
from hubbub.limits import MAX_ROUNDS, MAX_TIME
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.mechanisms.local_hashing import LISTED_PRIME, OPEN_PRIME
from hubbub.v1 import contract_pb2 as pb
from tools.bundle_vectors import (
    NAME,
    ONE,
    STARTS,
    bundle,
    encode,
    metric,
    once,
    open_metric,
    periodic,
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


def bad_contracts() -> Iterator[Refused]:
    """Contracts that are no metric, and metrics that are not private."""
    yield from _bad_contracts()
    yield from _bad_open_domains()
    yield from _not_private()
    yield from _no_mechanisms()


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


def _bad_open_domains() -> Iterator[Refused]:
    one = Epsilon.parse("1")

    def refused(
        case: str, reason: str, mechanism: Mechanism | None = None, **changes: Any
    ) -> Refused:
        contract = open_metric(mechanism, **changes)
        facts = {"metric": NAME, "field": "values", "reason": reason}
        return Refused(case, sign(bundle(contract)), "InvalidContract", facts)

    yield refused("open, with values", "not listed", values=["yes", "no"])
    yield refused("open, with other", "not listed", other="rest")
    yield refused("open, with a bad label for absent", "printable", absent="\n")
    yield refused("open, but not retained", "retained", retain=False)
    others: list[Mechanism] = [
        RandomisedResponse.calibrate(4, one),
        OptimisedUnary.calibrate(4, one),
        SubsetSelection.calibrate(4, one, 2),
        ProjectiveGeometry.calibrate(4, one, 3, 2),
    ]
    for mechanism in others:
        yield refused(f"open, with {mechanism.name}", "local hashing", mechanism)
    yield refused("neither open nor listed", "not 0", open=False)
    contract = sign(bundle(open_metric(LocalHashing.calibrate(65_536, one, 4, LISTED_PRIME))))
    facts = {"metric": NAME, "reason": "no hash"}
    yield Refused("open, modulo the prime of lists", contract, "PrivacyNotProved", facts)
    listed = sign(bundle(metric(LocalHashing.calibrate(OPEN_PRIME, one, 4, OPEN_PRIME))))
    yield Refused("listed, modulo the prime of texts", listed, "PrivacyNotProved", facts)


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
        "subset selection": _nudged(SubsetSelection.calibrate(4, one, 2)),
        "subset selection for another size": SubsetSelection(
            4, SubsetSelection.calibrate(4, one, 2).included, 1
        ),
        "projective geometry": _nudged(ProjectiveGeometry.calibrate(4, one, 3, 2)),
        "projective geometry for more points": ProjectiveGeometry(
            4, ProjectiveGeometry.calibrate(4, one, 2, 4).within, 2, 3
        ),
        "local hashing": _nudged(LocalHashing.calibrate(4, one, 4, LISTED_PRIME)),
        "local hashing for fewer buckets": LocalHashing(
            4, LocalHashing.calibrate(4, one, 3, LISTED_PRIME).keep, 4, LISTED_PRIME
        ),
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


def _nudged(mechanism: SubsetSelection | ProjectiveGeometry | LocalHashing) -> Mechanism:
    """With its threshold one higher."""
    _, threshold, *others = mechanism
    return type(mechanism)(mechanism.k, threshold + 1, *others)  # type: ignore[arg-type]


def _no_mechanisms() -> Iterator[Refused]:
    """Parameters that make no mechanism; some would take for ever to reckon with."""
    half, huge = ONE // 2, ONE - 1

    def refused(reason: str, mechanism: Mechanism) -> Refused:
        parameters = ", ".join(f"{key} {number}" for key, number in mechanism.parameters.items())
        signed = sign(bundle(metric(mechanism)))
        facts = {"metric": NAME, "reason": reason}
        return Refused(f"{mechanism.name}, {parameters}", signed, "PrivacyNotProved", facts)

    for size in (0, 4, 5, 1 << 63, huge):
        yield refused("no set", SubsetSelection(4, half, size))
    for included in (0, 1, half, huge):
        reason = "reveal more" if included == huge else "nothing or everything"
        yield refused(reason, SubsetSelection(4, included, 2))
    for field in (0, 1, 4, 9, 15, 1 << 18):
        yield refused("not a prime", ProjectiveGeometry(4, half, field, 3))
    for field, dimensions in ((3, 0), (3, 1), (3, 20), (3, huge), (huge, 2), (huge, huge), (0, 0)):
        yield refused("dimensions", ProjectiveGeometry(4, half, field, dimensions))
    for field, dimensions in ((2, 2), (2, 19), (509, 4), (262_139, 19)):
        yield refused("points", ProjectiveGeometry(4, half, field, dimensions))
    for within in (0, 1, ONE // 4, huge):
        reason = "reveal more" if within == huge else "nothing or everything"
        yield refused(reason, ProjectiveGeometry(4, within, 3, 2))
    for buckets in (0, 1, 4_097, 1 << 63, huge):
        yield refused("buckets", LocalHashing(4, half, buckets, LISTED_PRIME))
    yield refused("buckets", LocalHashing(4, half, 6, 5))
    for prime in (3, 9, 65_535, 65_539, (1 << 31) - 1, OPEN_PRIME - 2, OPEN_PRIME, huge):
        yield refused("no hash", LocalHashing(4, half, 2, prime))
    for keep in (0, 1, ONE // 4, huge):
        reason = "reveal more" if keep == huge else "nothing or everything"
        yield refused(reason, LocalHashing(4, keep, 4, LISTED_PRIME))
