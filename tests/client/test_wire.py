"""What passes over the line is as much, and at the same moments, whatever a device has to say."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hubbub import Bundle, GrpcTransport
from hubbub.limits import REPORT_ID_BYTES
from hubbub.mechanisms import MECHANISMS
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import HASTY, PATIENCE, PATIENT, Clock, Device, Paced, Receiver, Submission
from tests.processes import ServeProcess
from tests.wiretap import Frame, Wiretap

VALUES = ("a", "of nine values the longest, and by far", *"bcdefgh")
OUTSIDE = "none of them"
DAY = 86_400
# What HPKE adds: a key of X25519, and the tag of AES-GCM.
SEAL_BYTES = 32 + 16


@pytest.fixture(scope="module")
def contracts() -> list[bytes]:
    """Every mechanism, and an open domain."""
    listed = [
        make_metric(name, values=VALUES, absent="nothing", mechanism=name, epsilon="0.5")
        for name in MECHANISMS
    ]
    return [*listed, make_metric("open", open=True, absent="nothing", epsilon="0.5")]


@pytest.fixture(scope="module")
def tapped(
    operator: Operator, contracts: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Wiretap, Bundle]]:
    """A real aggregator, a wiretap before it, and a bundle that leads there."""
    folder = tmp_path_factory.mktemp("tapped")
    file = folder / "metrics.hubbub"
    file.write_bytes(operator.sign(contracts))
    with (
        ServeProcess(operator, file, folder / "store.sqlite3") as serve,
        Wiretap(operator.folder, serve.public) as tap,
    ):
        yield tap, make_bundle(operator, *contracts, endpoint=tap.endpoint)


class Unhurried(GrpcTransport):
    """gRPC writes into each request how much time is left, and shorter what it wrote before.

    Of so long a time it writes whole seconds: here the same within the next half.
    """

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        return super().submit(digest, round_number, key_id, sealed, 1_000.5)


def frames(tap: Wiretap, bundle: Bundle, state: Path, value: Any) -> tuple[list[Frame], ...]:
    """What passes when a device answers everything with one value."""
    transport = Unhurried(bundle.endpoint, bundle.certificate_authority)
    with Device(bundle, state, transport=transport) as device:
        assert all(device.metric(name).record(value) for name in bundle.metrics)
        assert device.flush(PATIENCE)
    transport.close()
    (connection,) = tap.connections
    tap.connections.clear()
    return connection.frames


def test_as_much_passes_for_every_value(tapped: tuple[Wiretap, Bundle], tmp_path: Path) -> None:
    tap, bundle = tapped
    values = [VALUES[0], *VALUES, None, OUTSIDE, ""]
    seen = [
        frames(tap, bundle, tmp_path / str(number), value) for number, value in enumerate(values)
    ]
    # One request a report, in one frame, of the sealed report and what names metric and round.
    requests, answers = seen[0]
    assert [frame.kind for frame in requests] == ["headers", "data"] * len(bundle.metrics)
    assert [frame.kind for frame in answers] == ["headers", "data", "headers"] * len(bundle.metrics)
    sizes = sorted(frame.size for frame in requests if frame.kind == "data")
    sealed = [
        SEAL_BYTES + REPORT_ID_BYTES + metric.mechanism.payload_size
        for metric in bundle.metrics.values()
    ]
    beside = sizes[0] - min(sealed)
    assert sizes == sorted(size + beside for size in sealed)
    for value, passed in zip(values, seen, strict=True):
        assert passed == seen[0], value


SERIES: dict[str, dict[str, Any]] = {
    "sampled": {"join": 3, "epsilon": "0.5"},
    "memoised": {"mechanism": "memoised-optimised-unary", "epsilon": "0.1", "permanent": "0.2"},
}


@pytest.mark.parametrize("chance", [HASTY, PATIENT], ids=["at once", "late"])
@pytest.mark.parametrize("form", SERIES)
def test_a_series_leaves_at_the_same_moments(
    operator: Operator, tmp_path: Path, form: str, chance: Paced
) -> None:
    """Whatever it says, and if it says nothing."""
    contract = make_metric(values=VALUES, absent="nothing", periodic=(DAY, 3, DAY), **SERIES[form])
    bundle = make_bundle(operator, contract)
    histories: list[dict[int, Any]] = [
        {},
        {0: VALUES[0], 1: VALUES[0], 2: VALUES[0]},
        {0: VALUES[1], 1: None, 2: VALUES[-1]},
        {1: OUTSIDE},
    ]
    runs = [
        moments(bundle, tmp_path / str(number), chance, history)
        for number, history in enumerate(histories)
    ]
    assert [number for _, number, _ in runs[0]] == [0, 1, 2]
    assert all(run == runs[0] for run in runs)


def moments(
    bundle: Bundle, state: Path, chance: Paced, history: dict[int, Any]
) -> list[tuple[float, int, int]]:
    """When each report left, for which round, and how many bytes it had.

    The device looks what there is to do every half hour; it records at noon, by day.
    """
    clock, passed = Clock(0), list[tuple[float, int, int]]()

    def count(submission: Submission) -> list[int]:
        passed.append((clock.now, submission.round, len(submission.sealed)))
        return [1]

    receiver = Receiver(*[count] * 3)
    with Device(bundle, state, clock=clock, source=chance, transport=receiver) as device:
        (name,) = bundle.metrics
        handle = device.metric(name)
        for half_hour in range(5 * 48):
            clock.now = half_hour * 1_800
            day, of_day = divmod(half_hour, 48)
            if day in history and of_day == 24:
                assert handle.record(history[day])
            device.flush()
    return passed
