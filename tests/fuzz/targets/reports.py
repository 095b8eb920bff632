"""Reports: only ReportsRefused is raised, and every status is what an independent look says.

An input is a byte and, by that byte modulo 3: payloads of a metric, for its oracle, beneath
sealing; a SubmitReportsRequest; or reports of a metric, which are sealed here.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from google.protobuf.message import DecodeError

from hubbub import Bundle
from hubbub.contract import Metric
from hubbub.limits import CLOCK_SKEW
from hubbub.mechanisms import LocalHashing, Mechanism
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.randomness import SYSTEM
from hubbub.sealing import SUITES, context, overhead, seal
from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.intake import Intake
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.opening import Opening
from hubbub_aggregator.oracles import OpenHashingOracle, Oracle, oracle_for
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.refusals import ReportsRefused
from hubbub_aggregator.store import Store
from tests.fuzz import keys, metrics, scratch
from tests.fuzz.chance import Chance

LONGEST = 2_048
PAYLOADS, REQUEST, SEALED = range(3)
_ID_BYTES = 16
# Of a sealed input: the form, which metric, round and key, and what is done to what was sealed.
_HEAD = 5
# One round is over, two are open, and two have not begun.
NOW = metrics.START + 2 * metrics.EVERY + 200
_MOST_PAYLOADS = 8


class Aggregator(NamedTuple):
    """An intake with a real store behind it."""

    bundle: Bundle
    asked: list[Metric]
    oracles: list[Oracle]
    intake: Intake
    counted: set[tuple[bytes, int, bytes]]
    """Digest, round and id of all that it must have counted."""


@functools.cache
def aggregator() -> Aggregator:
    bundle = metrics.bundle(metrics.contracts()).SerializeToString(deterministic=True)
    verified = Bundle.verify(keys.sign(bundle), operator_key=keys.OPERATOR)
    asked = list(verified.metrics.values())
    # Kept open until the process ends.
    store = Store(str(scratch.folder() / "store"), writer=1, publish_step=100)
    store.adopt(verified, now=NOW)
    clock = float(NOW).__float__
    observations = Observations(clock)
    committer = Committer(store, Announcements(), clock, observations)
    intake = Intake(
        Catalogue(verified, asked),
        {key.key_id: key for key in keys.OPENING},
        Opening(committer.commit, observations.opening),
        committer,
        counters=Counters(),
        observations=observations,
        clock=clock,
        take_plain=True,
    )
    oracles = [oracle_for(metric.mechanism) for metric in asked]
    return Aggregator(verified, asked, oracles, intake, set())


def execute(data: bytes, *, thorough: bool = True) -> None:
    if len(data) < _HEAD:
        return
    match data[0] % 3:
        case form if form == PAYLOADS:
            which = data[1] % len(aggregator().asked)
            _require_counts(aggregator().asked[which], aggregator().oracles[which], data[2:])
        case form if form == REQUEST:
            try:
                request = report_pb2.SubmitReportsRequest.FromString(data[1:])
            except DecodeError:
                # Refused before it comes here.
                return
            _require_statuses(request)
        case _:
            _require_statuses(_sealed(data))


def _sealed(data: bytes) -> report_pb2.SubmitReportsRequest:
    """A request of the reports in an input, and damage to it."""
    _, which, number, key, damage = data[:_HEAD]
    metric = aggregator().asked[which % len(aggregator().asked)]
    opening = keys.OPENING[key % len(keys.OPENING)]
    size = _ID_BYTES + metric.mechanism.payload_size
    plain = data[_HEAD : _HEAD + 8 * size]
    sealed = b"".join(
        seal(opening.sealing_key, metric.digest, number, plain[place : place + size])
        for place in range(0, len(plain) - size + 1, size)
    )
    request = report_pb2.SubmitReportsRequest(
        digest=metric.digest, round=number, key_id=opening.key_id, sealed=sealed
    )
    match damage % 16:
        case 1:
            request.sealed = sealed[:-1] + bytes([sealed[-1] ^ 1]) if sealed else b""
        case 2:
            request.sealed += plain[: damage % 5]
        case 3:
            request.round += 1
        case 4:
            request.sealed += sealed
        case 5:
            request.digest = aggregator().asked[damage % len(aggregator().asked)].digest
        case 6:
            request.key_id = keys.OPENING[1 - key % 2].key_id
    return request


def _require_statuses(request: report_pb2.SubmitReportsRequest) -> None:
    refusal = _refusal(request)
    try:
        statuses = aggregator().intake.submit(request)
    except ReportsRefused as refused:
        assert report_pb2.RefusalReason.Name(refused.reason) == f"REFUSAL_REASON_{refusal}"
        assert refused.message
        return
    assert refusal is None
    assert list(statuses) == list(_statuses(request))


def _refusal(request: report_pb2.SubmitReportsRequest) -> str | None:
    """Why a request must be refused as a whole."""
    metric = _asked(request)
    if metric is None:
        return "UNKNOWN_DIGEST"
    if request.round >= metric.schedule.rounds:
        return "NO_SUCH_ROUND"
    if metric.domain.open:
        opens, closes = metrics.START, NOW + 1
    else:
        opens = metrics.START + request.round * metrics.EVERY
        closes = opens + metrics.EVERY + metrics.GRACE
    if not opens - CLOCK_SKEW <= NOW < closes:
        return "ROUND_CLOSED" if closes <= NOW else "ROUND_NOT_OPEN"
    plain = request.ids or request.payloads
    return (_refusal_of_plain if plain else _refusal_of_sealed)(metric, request)


def _refusal_of_sealed(metric: Metric, request: report_pb2.SubmitReportsRequest) -> str | None:
    key = _key(request)
    if key is None:
        return "UNKNOWN_KEY"
    each = _ID_BYTES + metric.mechanism.payload_size + overhead(key.suite)
    if len(request.sealed) % each or not request.sealed:
        return "WRONG_LENGTH"
    return "TOO_MANY_REPORTS" if len(request.sealed) // each > 1_000 else None


def _refusal_of_plain(metric: Metric, request: report_pb2.SubmitReportsRequest) -> str | None:
    n, rest = divmod(len(request.ids), _ID_BYTES)
    if request.sealed or request.key_id or rest or not n:
        return "WRONG_LENGTH"
    if n > 1_000:
        return "TOO_MANY_REPORTS"
    return None if len(request.payloads) == n * metric.mechanism.payload_size else "WRONG_LENGTH"


def _statuses(
    request: report_pb2.SubmitReportsRequest,
) -> Iterator[report_pb2.ReportStatus.ValueType]:
    metric = _asked(request)
    assert metric is not None
    for report in _opened(metric, request):
        if report is None:
            yield report_pb2.REPORT_STATUS_NOT_OPENED
            continue
        if not is_payload(metric.mechanism, report[_ID_BYTES:]):
            yield report_pb2.REPORT_STATUS_NOT_CANONICAL
            continue
        counted = (metric.digest, request.round, report[:_ID_BYTES])
        if counted in aggregator().counted:
            yield report_pb2.REPORT_STATUS_DUPLICATE
        else:
            aggregator().counted.add(counted)
            yield report_pb2.REPORT_STATUS_COUNTED


def _opened(metric: Metric, request: report_pb2.SubmitReportsRequest) -> Iterator[bytes | None]:
    if request.ids:
        size = metric.mechanism.payload_size
        for number in range(len(request.ids) // _ID_BYTES):
            report_id = request.ids[number * _ID_BYTES : (number + 1) * _ID_BYTES]
            yield report_id + request.payloads[number * size : (number + 1) * size]
        return
    key = _key(request)
    assert key is not None
    info = context(metric.digest, request.round, key.key_id)
    each = _ID_BYTES + metric.mechanism.payload_size + overhead(key.suite)
    for place in range(0, len(request.sealed), each):
        try:
            yield SUITES[key.suite].decrypt(request.sealed[place : place + each], key.private, info)
        except (InvalidTag, ValueError):
            yield None


def _asked(request: report_pb2.SubmitReportsRequest) -> Metric | None:
    return next((one for one in aggregator().asked if one.digest == request.digest), None)


def _key(request: report_pb2.SubmitReportsRequest) -> keys.OpeningKey | None:
    return next((one for one in keys.OPENING if one.key_id == request.key_id), None)


def is_payload(mechanism: Mechanism, payload: bytes) -> bool:
    """Whether the device's half of a mechanism takes a payload for one of its own."""
    return _read(mechanism, payload) is not None


