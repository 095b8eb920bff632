"""What payloads say and points are orthogonal to: vectors for other implementations.

Written by hand, from the wire format and the papers, and not computed by the code that is
tested with it.
"""

from typing import Any, Final

# A report from a memo has the form of one without.
_RESPONSE: Final = ("randomised-response", "memoised-randomised-response")
_UNARY: Final = (
    "symmetric-unary",
    "optimised-unary",
    "memoised-symmetric-unary",
    "memoised-optimised-unary",
)
_SUBSET: Final = ("subset-selection",)
_GEOMETRY: Final = ("projective-geometry",)
_HASHING: Final = ("local-hashing",)
_CELLS: Final = ("memoised-local-hashing",)

# (mechanisms, k, parameters beside the threshold, payload in hex, the values it supports)
_GOOD_PAYLOADS: Final[list[tuple[tuple[str, ...], int, dict[str, int], str, list[int]]]] = [
    (_RESPONSE, 2, {}, "00", [0]),
    (_RESPONSE, 2, {}, "01", [1]),
    (_RESPONSE, 4, {}, "03", [3]),
    (_RESPONSE, 256, {}, "ff", [255]),
    (_RESPONSE, 257, {}, "0000", [0]),
    (_RESPONSE, 257, {}, "0100", [256]),
    (_RESPONSE, 1_000, {}, "0102", [258]),
    (_RESPONSE, 65_536, {}, "ffff", [65_535]),
    (_UNARY, 2, {}, "00", []),
    (_UNARY, 2, {}, "02", [1]),
    (_UNARY, 4, {}, "05", [0, 2]),
    (_UNARY, 4, {}, "0f", [0, 1, 2, 3]),
    (_UNARY, 8, {}, "80", [7]),
    (_UNARY, 9, {}, "0101", [0, 8]),
    (_UNARY, 16, {}, "0280", [1, 15]),
    (_UNARY, 20, {}, "00000c", [18, 19]),
    (_SUBSET, 5, {"size": 2}, "00", [0, 1]),
    (_SUBSET, 5, {"size": 2}, "01", [0, 2]),
    (_SUBSET, 5, {"size": 2}, "02", [1, 2]),
    (_SUBSET, 5, {"size": 2}, "03", [0, 3]),
    (_SUBSET, 5, {"size": 2}, "09", [3, 4]),
    (_SUBSET, 2, {"size": 1}, "01", [1]),
    (_SUBSET, 4, {"size": 3}, "00", [0, 1, 2]),
    (_SUBSET, 4, {"size": 3}, "03", [1, 2, 3]),
    (_SUBSET, 256, {"size": 1}, "ff", [255]),
    (_SUBSET, 300, {"size": 1}, "012b", [299]),
    # C(67, 33) sets are the most that ranks of 8 bytes can number; C(68, 34) are too many.
    (_SUBSET, 67, {"size": 33}, "0000000000000000", [*range(33)]),
    (_SUBSET, 67, {"size": 33}, "c56ec13c4b95e371", [*range(34, 67)]),
    (_SUBSET, 68, {"size": 34}, "ffffffff0300000000", [*range(34)]),
    (_SUBSET, 68, {"size": 34}, "00000000fcffffff0f", [*range(34, 68)]),
    (_SUBSET, 68, {"size": 34}, "555555555555555505", [*range(0, 68, 2)]),
    (_GEOMETRY, 7, {"field": 2, "dimensions": 3}, "00", [1, 3, 5]),
    (_GEOMETRY, 7, {"field": 2, "dimensions": 3}, "06", [2, 4, 5]),
    (_GEOMETRY, 3, {"field": 3, "dimensions": 2}, "00", [1]),
    (_GEOMETRY, 3, {"field": 3, "dimensions": 2}, "02", []),
    (_GEOMETRY, 3, {"field": 3, "dimensions": 2}, "03", [2]),
    (_GEOMETRY, 4, {"field": 3, "dimensions": 6}, "0000", [1]),
    (_GEOMETRY, 4, {"field": 3, "dimensions": 6}, "016b", [3]),
    # The seed (0, 1, 32,768) puts only value 0 into bucket 0.
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "00000000000000", [0, 1, 2, 3]),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "00000000000001", []),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "00000000030002", [0]),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "00000000030003", [1, 2, 3]),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "02000600060001", [0, 1, 2, 3]),
    (_HASHING, 4, {"buckets": 2_979, "prime": 65_537}, "0ba322e922e90ba2", [0, 1, 2, 3]),
    (_HASHING, 5, {"buckets": 3, "prime": 5}, "0072", [1, 2]),
    (_HASHING, 5, {"buckets": 3, "prime": 5}, "0073", [0, 3, 4]),
    # The seed (0, 0, 0) puts every value into cell 0.
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "00", [0, 1, 2, 3]),
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "01", []),
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "0a", [1]),
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "0f", [0, 1, 3]),
    (_CELLS, 5, {"cells": 3, "dimensions": 3}, "1a", [0, 1]),
    (_CELLS, 5, {"cells": 3, "dimensions": 3}, "50", [0, 1, 4]),
    (
        _CELLS,
        41,
        {"cells": 3, "dimensions": 5},
        "02d8",
        [0, 1, 4, 9, 11, 13, 18, 20, 24, 26, 28, 32, 34, 39, 40],
    ),
]

