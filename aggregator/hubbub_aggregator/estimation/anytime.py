"""What may be called present while reports still come in, however often somebody looks.

An interval that is looked at once misses in 5 % of rounds. One that is looked at with every new
snapshot, until it shows something, misses far more often: of values that nobody has, a fifth to a
third exclude zero at some moment. So while a round is open another rule says what is found.

If nobody has a value, each report supports it by chance alone, with probability q. What a bet
against that has won, which is worth 1 at the beginning, is expected to be worth 1 still after
every report, and with probability at most α ever reaches 1/α (Ville 1939). The bet here is on
shares f of every size at once, from 1/√2 down to a millionth:

    e = mean over f of  (θ/q)^count · ((1 − θ)/(1 − q))^(n − count),   θ = q + f(p − q)

With α/k for each of k values, the probability is at most α that any of those that nobody has is
ever called present (Bonferroni). That holds exactly, at any n, and whoever stops whenever it
suits him.
"""

from math import log, log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.intervals import Floats, require_counts
from hubbub_aggregator.tally import Counts

# Next to the best share, those of the grid miss by 19 % at most, which costs a third of one in the
# exponent; more of them would spread the bet thinner.
_SHARES: Final = 2.0 ** (-np.arange(1, 41) / 2)


def log_evidence(support: Support, counts: Counts, n: int) -> Floats:
    """Natural logarithm of the bet's worth, against "nobody has the value": shape (k,).

    `counts`: int64 in [0, n], shape (k,), of n reports, at least 1. Raises ValueError if one of
    them is something else.
    """
    require_counts(counts, n)
    p, q = float(support.p), float(support.q)
    rates = q + _SHARES * (p - q)
    won, lost = np.log(rates / q), np.log1p(-rates) - log1p(-q)
    worth = counts[:, np.newaxis] * won + (n - counts)[:, np.newaxis] * lost
    evidence: Floats = np.logaddexp.reduce(worth, axis=1) - log(len(_SHARES))
    return evidence


def found(support: Support, counts: Counts, n: int, *, level: float = 0.95) -> NDArray[np.bool_]:
    """Which values may be called present by now: bool, shape (k,).

    With probability `level`, in (0, 1), or more, none of those that nobody has ever is, at any n.
    `counts` and `n` as for `log_evidence`.
    """
    present: NDArray[np.bool_] = log_evidence(support, counts, n) >= log(len(counts) / (1 - level))
    return present
