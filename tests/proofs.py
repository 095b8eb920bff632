"""What is proved about the privacy core: of the shipped code, and against its mutants.

The specified laws are written here once more, from the papers' formulas and the contract's
integers, and never from the samplers. Every check raises AssertionError if it fails.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import prod
from types import ModuleType
from typing import Any, NamedTuple

from tests.tapes import Law, TapeSource, Walk, law_of, walk

# Where any ε will do: with this one the thresholds of all mechanisms have ties to walk.
_EPSILON = "1"


class Core(NamedTuple):
    """The modules that make privacy: as shipped, or with one change."""

    exact: ModuleType
    randomness: ModuleType
    mechanisms: ModuleType

    def calibrated(self, name: str, k: int, epsilon: str, base: int, width: int) -> Any:
        resolution = self.mechanisms.coin.Resolution(base, width)
        kind = self.mechanisms.MECHANISMS[name]
        return kind.calibrate(k, self.exact.Epsilon.parse(epsilon), resolution)


# -- The specified laws -------------------------------------------------------------------


def randomised_response_law(k: int, keep: Fraction, value: int) -> Law:
    """The index, big-endian in as few bytes as k − 1 needs; all lies alike."""
    size = 1 if k <= 256 else 2
    return {
        report.to_bytes(size, "big"): keep if report == value else (1 - keep) / (k - 1)
        for report in range(k)
    }


def unary_law(k: int, own: Fraction, other: Fraction, value: int) -> Law:
    """Independent bits: the own is 1 with probability `own`, any other with `other`."""
    rises = [own if i == value else other for i in range(k)]
    law: Law = {}
    for bits in product((0, 1), repeat=k):
        chances = (p if bit else 1 - p for p, bit in zip(rises, bits, strict=True))
        law[vector(bits)] = prod(chances, start=Fraction(1))
    return law


def vector(bits: tuple[int, ...]) -> bytes:
    """Value i is bit i mod 8, least significant first, of byte i div 8."""
    payload = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        payload[i // 8] |= bit << i % 8
    return bytes(payload)


def specified_law(mechanism: Any, value: int) -> Law:
    """The law of a mechanism's integers, without payloads that never occur."""
    ((name, threshold),) = mechanism.thresholds.items()
    share = Fraction(threshold, mechanism.resolution.base**mechanism.resolution.width)
    k = mechanism.k
    law = {
        "keep": lambda: randomised_response_law(k, share, value),
        "flip": lambda: unary_law(k, 1 - share, share, value),
        "raised": lambda: unary_law(k, Fraction(1, 2), share, value),
    }[name]()
    return {payload: p for payload, p in law.items() if p}


# -- Checks of one mechanism at a small resolution ----------------------------------------

Walks = list[list[Walk]]
"""For each value, what the sampler does with every tape."""


def walks(mechanism: Any) -> Walks:
    def every_tape(value: int) -> list[Walk]:
        return list(walk(mechanism.resolution.base, lambda s: mechanism.randomise(value, s)))

    return [every_tape(value) for value in range(mechanism.k)]


def check_law(mechanism: Any, walked: Walks) -> None:
    """Every value has exactly its specified law, all bits jointly."""
    for value, law in enumerate(map(law_of, walked)):
        assert law == specified_law(mechanism, value)


def check_consumption(mechanism: Any, walked: Walks) -> None:
    """What is drawn, as a function of the tape, is the same for every value."""
    first, *others = ([(w.tape, w.calls) for w in value] for value in walked)
    for other in others:
        assert other == first
    patterns = {calls for _, calls in first}
    if mechanism.name == "randomised-response":
        # Here it may not depend on the coin either: that says whether the report is true.
        width = mechanism.resolution.width
        assert patterns == {(("digits", width), ("below", mechanism.k - 1))}
    else:
        assert {kind for calls in patterns for kind, _ in calls} == {"digits"}


def check_ratio(mechanism: Any, walked: Walks) -> None:
    """The worst ratio over all payloads and pairs of values is the one that is certified."""
    laws = [law_of(value) for value in walked]
    payloads = set().union(*laws)
    assert all(payload in law for payload in payloads for law in laws), "unbounded"
    worst = max(
        max(law[payload] for law in laws) / min(law[payload] for law in laws)
        for payload in payloads
    )
    assert worst == mechanism.ratio


def check_support(mechanism: Any, walked: Walks) -> None:
    """p* and q* are what the law gives to the own value and to any other."""
    p_own, q_other = mechanism.support
    for value, law in enumerate(map(law_of, walked)):
        chances = [Fraction(0)] * mechanism.k
        for payload, p in law.items():
            for supported in mechanism.supported(payload):
                chances[supported] += p
        assert chances == [p_own if v == value else q_other for v in range(mechanism.k)]