# (mechanisms, k, parameters beside the threshold, payload in hex, what is wrong)
_BAD_PAYLOADS: Final[list[tuple[tuple[str, ...], int, dict[str, int], str, str]]] = [
    (_RESPONSE, 2, {}, "", "too short"),
    (_RESPONSE, 2, {}, "02", "no such value"),
    (_RESPONSE, 2, {}, "0001", "too long"),
    (_RESPONSE, 4, {}, "04", "no such value"),
    (_RESPONSE, 4, {}, "ff", "no such value"),
    (_RESPONSE, 256, {}, "0001", "too long"),
    (_RESPONSE, 257, {}, "01", "too short"),
    (_RESPONSE, 257, {}, "0101", "no such value"),
    (_RESPONSE, 257, {}, "0001ff", "too long"),
    (_RESPONSE, 1_000, {}, "03e8", "no such value"),
    (_RESPONSE, 65_536, {}, "00ffff", "too long"),
    (_UNARY, 2, {}, "", "too short"),
    (_UNARY, 2, {}, "04", "a spare bit is set"),
    (_UNARY, 4, {}, "10", "a spare bit is set"),
    (_UNARY, 4, {}, "0100", "too long"),
    (_UNARY, 8, {}, "ff00", "too long"),
    (_UNARY, 9, {}, "01", "too short"),
    (_UNARY, 9, {}, "0002", "a spare bit is set"),
    (_UNARY, 9, {}, "010080", "too long"),
    (_UNARY, 20, {}, "000010", "a spare bit is set"),
    (_UNARY, 20, {}, "ffff1f", "a spare bit is set"),
    (_SUBSET, 5, {"size": 2}, "", "too short"),
    (_SUBSET, 5, {"size": 2}, "0a", "no such rank"),
    (_SUBSET, 5, {"size": 2}, "0009", "too long"),
    (_SUBSET, 300, {"size": 1}, "012c", "no such rank"),
    (_SUBSET, 67, {"size": 33}, "c56ec13c4b95e372", "no such rank"),
    (_SUBSET, 67, {"size": 33}, "ffffffffffffffff", "no such rank"),
    (_SUBSET, 67, {"size": 33}, "ffffffff0100000000", "a vector where ranks fit"),
    (_SUBSET, 68, {"size": 34}, "0000000000000000", "a rank where ranks do not fit"),
    (_SUBSET, 68, {"size": 34}, "000000000000000000", "no value"),
    (_SUBSET, 68, {"size": 34}, "ffffffff0100000000", "one value too few"),
    (_SUBSET, 68, {"size": 34}, "ffffffff0700000000", "one value too many"),
    (_SUBSET, 68, {"size": 34}, "ffffffff0100000010", "a spare bit is set"),
    (_GEOMETRY, 7, {"field": 2, "dimensions": 3}, "07", "no such point"),
    (_GEOMETRY, 3, {"field": 3, "dimensions": 2}, "04", "no such point"),
    (_GEOMETRY, 4, {"field": 3, "dimensions": 6}, "016c", "no such point"),
    (_GEOMETRY, 4, {"field": 3, "dimensions": 6}, "00", "too short"),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "02000600060002", "no such seed"),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "ffffffffffffff", "no such seed"),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "000000000001", "too short"),
    (_HASHING, 4, {"buckets": 2, "prime": 65_537}, "0000000000000001", "too long"),
    (_HASHING, 4, {"buckets": 2_979, "prime": 65_537}, "0ba322e922e90ba3", "no such seed"),
    (_HASHING, 5, {"buckets": 3, "prime": 5}, "0177", "no such seed"),
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "", "too short"),
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "10", "no such seed"),
    (_CELLS, 4, {"cells": 2, "dimensions": 3}, "0000", "too long"),
    (_CELLS, 5, {"cells": 3, "dimensions": 3}, "51", "no such seed"),
    (_CELLS, 41, {"cells": 3, "dimensions": 5}, "02d9", "no such seed"),
]

# (field, dimensions, index, coordinates, the points orthogonal to it)
_POINTS: Final = [
    (2, 2, 0, [0, 1], [1]),
    (2, 2, 1, [1, 0], [0]),
    (2, 2, 2, [1, 1], [2]),
    (2, 4, 0, [0, 0, 0, 1], [1, 3, 5, 7, 9, 11, 13]),
    (2, 4, 7, [1, 0, 0, 0], [0, 1, 2, 3, 4, 5, 6]),
    (2, 4, 14, [1, 1, 1, 1], [2, 4, 5, 8, 9, 11, 14]),
    (3, 3, 0, [0, 0, 1], [1, 4, 7, 10]),
    (3, 3, 4, [1, 0, 0], [0, 1, 2, 3]),
    (3, 3, 12, [1, 2, 2], [3, 5, 7, 12]),
    (5, 3, 5, [0, 1, 4], [2, 6, 12, 18, 24, 30]),
    (5, 3, 30, [1, 4, 4], [5, 7, 11, 20, 24, 28]),
    (7, 2, 7, [1, 6], [2]),
]


def payloads() -> Any:
    """Payloads that each mechanism can make, and some that none can."""
    return {
        "good": [
            {**_mechanism(name, k, parameters), "payload": payload, "supported": supported}
            for names, k, parameters, payload, supported in _GOOD_PAYLOADS
            for name in names
        ],
        "bad": [
            {**_mechanism(name, k, parameters), "payload": payload, "why": why}
            for names, k, parameters, payload, why in _BAD_PAYLOADS
            for name in names
        ],
    }


def _mechanism(name: str, k: int, parameters: dict[str, int]) -> dict[str, Any]:
    return {"mechanism": name, "k": k, "parameters": parameters}


def geometry() -> Any:
    """Points by their index, and the indices of the points orthogonal to them."""
    return {
        "points": [
            {
                "field": field,
                "dimensions": dimensions,
                "index": index,
                "coordinates": coordinates,
                "orthogonal": orthogonal,
            }
            for field, dimensions, index, coordinates, orthogonal in _POINTS
        ]
    }
