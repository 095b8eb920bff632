"""Chance that is written down before: what it must give for a value to be reported as another."""

from collections.abc import Sequence

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MECHANISMS,
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.spread import ONCE_WITHIN
from tests import payloads
from tests.calibrated import calibrated
from tests.devices import Paced


class Tape(Paced):
    """Chance that is written down before. Each answer must be asked for as it was foreseen."""

    def __init__(self, answers: Sequence[bytes | int]) -> None:
        super().__init__(long=True)
        self.answers = list(answers)

    def digits(self, count: int) -> bytes:
        answer = self.answers.pop(0)
        assert isinstance(answer, bytes)
        assert len(answer) == count
        return answer

    def below(self, n: int) -> int:
        if ONCE_WITHIN < n < 1 << 40:  # when it leaves; a seed is drawn out of far more
            return super().below(n)
        answer = self.answers.pop(0)
        assert isinstance(answer, int)
        assert answer < n
        return answer


def of_five(name: str) -> Mechanism:
    """A mechanism for five values, not of the parameters that make it randomised response."""
    parameters = {"subset-selection": (2,), "projective-geometry": (3, 3)}
    if name in parameters:
        return MECHANISMS[name].calibrate(5, Epsilon.parse("1"), *parameters[name])
    return calibrated(name, 5, "1")


# A digit of 0 is below every threshold's, one of 255 above.
HIGHEST = b"\xff" * 8
LOWEST = bytes(8)


def tape_for(mechanism: Mechanism, value: int, target: int) -> list[bytes | int]:
    """What chance must give for `value` to be reported as `target`.

    `target` is a value for randomised response, for unary encoding a vector whose bit i is
    value i's, for subset selection a rank, for projective geometry a point, and for local
    hashing a bucket, of a seed that puts the values into all of them.
    """
    tape: list[bytes | int]
    match mechanism:
        case RandomisedResponse():
            tape = _response_tape(mechanism.k, value, target)
        case SymmetricUnary():
            tape = [_tosses(mechanism.k, target ^ 1 << value)]
        case OptimisedUnary():
            own = b"\xff" if target >> value & 1 else b"\0"
            tape = [_tosses(mechanism.k, target), own]
        case SubsetSelection():
            tape = _subset_tape(mechanism, value, target)
        case ProjectiveGeometry():
            tape = _projective_tape(mechanism, value, target)
        case LocalHashing():
            true = payloads.bucket(seed_of(mechanism), value, mechanism.buckets, mechanism.prime)
            seed = seed_of(mechanism)[1] * mechanism.prime
            tape = [seed, *_response_tape(mechanism.buckets, true, target % mechanism.buckets)]
        case _:
            raise AssertionError(mechanism)
    return tape


def _response_tape(k: int, truth: int, target: int) -> list[bytes | int]:
    return [LOWEST, 0] if truth == target else [HIGHEST, (target - truth - 1) % k]


def _tosses(k: int, bits: int) -> bytes:
    """A bit of 1 is a draw below the threshold; the last value's comes first in every place."""
    return bytes(0 if bits >> i & 1 else 255 for i in reversed(range(k))) * 8


def _subset_tape(mechanism: SubsetSelection, value: int, target: int) -> list[bytes | int]:
    k = mechanism.k
    members = {*payloads.subsets(k, mechanism.size)[target]}
    included = value in members
    # Who gives way if the value comes in: the last that is taken, by a lot of its own.
    last = next(v for v in range(k) if v != value and (v in members) != included)
    others = bytearray(b"\xff" * k)
    for member in members | {last}:
        others[(k - 1 - member + value) % k] = member == last
    return [bytes(others[: k - 1]), 0, LOWEST if included else HIGHEST]


def _projective_tape(mechanism: ProjectiveGeometry, value: int, target: int) -> list[bytes | int]:
    field, dimensions = mechanism.field, mechanism.dimensions
    space = payloads.points(field, dimensions)
    own, point = space[value], space[target]
    product = sum(a * b for a, b in zip(own, point, strict=True)) % field
    leading = own.index(1)
    rest = 0
    for coordinate in point[:leading] + point[leading + 1 :]:
        rest = rest * field + coordinate
    return [HIGHEST, 0, rest, product - 1] if product else [LOWEST, rest - 1, 0, 0]


def seed_of(mechanism: LocalHashing) -> tuple[int, int, int]:
    """For four buckets: the next value falls into the next."""
    return 0, mechanism.prime // 4 + 1, 0