def _read(mechanism: Mechanism, payload: bytes) -> Sequence[int] | None:
    """What the device's half of a mechanism reads in a payload; None: it is none."""
    try:
        # In an open domain the values that a payload supports are countless.
        if isinstance(mechanism, LocalHashing) and mechanism.k == OPEN_PRIME:
            return mechanism.read(payload)
        return mechanism.supported(payload)
    except ValueError:
        return None


def _require_counts(metric: Metric, oracle: Oracle, data: bytes) -> None:
    """Oracle and mechanism agree on which payloads there are, and what they support."""
    mechanism, size = metric.mechanism, oracle.payload_size
    assert size == mechanism.payload_size
    n = min(len(data) // size, _MOST_PAYLOADS)
    payloads = [data[place * size : (place + 1) * size] for place in range(n)]
    rest = data[n * size :]
    assert len(rest) == size or not is_payload(mechanism, rest)
    if not n:
        return
    read = [_read(mechanism, payload) for payload in payloads]
    table = np.frombuffer(b"".join(payloads), np.uint8).reshape(n, size)
    canonical = oracle.canonical(table)
    assert canonical.tolist() == [values is not None for values in read]
    good = [values for values in read if values is not None]
    cells = oracle.fold(table[canonical])
    assert cells.shape == (oracle.cells,)
    assert not cells.size or 0 <= cells.min() <= cells.max() <= len(good)
    if isinstance(oracle, OpenHashingOracle):
        texts = [0, 1, OPEN_PRIME - 1, int.from_bytes(data[:7], "big")]
        supports = oracle.candidate_supports(table[canonical], texts)
        bucket = oracle.mechanism.bucket
        expected = [sum(bucket(seed, text) == said for seed, said in good) for text in texts]
    else:
        supports = oracle.supports(cells)
        expected = [0] * mechanism.k
        for values in good:
            for value in values:
                expected[value] += 1
    assert supports.tolist() == expected


def seeds() -> list[bytes]:
    inputs = []
    for which, metric in enumerate(aggregator().asked):
        payloads = b"".join(_payload(metric) for _ in range(3))
        inputs.append(bytes([PAYLOADS, which]) + payloads + b"\xff" * 3)
        inputs.append(bytes([SEALED, which, 2 * (which < 15), which % 2, 0]) + _reports(metric))
    for which in (0, 3, 15):
        request = _sealed(inputs[2 * which + 1])
        inputs.append(bytes([REQUEST]) + request.SerializeToString())
    return inputs


def _payload(metric: Metric) -> bytes:
    return metric.mechanism.randomise(0, SYSTEM)


def _reports(metric: Metric) -> bytes:
    return b"".join(bytes([number]) * _ID_BYTES + _payload(metric) for number in range(2))


def mutate(data: bytes, chance: Chance) -> bytes:
    if len(data) < _HEAD:
        return chance.octets(data)
    form = data[0] % 3
    if form == SEALED and chance.happens(0.97):
        # Sealing and opening take much longer than anything else here.
        form, data = PAYLOADS, bytes([PAYLOADS]) + data[1:]
    if form == PAYLOADS:
        return _mutated_payloads(data, chance)
    if form == SEALED:
        return data[:1] + _mutated_reports(data[1:], chance)
    try:
        request = report_pb2.SubmitReportsRequest.FromString(data[1:])
    except DecodeError:
        return data[:1] + chance.octets(data[1:])
    _edit(request, chance)
    return data[:1] + request.SerializeToString()


def _mutated_payloads(data: bytes, chance: Chance) -> bytes:
    if chance.happens(0.1):
        # The same bytes, to another oracle.
        return data[:1] + bytes([chance.randrange(32)]) + data[2:]
    metric = aggregator().asked[data[1] % len(aggregator().asked)]
    if chance.happens(0.2):
        return data + _payload(metric)
    return data[:2] + chance.octets(data[2 : 2 + _MOST_PAYLOADS * metric.mechanism.payload_size])


def _mutated_reports(data: bytes, chance: Chance) -> bytes:
    head, reports = bytearray(data[:4]), data[4:]
    if chance.happens(0.4):
        place = chance.randrange(4)
        head[place] = chance.randrange(256) if place == 3 else chance.randrange(6)
        if place == 0:
            head[0] = chance.randrange(16)
            reports = _reports(aggregator().asked[head[0] % len(aggregator().asked)])
        return bytes(head) + reports
    return bytes(head) + chance.octets(reports)


def _edit(request: report_pb2.SubmitReportsRequest, chance: Chance) -> None:
    match chance.randrange(6):
        case 0:
            request.digest = chance.pick(aggregator().asked).digest
        case 1:
            request.digest = chance.octets(request.digest)
        case 2:
            request.round = chance.number(request.round) if chance.happens(0.3) else 2
        case 3:
            request.key_id = chance.pick(keys.OPENING).key_id
        case 4:
            request.key_id = chance.octets(request.key_id)
        case _:
            request.sealed = chance.octets(request.sealed)
