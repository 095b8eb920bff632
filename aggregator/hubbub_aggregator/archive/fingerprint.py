"""Whether two places hold the same reports, in whatever order each has them."""

import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.oracles import Payloads

_WORD: Final = 8

Fingerprint = NDArray[np.uint64]
"""Of a collection: uint64 of shape (2,). Those of two add up to that of both."""

# Secret, and new in each process: so nobody can choose other reports that come to the same, but
# by a chance of one in 2^128. Two rows, each for itself: a factor for each word of a payload, then
# what mixes their sum.
_LONGEST: Final = 4
_SECRETS: Final = np.frombuffer(os.urandom(2 * _WORD * (_LONGEST + 3)), np.uint64).reshape(
    2, -1
) | np.uint64(1)


def nothing() -> Fingerprint:
    """The fingerprint of no payloads."""
    return np.zeros(2, np.uint64)


def fingerprint(payloads: Payloads) -> Fingerprint:
    """The sum over n payloads of at most 32 bytes, of a number that depends on each as a whole."""
    n, size = payloads.shape
    padded = np.zeros((n, _LONGEST * _WORD), np.uint8)
    padded[:, :size] = payloads
    words = padded.view(np.uint64)
    found = nothing()
    for lane, secrets in enumerate(_SECRETS):
        mixed = words @ secrets[:_LONGEST]
        for secret in secrets[_LONGEST:]:
            # Low bits of a product depend on low bits alone.
            mixed ^= mixed >> np.uint64(32)
            mixed *= secret
        found[lane] = (mixed ^ (mixed >> np.uint64(32))).sum(dtype=np.uint64)
    return found
