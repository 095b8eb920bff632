"""The contract's checks that golden vectors are too small for, and what no bytes can do."""

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.bundle import Bundle, operator_key_bytes
from hubbub.contract import parse_metric, read_metric
from hubbub.errors import BundleError, InvalidContract, MalformedBundle, PrivacyNotProved
from hubbub.exact import CHARGE_UNIT, Epsilon
from hubbub.limits import MAX_BUNDLE_BYTES, MAX_VALUES
from hubbub.mechanisms import (
    MECHANISMS,
    MEMOISED,
    LocalHashing,
    MemoisedLocalHashing,
    OptimisedUnary,
    RandomisedResponse,
)
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.randomness import SYSTEM
from hubbub.v1 import contract_pb2 as pb
from tests.calibrated import calibrated, memoised
from tests.hostile import mutated
from tools.bundle_vectors import (
    NAME,
    OPERATOR,
    bundle,
    encode,
    good_bundles,
    metric,
    open_metric,
    operator_key,
    periodic,
    sign,
)
from tools.series_vectors import DAY, good_series, memoised_metric

KEY = operator_key(OPERATOR)
BUNDLES = [
    pb.SignedBundle.FromString(signed).bundle for _, signed in (*good_bundles(), *good_series())
]
ONE = Epsilon.parse("1")


def verify(*metrics: bytes) -> Bundle:
    return Bundle.verify(sign(bundle(*metrics)), operator_key=KEY)


# -- Sizes --------------------------------------------------------------------------------


def test_the_largest_domain() -> None:
    labels = [format(i, "x") for i in range(MAX_VALUES)]
    for name in MECHANISMS:
        checked = verify(metric(calibrated(name, MAX_VALUES, "1"), labels)).metrics[NAME]
        assert checked.domain.k == MAX_VALUES
        assert checked.domain.indices["ffff"] == MAX_VALUES - 1


@pytest.mark.parametrize(
    ("values", "other", "absent"),
    [(MAX_VALUES + 1, "", ""), (MAX_VALUES, "rest", ""), (MAX_VALUES, "", "nothing")],
)
def test_one_value_more_is_refused(values: int, other: str, absent: str) -> None:
    labels = [format(i, "x") for i in range(values)]
    mechanism = OptimisedUnary.calibrate(MAX_VALUES, ONE)
    with pytest.raises(InvalidContract, match="not 65537") as caught:
        verify(metric(mechanism, labels, other, absent))
    assert caught.value.field == "values"


def test_a_bundle_of_more_than_4_mib_is_not_looked_at() -> None:
    fits = bundle(certificate_authority=bytes(MAX_BUNDLE_BYTES - 500))
    assert MAX_BUNDLE_BYTES - 300 < len(sign(fits)) <= MAX_BUNDLE_BYTES
    Bundle.verify(sign(fits), operator_key=KEY)
    larger = bundle(certificate_authority=bytes(MAX_BUNDLE_BYTES))
    with pytest.raises(MalformedBundle, match="larger than 4,194,304 bytes"):
        Bundle.verify(sign(larger), operator_key=KEY)


def test_four_megabytes_of_anything_are_refused_at_once() -> None:
    for byte in (b"\0", b"\x0a", b"\x0b", b"\x80", b"\xff"):
        with pytest.raises(MalformedBundle):
            Bundle.verify(byte * MAX_BUNDLE_BYTES, operator_key=KEY)


# -- Open domains -------------------------------------------------------------------------


def test_an_open_domain_has_an_index_for_every_text() -> None:
    domain = verify(open_metric()).metrics[NAME].domain
    assert (domain.k, domain.labels, domain.other, domain.absent) == (OPEN_PRIME, (), None, None)
    texts = ["a", "b", "a ", " a", "A", "\n", "\0", "é", "e\u0301", "x" * 256]
    indices = [domain.index_of(text) for text in texts]
    assert len({*indices}) == len(texts)
    assert all(index is not None and 0 <= index < OPEN_PRIME for index in indices)


def test_absent_in_an_open_domain_is_a_text_as_any_other() -> None:
    domain = verify(open_metric(absent="no answer")).metrics[NAME].domain
    assert domain.labels == ("no answer",)
    assert domain.absent == domain.index_of(None) == domain.index_of("no answer")
    assert verify(open_metric()).metrics[NAME].domain.index_of(None) is None


OPEN = parse_metric(open_metric()).domain


@given(st.text(max_size=300))
def test_a_text_of_256_bytes_or_less_is_an_answer(text: str) -> None:
    assert (OPEN.index_of(text) is not None) == (0 < len(text.encode()) <= 256)


def test_a_payload_of_an_open_domain_names_no_label() -> None:
    checked = verify(open_metric(absent="no answer")).metrics[NAME]
    assert isinstance(checked.mechanism, LocalHashing)
    assert checked.supported(checked.mechanism.randomise(7, SYSTEM)) == ()
    assert verify().metrics[NAME].supported(b"\x01") == ("good",)


# -- Files and keys -----------------------------------------------------------------------


