"""A certificate that is renewed while the listeners run; faults in it change nothing."""

import logging
import shutil
import signal
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator import tls
from hubbub_aggregator.connection import open_channel
from hubbub_aggregator.keys import KeysError, add_certificates
from hubbub_aggregator.tls import ServerCertificate
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import soon
from tests.processes import ServeProcess
from tests.typed import typed

TIMEOUT = 30
YEAR = 31_536_000


@pytest.fixture
def keys(operator: Operator, tmp_path: Path) -> Path:
    shutil.copytree(operator.folder, tmp_path / "keys")
    return tmp_path / "keys"


@pytest.fixture
def certificate(keys: Path, monkeypatch: pytest.MonkeyPatch) -> ServerCertificate:
    monkeypatch.setattr(tls, "_PATIENCE", 0.0)
    return ServerCertificate(keys, time.time)


def renew(keys: Path, now: float | None = None) -> bytes:
    add_certificates(keys, [], now=time.time() if now is None else now)
    return (keys / "server.crt").read_bytes()


class TestLooking:
    def test_takes_a_new_pair(self, keys: Path, certificate: ServerCertificate) -> None:
        new = renew(keys, time.time() + 86_400)
        assert certificate.look().certificate == new
        later = x509.load_pem_x509_certificate(new).not_valid_after_utc.timestamp()
        assert certificate.expires() == later

    @pytest.mark.parametrize("name", ["server.key", "server.crt"])
    @pytest.mark.parametrize("fault", ["mismatching", "cut", "gone"])
    def test_keeps_the_old_one_for_a_faulty(
        self,
        keys: Path,
        certificate: ServerCertificate,
        caplog: pytest.LogCaptureFixture,
        *,
        name: str,
        fault: str,
    ) -> None:
        old = certificate.look()
        kept = (keys / name).read_bytes()
        new = renew(keys)
        whole = (keys / name).read_bytes()
        if fault == "gone":
            (keys / name).unlink()
        else:
            (keys / name).write_bytes(kept if fault == "mismatching" else whole[:100])
        for _ in range(3):
            assert certificate.look() is old
        (record,) = caplog.records
        assert "the old certificate stays in use" in record.getMessage()
        assert record.levelno == logging.ERROR
        # Mended, without anything else having to happen.
        (keys / name).write_bytes(whole)
        assert certificate.look().certificate == new

    def test_keeps_the_old_one_for_an_expired(
        self, keys: Path, certificate: ServerCertificate, caplog: pytest.LogCaptureFixture
    ) -> None:
        old = certificate.look()
        renew(keys, time.time() - 2 * YEAR)
        assert certificate.look() is old
        assert "has expired already" in caplog.text

    def test_says_nothing_of_what_is_mended_at_once(
        self,
        keys: Path,
        certificate: ServerCertificate,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Key and certificate are renamed one after the other."""
        monkeypatch.setattr(tls, "_PATIENCE", 60.0)
        whole = (keys / "server.crt").read_bytes()
        (keys / "server.crt").unlink()
        certificate.look()
        (keys / "server.crt").write_bytes(whole)
        certificate.look()
        assert not caplog.records

    def test_a_faulty_pair_is_none_to_begin_with(self, keys: Path) -> None:
        (keys / "server.crt").write_text("half")
        with pytest.raises(KeysError, match="not whole"):
            ServerCertificate(keys, time.time)


def served(address: str) -> bytes:
    """The certificate that a new connection gets, DER."""
    host, _, port = address.rpartition(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))


class TestListening:
    @pytest.fixture
    def serve(self, keys: Path, operator: Operator, tmp_path: Path) -> Iterator[ServeProcess]:
        path = tmp_path / "metrics.hubbub"
        path.write_bytes(make_bundle(operator, make_metric()).signed)
        mine = Operator(keys, operator.signing_key)
        with ServeProcess(mine, path, tmp_path / "s", flags=["--private-tls"]) as serve:
            yield serve

    def test_new_connections_get_the_new_one(self, serve: ServeProcess, keys: Path) -> None:
        with open_channel(serve.private, keys) as before:
            _list(before)
            first = served(serve.public)
            assert typed("keygen", keys, "--new-certificate").returncode == 0
            second = ssl.PEM_cert_to_DER_cert((keys / "server.crt").read_text())
            assert first != second
            assert soon(lambda: served(serve.public) == second)
            # The private listener too, for a client with the new certificate or the old.
            with open_channel(serve.private, keys) as after:
                _list(after)
            _list(before)
        assert serve.terminate() == 0
        renewed = [line for line in serve.lines if "get the new certificate" in line]
        assert len(renewed) == 1

    def test_sighup_ends_nothing(self, serve: ServeProcess) -> None:
        serve.send(signal.SIGHUP)
        assert served(serve.public)
        assert serve.terminate() == 0


def _list(channel: object) -> None:
    stub = estimate_pb2_grpc.EstimateServiceStub(channel)  # type: ignore[arg-type]
    stub.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