def check_payloads(mechanism: Any, walked: Walks) -> None:
    """All payloads that can be made are read, and no other bytes are."""
    made = {one.payload for value in walked for one in value}
    size = mechanism.payload_size
    assert {len(payload) for payload in made} == {size}
    for payload in (bytes(p) for p in product(range(256), repeat=size)):
        assert _is_read(mechanism, payload) == (payload in made)
    for length in (0, size - 1, size + 1, size + 8):
        assert length == size or not _is_read(mechanism, bytes(length))


CHECKS: dict[str, Callable[[Any, Walks], None]] = {
    "law": check_law,
    "consumption": check_consumption,
    "ratio": check_ratio,
    "support": check_support,
    "payloads": check_payloads,
}


def _is_read(mechanism: Any, payload: bytes) -> bool:
    try:
        mechanism.supported(payload)
    except ValueError:
        return False
    return True


# -- Proofs of the core as a whole --------------------------------------------------------


def _by_enumeration(check: Callable[[Any, Walks], None]) -> Callable[[Core], None]:
    """Prove a check for all mechanisms, at a resolution where every threshold has ties."""

    def prove(core: Core) -> None:
        for name in core.mechanisms.MECHANISMS:
            for k in (2, 3):
                mechanism = core.calibrated(name, k, _EPSILON, 4, 2)
                check(mechanism, walks(mechanism))

    return prove


def prove_certificate(core: Core) -> None:
    """Calibrated thresholds keep ε, and one step more telling would not."""
    for name, epsilon, k in product(core.mechanisms.MECHANISMS, ("0.5", "1", "ln 3"), (2, 5, 100)):
        declared = core.exact.Epsilon.parse(epsilon)
        mechanism = core.calibrated(name, k, epsilon, 256, 8)
        assert core.exact.Certificate(declared, mechanism.ratio).holds
        assert not core.exact.Certificate(declared, nudged(mechanism).ratio).holds


def nudged(mechanism: Any) -> Any:
    """The same mechanism, its threshold one step more telling."""
    ((name, threshold),) = mechanism.thresholds.items()
    step = 1 if name == "keep" else -1
    return type(mechanism)(mechanism.k, threshold + step, mechanism.resolution)


class _Constant:
    """A source whose digits are all the same, and lies the nearest."""

    base = 256

    def __init__(self, digit: int) -> None:
        self._digit = digit

    def digits(self, count: int) -> bytes:
        return bytes([self._digit]) * count

    def below(self, n: int) -> int:
        return 0


def prove_layout(core: Core) -> None:
    """Where each value stands in payloads of more than one byte, spare bits included."""
    for name, k in product(("symmetric-unary", "optimised-unary"), (9, 16, 20)):
        # The highest digits flip no bit, raise no other, and leave the own bit 1.
        mechanism = core.calibrated(name, k, _EPSILON, 256, 8)
        for value in range(k):
            payload = mechanism.randomise(value, _Constant(255))
            assert payload == vector(tuple(int(i == value) for i in range(k)))
            assert mechanism.supported(payload) == [value]
    # The lowest digits tell the truth.
    response = core.calibrated("randomised-response", 300, _EPSILON, 256, 8)
    for value in range(300):
        payload = response.randomise(value, _Constant(0))
        assert payload == bytes([value // 256, value % 256])
        assert response.supported(payload) == [value]


def prove_below(core: Core) -> None:
    """Every word of digits is kept or drawn again, and those kept name n values alike."""
    for base, n in product((2, 3, 4), range(1, 21)):
        check_below(core.randomness.uniform_below, base, n)


class _DrawnAgainError(Exception):
    pass


class _OneWord(TapeSource):
    """Ends the walk where a second word is asked for."""

    def digits(self, count: int) -> bytes:
        if self.calls:
            assert self.calls == [("digits", count)]
            raise _DrawnAgainError
        return super().digits(count)


def check_below(uniform_below: Callable[[Any, int], int], base: int, n: int) -> None:
    drawn_again = b"again"

    def sample(source: TapeSource) -> bytes:
        try:
            return uniform_below(source, n).to_bytes(1, "big")
        except _DrawnAgainError:
            return drawn_again

    law = law_of(list(walk(base, sample, source=_OneWord)))
    again = law.pop(drawn_again, Fraction(0))
    assert law == {bytes([outcome]): (1 - again) / n for outcome in range(n)}
    assert again < Fraction(1, base), "it nearly never draws again"


PROOFS: dict[str, Callable[[Core], None]] = {
    **{name: _by_enumeration(check) for name, check in CHECKS.items()},
    "certificate": prove_certificate,
    "layout": prove_layout,
    "below": prove_below,
}
