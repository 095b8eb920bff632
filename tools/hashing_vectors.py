"""Where hashes put values, and the indices of texts: vectors for other implementations.

Written by hand, from the wire format, and not computed by the code that is tested with it.
"""

from typing import Any, Final

_P: Final = (1 << 61) - 1

# (buckets, prime, (a, b, c), value, the bucket it falls into, the payload that says so)
_GOOD_HASHES: Final = [
    (3, 5, (1, 2, 3), 0, 1, "0073"),
    (3, 5, (1, 2, 3), 1, 0, "0072"),
    (3, 5, (1, 2, 3), 4, 1, "0073"),
    (2, 65_537, (0, 1, 32_768), 0, 0, "00000000030002"),
    (2, 65_537, (0, 1, 32_768), 1, 1, "00000000030003"),
    (2, 65_537, (0, 1, 32_768), 65_535, 0, "00000000030002"),
    (3, 65_537, (1, 2, 3), 2, 0, "000003000c0012"),
    (3, 65_537, (1, 2, 3), 300, 1, "000003000c0013"),
    (2_979, 65_537, (65_536, 65_536, 65_536), 65_535, 2_978, "0ba322e922e90ba2"),
    (4, _P, (0, 0, _P - 1), 0, 3, "000000000000000000000000000000007ffffffffffffffb"),
    (
        4,
        _P,
        (123_456_789_012_345_678, 987_654_321_098_765_432, 1_111_111_111_111_111_111),
        1,
        3,
        "001b69b4ba630f34e523d1e3fecb66ee0db4da5e1ff2c277",
    ),
    (
        4,
        _P,
        (123_456_789_012_345_678, 987_654_321_098_765_432, 1_111_111_111_111_111_111),
        1 << 60,
        0,
        "001b69b4ba630f34e523d1e3fecb66ee0db4da5e1ff2c274",
    ),
    (512, _P, (_P - 1, _P - 1, _P - 1), 0, 511, "ffffffffffffffe800000000000000bffffffffffffffdff"),
    (2_979, _P, (1, 0, 0), 1 << 31, 0, "00000000000000002e8bfffffffffffd174000000000000ba3"),
    (2_979, _P, (1, 0, 0), 1 << 60, 744, "00000000000000002e8bfffffffffffd174000000000000e8b"),
]

# (buckets, prime, payload, what is wrong)
_BAD_HASHES: Final = [
    (4, _P, "01ffffffffffffffd0000000000000017ffffffffffffffc", "no such seed"),
    (4, _P, "ff" * 24, "no such seed"),
    (4, _P, "00" * 23, "too short"),
    (4, _P, "00" * 25, "too long"),
    (512, _P, "ffffffffffffffe800000000000000bffffffffffffffe00", "no such seed"),
    (2_979, _P, "05d17fffffffffff745c0000000000045d1ffffffffffff45d", "no such seed"),
]

# (cells, seed, value, the cell it falls into, the payload that says so)
_GOOD_CELLS: Final = [
    (2, (0, 0), 2, 0, "00"),
    (2, (0, 1), 0, 1, "03"),
    (2, (1, 1), 2, 0, "06"),
    (3, (1, 2), 3, 2, "11"),
    (3, (1, 1, 2), 7, 2, "2c"),
    (3, (2, 2, 2), 12, 1, "4f"),
    (5, (4, 4), 5, 0, "78"),
    (5, (1, 2, 3), 30, 1, "00bf"),
    (7, (3, 4, 1, 2), 399, 3, "21c1"),
    (251, (250, 249), 251, 1, "f1488e"),
    (2, (1, 0, 0, 0, 0, 0, 0, 0, 0, 0), 511, 1, "0401"),
    (2, (1,) * 16, 65_534, 0, "01fffe"),
]

# Texts of an open domain, and their indices.
_TEXTS: Final = {
    "a": 813_062_794_268_280_249,
    "A": 1_507_489_247_538_331_233,
    "soup": 1_784_063_896_318_611_845,
    "\u00e9": 545_965_250_020_543_966,
    "e\u0301": 55_739_826_733_517_847,
    " ": 588_648_832_770_153_297,
    "\0": 422_622_550_367_677_896,
    "a\0": 2_305_802_463_703_161_209,
    "很好": 367_160_762_447_059_125,
    "👩\u200d⚕️": 2_071_049_979_108_064_408,
    "x" * 256: 28_334_089_257_924_656,
    "\u00e9" * 128: 1_558_178_049_743_680_414,
}
_NOT_TEXTS: Final = ["", "x" * 257, "\u00e9" * 129, "\ud800", "a\udcff"]


def hashing() -> Any:
    """Local hashing's polynomials and reports, an open domain's texts, memoised hashing's cells."""
    return {
        "good": [
            {
                "buckets": buckets,
                # As text: many readers of JSON hold no integer above 2^53.
                "prime": str(prime),
                "seed": [str(coefficient) for coefficient in seed],
                "value": str(value),
                "bucket": bucket,
                "payload": payload,
            }
            for buckets, prime, seed, value, bucket, payload in _GOOD_HASHES
        ],
        "bad": [
            {"buckets": buckets, "prime": str(prime), "payload": payload, "why": why}
            for buckets, prime, payload, why in _BAD_HASHES
        ],
        "cells": [
            {
                "cells": cells,
                "seed": list(seed),
                "value": value,
                "cell": cell,
                "payload": payload,
            }
            for cells, seed, value, cell, payload in _GOOD_CELLS
        ],
        "texts": [{"text": text, "index": str(index)} for text, index in _TEXTS.items()],
        "not_texts": _NOT_TEXTS,
    }
