"""Signed bundles whose one series must be refused, each with its reason."""

from collections.abc import Iterator
from typing import Any

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MemoisedLocalHashing,
    MemoisedMechanism,
    MemoisedRandomisedResponse,
    MemoisedUnary,
    OptimisedUnary,
    RandomisedResponse,
    SymmetricUnary,
)
from hubbub.v1 import contract_pb2 as pb
from tools.bundle_vectors import NAME, ONE, bundle, encode, metric, once, periodic, sign
from tools.hostile_contracts import Refused
from tools.series_vectors import (
    DAILY,
    DAY,
    ROW,
    hashing,
    memoised_metric,
    optimised,
    response,
    symmetric,
)


def bad_series() -> Iterator[Refused]:
    """Schedules that make no series, memos that belong to none, and memos that tell too much."""
    yield from _bad_samples()
    yield from _bad_memos()
    yield from _too_telling()
    yield from _no_mechanisms()


def _invalid(case: str, field: str, reason: str, contract: bytes) -> Refused:
    facts = {"metric": NAME, "field": field, "reason": reason}
    return Refused(case, sign(bundle(contract)), "InvalidContract", facts)


def _bad_samples() -> Iterator[Refused]:
    for case, reason, schedule in (
        ("joins more rounds than there are", "none joins 9", periodic(DAY, 8, DAY, join=9)),
        ("joins rounds without end", "none joins", periodic(DAY, 8, DAY, join=ONE - 1)),
        ("sampled, without grace", "needs a grace", periodic(DAY, 8, 0, join=1)),
        ("a sample that is too dear", "ε = 33 as a whole", periodic(DAY, 365, DAY, join=33)),
    ):
        yield _invalid(case, "schedule", reason, metric(schedule=schedule))


def _bad_memos() -> Iterator[Refused]:
    belongs = "belongs to a memoised mechanism"
    yield _invalid(
        "ε∞ without a memo", "permanent", belongs, metric(schedule=DAILY, permanent=ROW.text)
    )
    yield _invalid("ε∞ of one round without a memo", "permanent", belongs, metric(permanent="2"))
    for mechanism in (symmetric(), optimised(), response(), hashing()):
        case = f"{mechanism.name} without ε∞"
        yield _invalid(case, "permanent", belongs, memoised_metric(mechanism, permanent=""))
    memo = response()
    for permanent, reason in (
        ("0", "ε must be"),
        ("-2", "ε must be"),
        ("2.0", "must be written"),
        ("129", "ε must be"),
        ("1", "above epsilon"),
        ("0.5", "above epsilon"),
    ):
        contract = memoised_metric(memo, permanent=permanent)
        yield _invalid(f"ε∞ = {permanent}", "permanent", reason, contract)
    for case, reason, schedule in (
        ("memoised, once", "every round of many", once()),
        ("memoised and sampled", "every round of many", periodic(DAY, 8, DAY, join=8)),
        ("memoised, without grace", "needs a grace", periodic(DAY, 8, 0)),
    ):
        yield _invalid(case, "schedule", reason, memoised_metric(memo, schedule=schedule))
    labels = [f"value {i}" for i in range(17)]
    dear = memoised_metric(optimised(17), values=labels)
    yield _invalid("a memo that is too dear", "schedule", "ε = 34 as a whole", dear)
    again = pb.Metric(
        memoised_local_hashing=pb.MemoisedLocalHashing(
            keep=3 << 62, permanent_keep=3 << 62, cells=2, dimensions=3
        )
    )
    for first in (metric(schedule=DAILY), memoised_metric(symmetric())):
        two = first + encode(again)
        name = pb.Metric.FromString(first).WhichOneof("mechanism")
        yield _invalid(f"memoised local hashing after {name}", "mechanism", "one only", two)
    opened = memoised_metric(memo, values=[], open=True, retain=True)
    yield _invalid("open, with a memo", "values", "local hashing", opened)


def _refused(case: str, reason: str, mechanism: MemoisedMechanism, **changes: Any) -> Refused:
    facts = {"metric": NAME, "reason": reason}
    signed = sign(bundle(memoised_metric(mechanism, **changes)))
    return Refused(case, signed, "PrivacyNotProved", facts)


def _too_telling() -> Iterator[Refused]:
    """By a report; or by a row, though its reports tell little enough."""
    reports: list[MemoisedMechanism] = [
        symmetric()._replace(flip=symmetric().flip - 1),
        optimised()._replace(flip=optimised().flip - 1),
        response()._replace(keep=response().keep + 1),
        hashing()._replace(chain=response(2)._replace(keep=response(2).keep + 1)),
    ]
    for memo in reports:
        yield _refused(f"a report one step too far: {memo.name}", "declared ε = 1", memo)
    half = Epsilon.parse("0.5")
    flip = symmetric().parameters["permanent_flip"]
    raised = optimised().parameters["permanent_raised"]
    two, four = (RandomisedResponse(k, response(k).permanent.keep + 1) for k in (2, 4))
    rows: list[MemoisedMechanism] = [
        MemoisedUnary.calibrate(SymmetricUnary(4, flip - 1), half),
        MemoisedUnary.calibrate(OptimisedUnary(4, raised - 1), half),
        MemoisedRandomisedResponse.calibrate(four, half),
        MemoisedLocalHashing.calibrate(4, two, half),
    ]
    for memo in rows:
        yield _refused(f"a row one step too far: {memo.name}", "declared ε = 2", memo)
    yield _refused("ε∞ above the ceiling", "ε = 8.5 is above 8", hashing(), permanent="8.5")


def _no_mechanisms() -> Iterator[Refused]:
    """Integers that make no mechanism; some would take for ever to reckon with."""
    quarter, half, most, huge = ONE // 4, ONE // 2, 3 * (ONE // 4), ONE - 1

    def refused(reason: str, memo: MemoisedMechanism) -> Refused:
        parameters = ", ".join(f"{key} {number}" for key, number in memo.parameters.items())
        return _refused(f"{memo.name}, {parameters}", reason, memo)

    for make in (MemoisedUnary.symmetric, MemoisedUnary.optimised):
        for flip in (0, half, huge):
            yield refused("nothing or everything", make(4, flip, quarter))
            yield refused("nothing or everything", make(4, quarter, flip))
    for keep in (0, quarter):
        yield refused("nothing or everything", MemoisedRandomisedResponse.of(4, keep, most))
        yield refused("nothing or everything", MemoisedRandomisedResponse.of(4, most, keep))
    for keep in (0, half):
        yield refused("nothing or everything", MemoisedLocalHashing.of(4, keep, most, 2, 3))
        yield refused("nothing or everything", MemoisedLocalHashing.of(4, most, keep, 2, 3))

    def hashed(reason: str, cells: int, dimensions: int) -> Refused:
        return refused(reason, MemoisedLocalHashing.of(4, most, most, cells, dimensions))

    for cells in (0, 1, 4, 9, 15):
        yield hashed("not a prime", cells, 3)
    for dimensions in (0, 1, 19, huge):
        yield hashed("dimensions", 3, dimensions)
    for cells, dimensions in ((2, 18), (3, 11), (13, 5)):
        yield hashed("too long", cells, dimensions)
    yield hashed("too few", 2, 2)
    endless = memoised_metric(MemoisedLocalHashing.of(4, most, most, huge, huge))
    yield _invalid("memoised local hashing of cells without end", "schedule", "as a whole", endless)