def test_a_bundle_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(sign(bundle()))
    assert Bundle.load(path, operator_key=KEY) == verify()
    assert Bundle.load(str(path), operator_key=(KEY,)) == verify()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Bundle.load(tmp_path / "none", operator_key=KEY)


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(MalformedBundle, match="larger"):
        Bundle.load("/dev/zero", operator_key=KEY)


def test_an_operator_key_as_text() -> None:
    assert operator_key_bytes(KEY) == OPERATOR.public_key().public_bytes_raw()


@pytest.mark.parametrize(
    "text",
    ["", KEY[8:], KEY[:-1], KEY + "0", KEY.upper(), KEY + "\n", " " + KEY, "ed25519:" + "g" * 64],
    ids=range(8),
)
def test_anything_else_is_no_operator_key(text: str) -> None:
    with pytest.raises(ValueError, match="an operator key is"):
        operator_key_bytes(text)
    with pytest.raises(ValueError, match="an operator key is"):
        Bundle.verify(sign(bundle()), operator_key=text)


# -- What is proved, and when -------------------------------------------------------------


def test_a_metric_that_is_not_private_can_be_looked_at() -> None:
    """`certify` shows what is wrong with it; a device never gets hold of it."""
    contract = metric(RandomisedResponse.calibrate(4, Epsilon.parse("2")))
    seen = read_metric(contract)
    assert not seen.certificate.holds
    with pytest.raises(PrivacyNotProved) as caught:
        parse_metric(contract)
    assert caught.value.metric == NAME
    assert f"ε = {seen.certificate.realised}" in caught.value.reason


@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("epsilon", ["0.000000000001", "0.5", "1", "ln 3", "ln 9", "8"])
def test_thresholds_are_accepted_up_to_the_last_integer(epsilon: str, step: int) -> None:
    """step > 0 reveals more."""
    for name in MECHANISMS:
        mechanism: Any = calibrated(name, 4, epsilon)
        threshold, number = next(iter(mechanism.parameters.items()))
        more = -step if threshold in {"flip", "raised"} else step
        mechanism = mechanism._replace(**{threshold: number + more})
        contract = metric(mechanism, epsilon=epsilon)
        if step > 0:
            with pytest.raises(PrivacyNotProved, match="reveal more"):
                parse_metric(contract)
        else:
            assert parse_metric(contract).mechanism == mechanism


@pytest.mark.parametrize("name", MEMOISED)
@pytest.mark.parametrize(("permanent", "epsilon"), [("2", "1"), ("ln 9", "ln 3"), ("8", "0.1")])
def test_rounds_of_a_memo_are_accepted_up_to_the_last_integer(
    name: str, permanent: str, epsilon: str
) -> None:
    """Its rows are the golden vectors' business."""
    epsilons: dict[str, Any] = {"permanent": permanent, "epsilon": epsilon}
    mechanism: Any = memoised(name, 4, **epsilons)
    assert parse_metric(memoised_metric(mechanism, **epsilons)).mechanism == mechanism
    threshold, number = next(iter(mechanism.parameters.items()))
    more = {threshold: number + (-1 if threshold == "flip" else 1)}
    if isinstance(mechanism, MemoisedLocalHashing):
        more = {"chain": mechanism.chain._replace(**more)}
    with pytest.raises(PrivacyNotProved, match="reveal more"):
        parse_metric(memoised_metric(mechanism._replace(**more), **epsilons))


@pytest.mark.parametrize(
    ("contract", "series", "total"),
    [
        (metric(), None, 1),
        (metric(schedule=periodic(DAY, 365, DAY)), None, 365),
        (metric(schedule=periodic(DAY, 365, DAY, join=8)), 8, 8),
        (memoised_metric(memoised("memoised-randomised-response", 4)), 8, 8),
        # Hashed to two cells.
        (memoised_metric(memoised("memoised-local-hashing", 4)), 4, 4),
    ],
    ids=["once", "fresh", "sampled", "memoised", "hashed"],
)
def test_what_all_rounds_cost(contract: bytes, series: int | None, total: int) -> None:
    checked = parse_metric(contract)
    assert checked.total_charge == total * CHARGE_UNIT
    assert checked.series_charge == (None if series is None else series * CHARGE_UNIT)


def test_what_was_verified_cannot_be_changed() -> None:
    checked = verify()
    with pytest.raises(AttributeError):
        checked.endpoint = "elsewhere:1"  # type: ignore[misc]
    with pytest.raises(TypeError):
        checked.metrics["new"] = checked.metrics[NAME]  # type: ignore[index]
    with pytest.raises(AttributeError):
        checked.metrics[NAME].contract = b""  # type: ignore[misc]


def test_the_same_question_differently_signed_keeps_its_digest() -> None:
    """Rotation of keys and moving house change no metric."""
    moved = Bundle.verify(sign(bundle(revision=2, endpoint="other:1")), operator_key=KEY)
    assert moved.metrics[NAME].digest == verify().metrics[NAME].digest


# -- Text ---------------------------------------------------------------------------------

