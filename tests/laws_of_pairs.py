"""The exact law of two values' counts, whatever hangs together in a report."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Mechanism
from tests.channels import Channel


def crowd_sizes(mechanism: Mechanism, x: float) -> list[int]:
    """A few n with x or little more reports of the rarer kind."""
    least = ceil(x / min(mechanism.support.q, 1 - mechanism.support.p))
    return [least, least + least // 7]


def pair_law(made: Channel, holders: NDArray[np.int64]) -> NDArray[np.float64]:
    """The law of the counts of values 0 and 1, where holders[v] devices have value v.

    Shape (n + 1, n + 1). The generating function of what one report supports of the two,
    multiplied over the devices on the unit circle.
    """
    n = int(holders.sum())
    turns = np.exp(-2j * np.pi * np.arange(n + 1) / (n + 1))
    one, other = turns[:, None], turns[None, :]
    transformed = np.ones((n + 1, n + 1), np.complex128)
    for law, count in zip(made.law, holders, strict=True):
        neither, second, first, both = np.bincount(
            made.supports[:, 0] * 2 + made.supports[:, 1], law, minlength=4
        )
        factor = neither + first * one + second * other + both * one * other
        transformed *= factor**count
    return np.maximum(np.fft.ifft2(transformed).real, 0)
