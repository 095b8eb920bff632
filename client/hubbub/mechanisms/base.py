"""What every mechanism offers: a channel from one of k values to a payload of fixed size."""

from fractions import Fraction
from typing import NamedTuple, Protocol

from hubbub.exact import Epsilon
from hubbub.mechanisms.coin import SHIPPED, Resolution
from hubbub.randomness import Source


class Support(NamedTuple):
    """The two probabilities of a pure mechanism (Wang et al., USENIX Security 2017)."""

    p: Fraction
    """p*: that a report supports the device's own value."""
    q: Fraction
    """q*: that it supports any one other value."""

    @property
    def variance(self) -> Fraction:
        """n · Var of the estimated share of a value that nobody has: q(1 − q)/(p − q)²."""
        return self.q * (1 - self.q) / (self.p - self.q) ** 2


class Mechanism(Protocol):
    """An ε-locally private mechanism with its integer parameters; immutable.

    ε refers to replacement neighbours: any two values in [0, k) of one device.
    """

    @property
    def name(self) -> str:
        """What metrics.toml and the estimates call it."""
        ...

    @property
    def k(self) -> int:
        """Size of the domain."""
        ...

    @property
    def parameters(self) -> dict[str, int]:
        """The integers that the contract holds, by their names there: the threshold first."""
        ...

    @property
    def ratio(self) -> Fraction:
        """The largest P(payload | value) / P(payload | other value), exactly.

        Raises ValueError if the parameters make no mechanism, or one whose reports say
        nothing, or everything. Ask it first: the rest takes it for granted that it answers.
        """
        ...

    @property
    def support(self) -> Support:
        """p* and q*, exactly, from the integers."""
        ...

    @property
    def payload_size(self) -> int:
        """Bytes of every payload, whatever the value."""
        ...

    def randomise(self, value: int, source: Source) -> bytes:
        """Return a fresh payload for a value in [0, k).

        Given the payload, neither how much is drawn nor the steps that are taken depend on
        the value: whoever sees all three learns no more than from the payload alone. Steps are
        the interpreter's; how long the processor takes for each is beyond what Python can say.
        """
        ...

    def supported(self, payload: bytes) -> list[int]:
        """The values, ascending, that a payload supports.

        Raises ValueError if the payload is not one that `randomise` can return.
        """
        ...


class OneTimeMechanism(Mechanism, Protocol):
    """A mechanism whose every report is drawn afresh, and charged anew."""

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "OneTimeMechanism":
        """The mechanism for k ≥ 2 values whose threshold is the most telling within ε.

        `parameters`: what else the contract holds, in its order; the classes say what.
        """
        ...