READABLE = [
    *("good", "sehr gut", "très bien", "e\u0301", "отлично", "άριστα", "ممتاز", "עברית"),
    *("می\u200cخواهم", "बहुत अच्छा", "क्\u200dष", "ดีมาก", "很好", "とても良い", "좋음", "ខ្មែរ"),
    *("👍", "👍🏽", "👩\u200d⚕️", "🇫🇷", "🫨", "½", "3–5", "11+", "a\u00a0b"),
    *('"', "\\", "<b>", "a,b", "=1+1"),
]  # fmt: skip


@pytest.mark.parametrize("label", READABLE, ids=ascii)
def test_ordinary_labels_of_all_scripts(label: str) -> None:
    mechanism = RandomisedResponse.calibrate(2, ONE)
    assert verify(metric(mechanism, ["something else", label])).metrics[NAME].domain.k == 2


HIDDEN_CATEGORIES = {"Cc", "Zl", "Zp", "Co"}
BIDI_CONTROLS = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]


def test_no_control_character_and_no_change_of_direction_is_text() -> None:
    mechanism = RandomisedResponse.calibrate(2, ONE)
    hidden = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in HIDDEN_CATEGORIES
    ]
    # Of the 137,468 characters of the private areas, a few.
    for character in hidden[:70] + hidden[70::20_000] + BIDI_CONTROLS:
        for text in (character, f"a{character}b"):
            with pytest.raises(InvalidContract):
                parse_metric(metric(mechanism, ["a", text]))
            with pytest.raises(InvalidContract):
                parse_metric(metric(mechanism, ["a", "b"], question=text))


# -- No bytes whatsoever raise anything but a BundleError ---------------------------------


@settings(max_examples=300)
@given(mutated(BUNDLES) | st.binary(max_size=200))
def test_signed_bytes_are_a_bundle_or_a_bundle_error(content: bytes) -> None:
    try:
        checked = Bundle.verify(sign(content), operator_key=KEY)
    except BundleError:
        return
    assert all(c.holds for metric in checked.metrics.values() for c in metric.certificates)


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_unsigned_bytes_are_a_bundle_error(signed: bytes) -> None:
    with pytest.raises(BundleError):
        Bundle.verify(signed, operator_key=KEY)


TEXTS = st.text(max_size=20) | st.sampled_from(["", "a", "1", "ln 3", "8", "health.self_rated"])
NUMBERS = st.integers(0, (1 << 64) - 1) | st.integers(0, 200_000)
SMALL = st.integers(0, 20)
MESSAGES = st.builds(
    pb.Metric,
    name=TEXTS,
    question=TEXTS,
    source=TEXTS,
    epsilon=TEXTS,
    domain=st.none()
    | st.builds(pb.Domain, values=st.lists(TEXTS), other=TEXTS, absent=TEXTS, open=st.booleans()),
    schedule=st.none()
    | st.builds(pb.Schedule, starts=NUMBERS, once=st.builds(pb.Once, ends=NUMBERS))
    | st.builds(
        pb.Schedule,
        starts=NUMBERS,
        periodic=st.builds(
            pb.Periodic, every=NUMBERS, rounds=NUMBERS, grace=NUMBERS, join=NUMBERS | SMALL
        ),
    ),
    retain=st.booleans(),
    permanent=TEXTS,
)
MECHANISM_FIELDS = (
    st.builds(pb.OptimisedUnary, raised=NUMBERS).map(lambda m: {"optimised_unary": m})
    | st.builds(pb.SubsetSelection, included=NUMBERS, size=NUMBERS | SMALL).map(
        lambda m: {"subset_selection": m}
    )
    | st.builds(
        pb.ProjectiveGeometry, within=NUMBERS, field=NUMBERS | SMALL, dimensions=NUMBERS | SMALL
    ).map(lambda m: {"projective_geometry": m})
    | st.builds(pb.LocalHashing, keep=NUMBERS, buckets=NUMBERS | SMALL, prime=NUMBERS | SMALL).map(
        lambda m: {"local_hashing": m}
    )
    | st.builds(pb.MemoisedOptimisedUnary, flip=NUMBERS, permanent_raised=NUMBERS).map(
        lambda m: {"memoised_optimised_unary": m}
    )
    | st.builds(
        pb.MemoisedLocalHashing,
        keep=NUMBERS,
        permanent_keep=NUMBERS,
        cells=NUMBERS | SMALL,
        dimensions=NUMBERS | SMALL,
    ).map(lambda m: {"memoised_local_hashing": m})
)


@settings(max_examples=150)
@given(
    MESSAGES.map(encode) | st.sampled_from([metric(None), memoised_metric(None)]), MECHANISM_FIELDS
)
def test_any_fields_are_a_metric_or_a_bundle_error(rest: bytes, fields: dict[str, Any]) -> None:
    message = pb.Metric.FromString(rest)
    message.MergeFrom(pb.Metric(**fields))
    contract = encode(message)
    try:
        checked = parse_metric(contract)
    except BundleError:
        return
    assert all(certificate.holds for certificate in checked.certificates)
    assert checked.contract == contract
