"""Signed bundles of series: rounds that a device samples, or answers from a memo."""

from collections.abc import Iterator
from typing import Any, Final

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
from tools.bundle_vectors import bundle, metric, periodic, sign

DAY: Final = 86_400
DAILY: Final = periodic(DAY, 365, DAY)

# What a report tells at most, unless told otherwise, and what a row does.
REPORT: Final = Epsilon.parse("1")
ROW: Final = Epsilon.parse("2")


def memoised_metric(mechanism: MemoisedMechanism | None, **changes: Any) -> bytes:
    """A contract that is answered from a memo: at ε∞ = 2 every day, unless told otherwise."""
    parameters: dict[str, Any] = {"schedule": DAILY, "permanent": ROW.text, **changes}
    return metric(mechanism, **parameters)


def symmetric(k: int = 4) -> MemoisedUnary:
    return MemoisedUnary.calibrate(SymmetricUnary.calibrate(k, ROW), REPORT)


def optimised(k: int = 4) -> MemoisedUnary:
    return MemoisedUnary.calibrate(OptimisedUnary.calibrate(k, ROW), REPORT)


def response(k: int = 4) -> MemoisedRandomisedResponse:
    return MemoisedRandomisedResponse.calibrate(RandomisedResponse.calibrate(k, ROW), REPORT)


def hashing(k: int = 4, cells: int = 2) -> MemoisedLocalHashing:
    return MemoisedLocalHashing.calibrate(k, RandomisedResponse.calibrate(cells, ROW), REPORT)


def good_series() -> Iterator[tuple[str, bytes]]:
    """Pairs of a name and a signed bundle that must be accepted."""
    labels = [f"place {i}" for i in range(100)]
    yield "sampled", sign(bundle(metric(schedule=periodic(DAY, 365, DAY, join=8))))
    yield "sampled, every round", sign(bundle(metric(schedule=periodic(DAY, 32, DAY, join=32))))
    yield "memoised symmetric unary", sign(bundle(memoised_metric(symmetric())))
    yield "memoised optimised unary", sign(bundle(memoised_metric(optimised())))
    yield "memoised randomised response", sign(bundle(memoised_metric(response())))
    yield "memoised local hashing", sign(bundle(memoised_metric(hashing())))
    yield (
        "memoised local hashing, as many points as values",
        sign(bundle(memoised_metric(hashing(4, 3)))),
    )
    yield (
        "memoised local hashing of a larger domain, reports retained",
        sign(bundle(memoised_metric(hashing(100, 5), values=labels, retain=True))),
    )
    yield (
        "a memo that takes all of a source",
        sign(bundle(memoised_metric(optimised(16), values=labels[:16]))),
    )
    chain = MemoisedRandomisedResponse.calibrate(
        RandomisedResponse.calibrate(4, Epsilon.parse("ln 9")), Epsilon.parse("ln 3")
    )
    yield (
        "a memo of logarithms",
        sign(bundle(memoised_metric(chain, epsilon="ln 3", permanent="ln 9"))),
    )
