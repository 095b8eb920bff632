"""Compiled limits. No contract, setting or caller can raise them; each says why it is there."""

from typing import Final

# Charges are counted in units of 10^-12 of ε.
_EPSILON: Final = 10**12

# e^8 ≈ 2,981: a single report that says more than that is no longer a matter of noise.
MAX_CHARGE_PER_REPORT: Final = 8 * _EPSILON
# Four of the most telling reports about one fact in a device's life…
MAX_CHARGE_PER_SOURCE: Final = 32 * _EPSILON
# …and twice that over everything it is ever asked.
MAX_CHARGE_PER_DEVICE: Final = 64 * _EPSILON

# A unary report of 65,536 values is 8 KiB, and its index still fits two bytes.
MAX_VALUES: Final = 65_536
# A label is read by people: on a chart's axis, in a statement. So is a text of an open domain.
MAX_LABEL_BYTES: Final = 256
# Counts are kept for every cell, 8 bytes each: of the points of a projective space, which may
# be more than the values, or of every hash of a public list, 2 MiB.
MAX_CELLS: Final = 1 << 18
# No ε that a report may cost gains from more than about e^8 + 1.
MAX_BUCKETS: Final = 1 << 12
# The memo of a thousand values in unary encoding is 128 KiB; a device writes it once.
MAX_MEMO_BYTES: Final = 1 << 20
MAX_QUESTION_BYTES: Final = 1_024

# gRPC's default message size; a device holds a bundle in memory whole.
MAX_BUNDLE_BYTES: Final = 4 << 20
MAX_MESSAGE_BYTES: Final = 4 << 20
# A client splits its uploads here, well below what the aggregator refuses.
MAX_REQUEST_BYTES: Final = 1 << 20
MAX_REPORTS_PER_REQUEST: Final = 1_000

# Ten years of days, three hundred of months.
MAX_ROUNDS: Final = 100_000
# The year 2600 or so: sums of times stay far below 2^63, and exact as a double.
MAX_TIME: Final = 20_000_000_000

# How far a device's clock may be ahead of the aggregator's.
CLOCK_SKEW: Final = 300

REPORT_ID_BYTES: Final = 16

# What a device keeps for an aggregator that it cannot reach: nearly three years of days of one
# metric, or four reports of the largest size a day for a season.
MAX_OUTBOX_REPORTS: Final = 1_000
MAX_OUTBOX_BYTES: Final = 4 << 20
# A season: longer than any outage that ends. Seconds.
MAX_OUTBOX_AGE: Final = 90 * 86_400
