"""Shares that could be true: none below zero, and all of them together everybody.

Unbiased estimates are neither; that is what makes their sums and means right. For somebody who
wants to read them as parts of a whole, these are the nearest that are (the projection on the
simplex; Duchi, Shalev-Shwartz, Singer and Chandra, ICML 2008, fig. 1). They are biased: what is cut
off below zero is taken from all others alike. So there are no intervals around them.
"""

import numpy as np

from hubbub_aggregator.estimation.intervals import Floats


def consistent(shares: Floats) -> Floats:
    """The nearest shares, in the sum of squares, that are ≥ 0 and add up to 1: shape (k,).

    `shares`: of all values of a domain, k ≥ 1, finite.
    """
    largest_first = np.sort(shares)[::-1]
    # What all would have to give, if so many of the largest were left above zero.
    given = (np.cumsum(largest_first) - 1) / np.arange(1, len(shares) + 1)
    left = np.count_nonzero(largest_first > given)
    nearest: Floats = np.maximum(shares - given[left - 1], 0.0)
    return nearest
