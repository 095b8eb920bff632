"""Mutants of the privacy core: the shipped source with one textual change each.

tests/client/test_mutants.py refuses each by the proof that is named for it.
"""

from typing import NamedTuple

from tests.memoised_mutants import MEMOISED_CHANGES


class Mutant(NamedTuple):
    module: str
    name: str
    killed_by: str
    shipped: str
    changed: str


# In mechanisms.coin: as it is, and how it would be quicker and tell too much.
_ALL_PLACES = "digits = source.digits(width * n)"
_ONLY_TIES = """\
digits = b""
        for place in range(width):
            ties = [digits[toss::n] == self._digits[:place] for toss in range(n)]
            more = iter(source.digits(sum(ties)))
            digits += bytes(next(more) if tie else 0 for tie in ties)
"""

# By module: the mutant's name, the proof that refuses it, the text as shipped, and as changed.
_CHANGES = {
    "mechanisms.coin": [
        ("less-or-equal", "law", '+ digits, "big") - 1', '+ digits, "big")'),
        ("less-or-equal-in-one-toss", "law", "1) - draw", "1) + 1 - draw"),
        ("more-drawn-only-for-ties", "consumption", _ALL_PLACES, _ONLY_TIES),
        ("what-ties-tell", "ratio", _ALL_PLACES, _ONLY_TIES),
        ("first-places-alone", "law", "in range(width)", "in range(width - 1)"),
        ("last-places-alone", "law", "in range(width)", "in range(1, width)"),
        ("places-side-by-side", "law", "[place * n : (place + 1) * n]", "[place : place + n]"),
        ("one-place-for-all", "law", "[place * n : (place + 1) * n]", "[:n]"),
        ("one-toss-for-all", "law", "source.digits(width * n)", "source.digits(width) * n"),
        ("draws-without-a-guard", "law", r'b"\1" *', r'b"\0" *'),
        ("thresholds-without-a-guard", "law", "bytes([1 + ONE])", "bytes([1])"),
        ("guard-too-low", "law", "bytes([1 + ONE])", "bytes([ONE])"),
        ("guard-too-high", "law", "bytes([1 + ONE])", "bytes([2 + ONE])"),
        ("one-lane-alone", "law", '1 + len(digits), "big") * n', '1 + len(digits), "big")'),
        ("lanes-read-from-the-last", "law", 'len(draws), "big")', 'len(draws), "little")'),
        ("lanes-read-at-their-last-byte", "law", "[:: 1 + width])", "[width :: 1 + width])"),
    ],
    "mechanisms.optimised_unary": [
        ("true-bit-not-cleared", "law", "value] = ZERO", "value] |= ZERO"),
        ("true-bit-not-randomised", "law", "ZERO + 2 *", "ZERO + 1 + 0 *"),
        (
            "true-bit-shares-a-draw",
            "law",
            "(digit,) = source.digits(1)",
            "digit = 3 * (faces[0] % 2)",
        ),
        ("true-bit-as-the-others", "law", "value] = ZERO + 2 *", "value] += 0 *"),
        ("index-off-by-one", "law", "self.k - 1 - value", "self.k - 2 - value"),
        ("index-reversed", "law", "self.k - 1 - value", "value"),
        ("floor-for-ceiling", "certificate", "one - threshold", "one - 1 - threshold"),
        ("ratio-of-p-over-q", "ratio", "one - self.raised, self", "one // 2, self"),
    ],
    "mechanisms.symmetric_unary": [
        ("last-bit-not-randomised", "law", "source, self.k)", 'source, self.k - 1) + b"0"'),
        ("ratio-of-a-sure-bit", "ratio", "source, self.k)", 'source, self.k - 1) + b"0"'),
        ("p-and-q-swapped", "law", "coin(self.flip", "Coin(self.resolution.one - self.flip"),
        ("p-and-q-swapped-in-support", "support", "1 - flips, flips", "flips, 1 - flips"),
        ("true-bit-not-set", "law", "^= ONE ^ ZERO", "^= 0"),
        ("epsilon-for-half-epsilon", "certificate", "one, root=2)", "one)"),
        ("ratio-of-one-bit-for-two", "ratio", "self.flip) ** 2", "self.flip)"),
    ],
    "mechanisms.randomised_response": [
        ("lie-may-be-the-truth", "law", "1 + source.below(self.k - 1)", "source.below(self.k)"),
        ("lie-is-the-next-value", "law", "1 + source.below", "1 + 0 * source.below"),
        ("lie-for-truth", "law", "1 - self._coin", "self._coin"),
        (
            "lie-drawn-only-when-lying",
            "consumption",
            "lies * (1 + source.below(self.k - 1))",
            "(1 + source.below(self.k - 1) if lies else 0)",
        ),
        ("draws-depend-on-value", "consumption", "lies = ", "value and source.below(2); lies = "),
        ("threshold-too-low", "certificate", "threshold(epsilon", "-1 + threshold(epsilon"),
        ("ratio-without-k", "ratio", "self.keep * (self.k - 1), one", "self.keep, one"),
    ],
    "mechanisms.subset_selection": [
        ("true-value-always-a-member", "law", "= self._coin.toss(source)", "= True"),
        ("true-value-for-a-lie", "law", "included = self", "included = not self"),
        ("no-other-gives-way", "law", "faces[last] -= included", "faces[last] -= 0"),
        ("the-first-other-gives-way", "law", "faces[last] -=", "faces[faces.find(ONE)] -="),
        ("one-other-always-gives-way", "law", "faces[last] -= included", "faces[last] = ZERO"),
        (
            "a-lot-drawn-only-when-included",
            "consumption",
            "faces[last] -= included",
            "faces[last] -= included and source.below(1) + 1",
        ),
        (
            "draws-depend-on-value",
            "consumption",
            "included = self._coin",
            "value and source.below(2); included = self._coin",
        ),
        (
            "draws-depend-on-the-members",
            "consumption",
            "included = self._coin",
            "faces[0] == ONE and source.below(2); included = self._coin",
        ),
        ("the-value-among-the-others", "law", "source.digits(self.k - 1)", "source.digits(self.k)"),
        ("no-lots", "law", "lot = source.below(len(tied))", "lot = 0 * source.below(len(tied))"),
        ("a-lot-drawn-again", "law", "tied.pop()", "pass"),
        ("the-highest-digits-too", "law", 'replace(b"=", b"0")', 'replace(b"=", b"1")'),
        ("one-lot-less", "law", "in range(lots)", "in range(lots - 1)"),
        ("cut-one-lower", "law", "if wanted <= len(lower)", "if wanted < len(lower)"),
        (
            "index-off-by-one",
            "law",
            "faces[value:] + faces[:value]",
            "faces[value - 1:] + faces[:value - 1]",
        ),
        (
            "index-reversed",
            "law",
            "faces[value:] + faces[:value]",
            "faces[-1 - value:] + faces[:-1 - value]",
        ),
        ("rank-of-values-descending", "law", "_positions(faces[::-1]", "_positions(faces"),
        ("rank-from-place-0", "law", "(faces[::-1], ONE), 1)", "(faces[::-1], ONE), 0)"),
        ("set-of-any-size-accepted", "payloads", "len(values) != self.size", "not values"),
        ("rank-read-descending", "layout", "values[::-1]", "values"),
        ("threshold-for-one-value", "certificate", "Fraction(k - size, size)", "Fraction(k - 1)"),
        (
            "ratio-of-p-over-1-p",
            "ratio",
            "Fraction(self.included * (k - size), (one - self.included) * size)",
            "Fraction(self.included, one - self.included)",
        ),
        (
            "ratio-counts-of-k-sets",
            "ratio",
            "(one - self.included) * size)",
            "(one - self.included) * k)",
        ),
        ("support-of-independent-values", "support", "(self.size - p) /", "self.size * (1 - p) /"),
        ("no-size-at-all", "refusals", "if not 0 < size < k", "if size >= k"),
        ("tells-everything", "refusals", "< self.included * k < one * k", "< self.included * k"),
    ],
    "mechanisms.projective_geometry": [
        ("lie-for-truth", "law", "1 - self._coin", "self._coin"),
        (
            "lie-may-be-orthogonal",
            "law",
            "outside * (1 + source.below(field - 1))",
            "outside * source.below(field)",
        ),
        (
            "origin-not-excluded",
            "law",
            "(1 + source.below(field**free - 1)",
            "(source.below(field**free)",
        ),
        (
            "one-orthogonal-vector-never",
            "law",
            "(1 + source.below(field**free - 1)",
            "(1 + source.below(max(1, field**free - 2))",
        ),
        (
            "one-lie-never",
            "law",
            ", source.below(field**free))",
            ", source.below(field**free - 1))",
        ),
        (
            "truth-or-lie-drawn-alone",
            "consumption",
            "(1 + source.below(field**free - 1), source.below(field**free))[outside]",
            "source.below(field**free) if outside else 1 + source.below(field**free - 1)",
        ),
        (
            "draws-depend-on-value",
            "consumption",
            "outside = 1",
            "value and source.below(2); outside = 1",
        ),
        ("sign-lost", "law", "product - others)", "product + others)"),
        (
            "scale-not-drawn",
            "scale",
            "outside * (1 + source.below(field - 1))",
            "outside * 1",
        ),
        (
            "scale-drawn-only-outside",
            "consumption",
            "outside * (1 + source.below(field - 1))",
            "1 + source.below(field - 1) if outside else 0",
        ),
        (
            "scale-depends-on-value",
            "scale",
            "outside * (1 + source.below(field - 1))",
            "outside * (1 + source.below(field - 1) * bool(value))",
        ),
        ("others-at-the-wrong-place", "law", "insert(leading, 0)", "insert(0, 0)"),
        ("orthogonal-read-without-the-lead", "support", "[coordinate + product", "[product"),
        (
            "threshold-for-all-points",
            "certificate",
            "points(field, dimensions) - orthogonal, orthogonal",
            "points(field, dimensions), orthogonal",
        ),
        (
            "ratio-of-p-over-1-p",
            "ratio",
            "Fraction(self.within * (cells - orthogonal), (one - self.within) * orthogonal)",
            "Fraction(self.within, one - self.within)",
        ),
        (
            "ratio-counts-of-all-points",
            "ratio",
            "self.within * (cells - orthogonal)",
            "self.within * cells",
        ),
        (
            "support-without-the-lies",
            "support",
            "p * i / c + (1 - p) * (c - i) / (self.cells - c)",
            "p * i / c",
        ),
        ("support-of-unrelated-points", "support", "(c - i) / (self.cells - c)", "c / self.cells"),
        ("field-not-prime", "refusals", "not is_prime(self.field)", "self.field < 2"),
        (
            "values-without-a-point",
            "refusals",
            "self.k <= cells <= MAX_CELLS",
            "cells <= MAX_CELLS",
        ),
        ("points-without-end", "refusals", "self.k <= cells <= MAX_CELLS", "self.k <= cells"),
        (
            "tells-everything",
            "refusals",
            "< self.within * cells < one * cells",
            "< self.within * cells",
        ),
    ],
    "mechanisms.projective_space": [
        (
            "not-the-inverse",
            "law",
            "pow(vector[leading], field - 2, field)",
            "vector[leading]",
        ),
        ("not-normalised", "law", "pow(vector[leading], field - 2, field)", "1"),
        ("leading-place-first", "law", "in reversed(vector)", "in vector"),
        (
            "points-counted-from-1",
            "law",
            "int(field**place) - first",
            "int(field**place) - first + 1",
        ),
        ("leading-place-too-high", "law", "(3 << bits) - first for", "(3 << bits) + 1 - first for"),
    ],
    "mechanisms.local_hashing": [
        ("hash-affine", "pairs", "(a * value + b)", "(0 * a + b)"),
        ("hash-of-a-square-alone", "pairs", "(a * value + b) * value", "a * value * value"),
        ("seed-constant", "law", "seed = source.below", "seed = 0 * source.below"),
        (
            "seed-of-two-coefficients",
            "law",
            "source.below(self.prime**3)",
            "source.below(self.prime**2)",
        ),
        (
            "lie-may-be-the-truth",
            "law",
            "1 + source.below(self.buckets - 1)",
            "source.below(self.buckets)",
        ),
        ("lie-is-the-next-bucket", "law", "1 + source.below(self", "1 + 0 * source.below(self"),
        ("lie-for-truth", "law", "1 - self._coin", "self._coin"),
        (
            "lie-drawn-only-when-lying",
            "consumption",
            "lies * (1 + source.below(self.buckets - 1))",
            "(1 + source.below(self.buckets - 1) if lies else 0)",
        ),
        ("draws-depend-on-value", "consumption", "lies = ", "value and source.below(2); lies = "),
        (
            "seed-depends-on-value",
            "law",
            "seed * self.buckets + (",
            "(seed + value) % self.prime**3 * self.buckets + (",
        ),
        (
            "bucket-rounded",
            "law",
            "% self.prime * self.buckets // self.prime",
            "% self.prime * self.buckets // (self.prime + 1)",
        ),
        (
            "bucket-by-remainder",
            "law",
            "% self.prime * self.buckets // self.prime",
            "% self.prime % self.buckets",
        ),
        ("coefficients-reversed", "layout", "a, b = divmod", "b, a = divmod"),
        (
            "ratio-of-p-over-1-p",
            "ratio",
            "Fraction(self.keep * (self.buckets - 1), one",
            "Fraction(self.keep, one",
        ),
        (
            "threshold-for-one-bucket-more",
            "certificate",
            "threshold(epsilon, buckets - 1",
            "threshold(epsilon, buckets",
        ),
        (
            "collision-of-equal-buckets",
            "support",
            "Fraction(falls, self.prime**values)",
            "Fraction(1, self.buckets ** (values - 1))",
        ),
        ("collision-of-the-smaller", "support", "larger * (least + 1)", "larger * least"),
        ("support-of-one-lie", "support", "(1 - alike) / (self.buckets - 1)", "(1 - alike)"),
        ("buckets-without-end", "refusals", "min(MAX_BUCKETS, prime)", "prime"),
        ("empty-buckets", "refusals", "min(MAX_BUCKETS, prime)", "MAX_BUCKETS"),
        ("modulus-not-prime", "refusals", " and is_prime(prime)", ""),
        ("values-without-a-hash", "refusals", "self.k <= prime <=", "prime <="),
        (
            "primes-without-end",
            "refusals",
            "self.k <= prime <= LISTED_PRIME",
            "self.k <= prime < 2**32",
        ),
        (
            "texts-in-a-listed-domain",
            "refusals",
            "self.k == prime == OPEN_PRIME",
            "prime == OPEN_PRIME",
        ),
        (
            "tells-everything",
            "refusals",
            "< self.keep * self.buckets < one * self.buckets",
            "< self.keep * self.buckets",
        ),
    ],
    "mechanisms.primes": [
        ("squares-are-prime", "refusals", "divisor * divisor <= n", "divisor * divisor < n"),
        ("1-is-prime", "refusals", "if n < 2:", "if n < 1:"),
        ("even-numbers-are-prime", "refusals", "divisor = 2", "divisor = 3"),
    ],
    "mechanisms.big_endian": [
        ("written-little-endian", "layout", 'digits, "big")[1:]', 'digits, "little")[:-1]'),
        ("read-little-endian", "layout", 'payload, "big"', 'payload, "little"'),
        ("number-past-the-last-accepted", "payloads", "number >= count", "number > count"),
        ("any-length-accepted", "payloads", "len(payload) != size(count) or ", ""),
    ],
    "mechanisms.bit_vector": [
        ("bits-of-a-byte-reversed", "law", "+ faces.rjust(", "+ faces[::-1].rjust("),
        ("last-byte-first", "layout", '"little")[:', '"big")[1:][:'),
        ("spare-bits-accepted", "payloads", " or bits >> k", ""),
    ],
    "exact": [
        ("threshold-rounded-up", "certificate", "lambda x: one * x", "lambda x: 1 + one * x"),
        ("certificate-always-holds", "certificate", "bool(_decide(", "bool(1 or _decide("),
    ],
    "randomness": [
        ("modulo-bias", "below", "words - words % n", "words"),
        ("last-integer-never", "below", "word % n", "word % max(1, n - 1)"),
        ("word-too-short", "below", "while words < n * base", "while words < n"),
        ("bytes-read-as-signed", "below", 'digits, "big")', 'digits, "big", signed=True)'),
        ("digits-of-another-base", "below", "number * base", "number * 2"),
    ],
}
MUTANTS = [
    Mutant(f"hubbub.{module}", *change)
    for module, changes in (_CHANGES | MEMOISED_CHANGES).items()
    for change in changes
]
