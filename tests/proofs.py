"""What is proved about the privacy core: of the shipped code, and against its mutants.

Every check raises AssertionError if it fails.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations, product
from typing import Any

from tests import laws
from tests.core import HUGE, NONSENSE, SMALL, Core, is_read
from tests.layouts import prove_layout
from tests.tapes import Call, TapeSource, Walk, law_of, walk

# -- Checks of one mechanism at a small resolution ----------------------------------------

Walks = list[list[Walk]]
"""For each value, what the sampler does with every tape."""


def walks(mechanism: Any) -> Walks:
    base = laws.resolution_of(mechanism).base
    return [every_tape(base, partial(mechanism.randomise, value)) for value in range(mechanism.k)]


def every_tape(base: int, sample: Callable[[TapeSource], bytes]) -> list[Walk]:
    """What a sampler does with every tape; it may raise for none."""
    try:
        return list(walk(base, sample))
    except (ValueError, IndexError, OverflowError) as error:
        raise AssertionError(f"{sample} raises") from error


def check_law(mechanism: Any, walked: Walks) -> None:
    """Every value has exactly its specified law, all bits jointly."""
    for value, law in enumerate(map(law_of, walked)):
        assert law == laws.specified_law(mechanism, value)


def check_consumption(mechanism: Any, walked: Walks) -> None:
    """How much is drawn is one constant; or has, whatever the value and payload, one law."""
    first, *others = ([(w.tape, w.calls) for w in value] for value in walked)
    for other in others:
        assert other == first
    if mechanism.name != "subset-selection":
        assert len({calls for _, calls in first}) == 1
    # Subset selection draws lots, as many as there are ties.
    for value in walked:
        joint, drawn, said = law_of(value, _all_that_is_seen), law_of(value, _drawn), law_of(value)
        for payload, calls in product(said, drawn):
            assert joint.get((payload, calls), 0) == said[payload] * drawn[calls]


def check_ratio(mechanism: Any, walked: Walks) -> None:
    """The worst ratio over all payloads and pairs of values is the one that is certified.

    It is no worse for who sees, beside the payload, how much was drawn.
    """
    for seen in (_payload, _all_that_is_seen):
        laws = [law_of(value, seen) for value in walked]
        outcomes = set().union(*laws)
        assert all(outcome in law for outcome in outcomes for law in laws), "unbounded"
        chances = [[law[outcome] for law in laws] for outcome in outcomes]
        assert max(max(p) / min(p) for p in chances) == mechanism.ratio


def _payload(one: Walk) -> bytes:
    return one.payload


def _drawn(one: Walk) -> tuple[Call, ...]:
    return one.calls


def _all_that_is_seen(one: Walk) -> tuple[bytes, tuple[Call, ...]]:
    return one.payload, one.calls


def check_support(mechanism: Any, walked: Walks) -> None:
    """p* and q* are what the law gives to the own value and to any other."""
    p_own, q_other = mechanism.support
    for value, law in enumerate(map(law_of, walked)):
        chances = [Fraction(0)] * mechanism.k
        for payload, p in law.items():
            for supported in mechanism.supported(payload):
                chances[supported] += p
        assert chances == [p_own if v == value else q_other for v in range(mechanism.k)]


def check_pairs(mechanism: Any, walked: Walks) -> None:
    """Two values are supported at once as often as the covariances take for granted."""
    for value, law in enumerate(map(law_of, walked)):
        supported = {payload: set(mechanism.supported(payload)) for payload in law}
        for pair in combinations(range(mechanism.k), 2):
            together = sum(p for payload, p in law.items() if supported[payload].issuperset(pair))
            assert together == laws.pair_chance(mechanism, value, *pair)


def check_payloads(mechanism: Any, walked: Walks) -> None:
    """All payloads that can be made are read, and no other bytes are."""
    made = {one.payload for value in walked for one in value}
    size = mechanism.payload_size
    assert {len(payload) for payload in made} == {size}
    for payload in (bytes(p) for p in product(range(256), repeat=size)):
        assert is_read(mechanism, payload) == (payload in made)
    for length in (0, size - 1, size + 1, size + 8):
        assert length == size or not is_read(mechanism, bytes(length))


CHECKS: dict[str, Callable[[Any, Walks], None]] = {
    "law": check_law,
    "consumption": check_consumption,
    "ratio": check_ratio,
    "support": check_support,
    "pairs": check_pairs,
    "payloads": check_payloads,
}


# -- Proofs of the core as a whole --------------------------------------------------------


@lru_cache(maxsize=16)
def _small(core: Core, name: str) -> list[tuple[Any, Walks]]:
    """Small forms of a mechanism, walked once for all checks."""
    return [(mechanism, walks(mechanism)) for mechanism in core.small(name)]


def _by_enumeration(check: Callable[[Any, Walks], None]) -> Callable[[Core], None]:
    """Prove a check for all mechanisms."""

    def prove(core: Core) -> None:
        for name in core.names:
            for mechanism, walked in _small(core, name):
                check(mechanism, walked)
        if "subset-selection" in core.names:
            with core.bit_vectors():
                mechanism = core.calibrated("subset-selection", 4, 2, base=4, width=2)
                check(mechanism, walks(mechanism))

    return prove


def prove_certificate(core: Core) -> None:
    """Calibrated thresholds keep ε, and one step more telling would not."""
    for name, epsilon in product(_one_time(core), ("0.5", "1", "ln 3")):
        declared = core.exact.Epsilon.parse(epsilon)
        for k, *parameters in SMALL[name]:
            mechanism = core.shipped(name, k, *parameters, epsilon=epsilon)
            assert has_ratio(mechanism)
            assert core.exact.Certificate(declared, mechanism.ratio).holds
            assert not core.exact.Certificate(declared, nudged(mechanism).ratio).holds


def _one_time(core: Core) -> list[str]:
    """The mechanisms without a memo; of the others more is proved in memoised_proofs.py."""
    return [name for name in core.names if name in SMALL]


def nudged(mechanism: Any) -> Any:
    """The same mechanism, its threshold one step more telling."""
    name, threshold = next(iter(mechanism.parameters.items()))
    step = -1 if name in {"flip", "raised"} else 1
    return mechanism._replace(**{name: threshold + step})


def prove_refusals(core: Core) -> None:
    """Parameters that make no mechanism have no ratio, whatever the threshold."""
    for name in _one_time(core):
        for k, *parameters in NONSENSE[name]:
            for threshold in (1, 1 << 62, 1 << 63, 3 << 62, HUGE):
                mechanism = core.mechanisms.MECHANISMS[name](k, threshold, *parameters)
                assert not has_ratio(mechanism), mechanism
        k, *parameters = SMALL[name][-1]
        for threshold in (0, 1 << 64):
            assert not has_ratio(core.mechanisms.MECHANISMS[name](k, threshold, *parameters))


def has_ratio(mechanism: Any) -> bool:
    try:
        return bool(mechanism.ratio > 1)
    except ValueError:
        return False
    except ArithmeticError as error:
        raise AssertionError(f"{mechanism} is neither proved nor refused") from error


def prove_scale(core: Core) -> None:
    """Projective geometry: by what a point's vector is scaled depends on neither it nor the value.

    For the time that it takes to divide by the scale may depend on that.
    """
    if "projective-geometry" not in core.names:
        return
    for mechanism in core.small("projective-geometry"):
        scales = range(1, mechanism.field)
        with core.scales_told():
            walked = walks(mechanism)
        for value, law in enumerate(map(law_of, walked)):
            assert law == {
                bytes([payload[0] + mechanism.cells * scale]): p / len(scales)
                for payload, p in laws.specified_law(mechanism, value).items()
                for scale in scales
            }


def prove_below(core: Core) -> None:
    """Every word of digits is kept or drawn again, and those kept name n values alike."""
    for base, n in (*product((2, 3, 4), range(1, 21)), (256, 3)):
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
    "refusals": prove_refusals,
    "scale": prove_scale,
    "layout": prove_layout,
    "below": prove_below,
}
