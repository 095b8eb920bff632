"""Newer bundles over the network: signed, never older, told to the owner, and asked for seldom."""

from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome
from hubbub.ledger import Ledger
from hubbub.rows import BundleRecord
from hubbub.transport import Refused
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import HASTY, Clock, Device, Receiver, entries, unreachable
from tests.processes import ServeProcess

DAY = 86_400
PERIODIC = (DAY, 100, DAY)


def daily(name: str = "health.self_rated") -> bytes:
    return make_metric(name, periodic=PERIODIC, epsilon="0.1")


def bundles(state: Path) -> list[BundleRecord]:
    ledger = Ledger.open_to_read(str(state))
    try:
        return ledger.bundles()
    finally:
        ledger.close()


def record_and_send(device: hubbub.Client, name: str = "health.self_rated") -> Outcome:
    outcome = device.metric(name).record("good")
    device.flush(0.5)
    return outcome


def test_a_newer_bundle_is_asked_for_once_a_day_and_taken(
    operator: Operator, tmp_path: Path
) -> None:
    first = make_bundle(operator, daily())
    newer = make_bundle(operator, daily(), daily("more"), revision=2)
    receiver, clock = Receiver(), Clock(500)
    receiver.bundle = newer.signed
    with Device(first, tmp_path, clock=clock, transport=receiver) as device:
        record_and_send(device)
        assert receiver.fetches == 0
        clock.now += DAY
        record_and_send(device)
        assert receiver.fetches == 1
        # In force at once: a metric of it can be asked for.
        assert record_and_send(device, "more") is Outcome.STORED
        clock.now += DAY - 1
        record_and_send(device)
        assert receiver.fetches == 1
        clock.now += 1
        record_and_send(device, "more")
        assert receiver.fetches == 2
    # And after a restart, though the app still brings the first.
    with Device(first, tmp_path, clock=clock, transport=receiver) as device:
        clock.now += DAY
        assert record_and_send(device, "more") is Outcome.STORED
    records = bundles(tmp_path)
    assert [(record.revision, record.fetched) for record in records] == [(1, False), (2, True)]
    assert records[1].signed == newer.signed
    assert records[1].adopted_at == 500 + DAY


def test_a_metric_that_a_newer_bundle_drops_is_no_longer_asked(
    operator: Operator, tmp_path: Path
) -> None:
    receiver, clock = Receiver(), Clock(500)
    receiver.bundle = make_bundle(operator, daily("other"), revision=2).signed
    with Device(
        make_bundle(operator, daily()), tmp_path, clock=clock, transport=receiver
    ) as device:
        handle = device.metric("health.self_rated")
        clock.now += DAY
        assert handle.record("good")
        device.flush()
        clock.now += DAY
        assert handle.record("good") is Outcome.NOT_ASKED_NOW
        with pytest.raises(hubbub.UnknownMetric):
            device.metric("health.self_rated")


def test_what_is_not_newer_or_not_the_operator_s_changes_nothing(
    operator: Operator, tmp_path: Path
) -> None:
    stranger = Operator.create(tmp_path / "stranger")
    first = make_bundle(operator, daily(), revision=5)
    offers = [
        make_bundle(operator, daily(), revision=4).signed,
        make_bundle(operator, daily(), daily("more"), revision=5).signed,
        make_bundle(stranger, daily(), revision=6).signed,
        make_bundle(operator, make_metric(epsilon="2", periodic=PERIODIC), revision=6).signed,
        first.signed[:-1],
        b"",
        b"\xff" * 100,
    ]
    receiver, clock = Receiver(), Clock(500)
    with Device(first, tmp_path / "state", clock=clock, transport=receiver) as device:
        for offer in offers:
            receiver.bundle = offer
            clock.now += DAY
            assert record_and_send(device) is Outcome.STORED
    assert receiver.fetches == len(offers)
    assert [record.revision for record in bundles(tmp_path / "state")] == [5]
    assert len(entries(tmp_path / "state")) == len(offers)


def test_it_is_asked_for_at_once_where_the_aggregator_has_another(
    operator: Operator, tmp_path: Path
) -> None:
    """After a rotation of keys: the report is sealed to the new one, and counted."""
    other = Operator.create(tmp_path / "other")
    receiver = Receiver(Refused("UNKNOWN_KEY"))
    rotated = make_bundle(operator, daily(), revision=2, sealing_keys=other.sealing_keys)
    receiver.bundle = rotated.signed
    with Device(
        make_bundle(operator, daily()), tmp_path / "state", transport=receiver, source=HASTY
    ) as device:
        device.metric("health.self_rated").record("good")
        assert device.flush(5)
    before, after = receiver.submissions
    assert receiver.fetches == 1
    assert after.key_id == other.sealing_keys[0].key_id != before.key_id


def test_by_a_clock_set_back_it_is_asked_for_as_well(operator: Operator, tmp_path: Path) -> None:
    receiver, clock = Receiver(), Clock(500 + 10 * DAY)
    with Device(
        make_bundle(operator, make_metric(), daily("b")), tmp_path, clock=clock, transport=receiver
    ) as device:
        clock.now -= 5 * DAY
        record_and_send(device)
    assert receiver.fetches == 1


def test_nothing_is_asked_where_nothing_was_sent(operator: Operator, tmp_path: Path) -> None:
    receiver, clock = unreachable(), Clock(500)
    with Device(
        make_bundle(operator, daily()), tmp_path, clock=clock, transport=receiver
    ) as device:
        for _ in range(3):
            clock.now += DAY
            record_and_send(device)
    assert receiver.fetches == 0


def test_the_aggregator_hands_out_the_very_bytes(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, daily())
    (tmp_path / "metrics.hubbub").write_bytes(bundle.signed)
    with ServeProcess(operator, tmp_path / "metrics.hubbub", tmp_path / "store") as serve:
        transport = hubbub.GrpcTransport(serve.public, bundle.certificate_authority)
        assert transport.fetch_bundle(30) == bundle.signed
        transport.disconnect()
        assert transport.fetch_bundle(30) == bundle.signed
        transport.close()
        with pytest.raises(Refused):
            transport.fetch_bundle(30)
