"""Starting and stopping `hubbub serve`: everything it refuses, each in a sentence of its own."""

import ctypes
import shutil
import signal
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub.errors import HubbubError
from hubbub.v1 import contract_pb2, estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.connection import open_channel
from hubbub_aggregator.keys import KeysError, add_certificates, add_sealing_key
from hubbub_aggregator.process import run
from hubbub_aggregator.settings import load_settings
from hubbub_aggregator.store import Store
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import COMMAND, ServeFailed, ServeProcess

TIMEOUT = 30


@pytest.fixture
def keys(operator: Operator, tmp_path: Path) -> Operator:
    """A keys folder of the test's own, to be changed at will."""
    shutil.copytree(operator.folder, tmp_path / "keys")
    return Operator(tmp_path / "keys", operator.signing_key)


@pytest.fixture
def bundle(keys: Operator, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(make_bundle(keys, make_metric()).signed)
    return path


def refusal(
    operator: Operator,
    bundle: Path,
    store: Path,
    *,
    insecure_loopback: bool = False,
    **settings: object,
) -> str:
    """The sentence with which serving a bundle is refused."""
    merged = load_settings(
        {
            "keys": operator.folder,
            "store": str(store),
            "listen": "127.0.0.1:0",
            "private_listen": "127.0.0.1:0",
            **settings,
        },
        None,
    )
    with pytest.raises((CommandError, HubbubError, KeysError)) as raised:
        run(bundle, merged, insecure_loopback=insecure_loopback, clock=time.time)
    text = str(raised.value)
    assert "\n" not in text
    return text


def put_in_force(bundle: Bundle, store: Path) -> None:
    """Leave a store behind that has seen this bundle."""
    with closing(Store(str(store), writer=1, publish_step=1)) as opened:
        opened.adopt(bundle, now=0)


def test_a_signal_that_another_thread_gets_ends_it_too(
    keys: Operator, bundle: Path, tmp_path: Path
) -> None:
    """The system may hand a process's signal to any of its threads."""
    with ServeProcess(keys, bundle, tmp_path / "store.sqlite3") as serve:
        other = next(
            int(t.name)
            for t in Path(f"/proc/{serve.pid}/task").iterdir()
            if int(t.name) != serve.pid
        )
        assert ctypes.CDLL(None).tgkill(serve.pid, other, signal.SIGTERM) == 0
        assert serve.wait() == 0


class TestIntroduction:
    def test_says_where_what_and_until_when(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        with ServeProcess(keys, bundle, tmp_path / "store.sqlite3") as serve:
            assert serve.terminate() == 0
        text = "\n".join(serve.lines)
        digest = make_bundle(keys, make_metric()).metrics["health.self_rated"].digest
        assert "public   127.0.0.1:" in text
        assert "private  127.0.0.1:" in text
        assert f"metric   health.self_rated  digest {digest.hex()[:16]}…  ε = 1" in text
        assert f"store    {tmp_path}/store.sqlite3" in text
        assert "certificate  until 20" in text
        assert "renew it soon" not in text
        assert serve.lines[-1] == "stopped; in this run: no reports"

    def test_warns_before_the_certificate_ends(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        add_certificates(keys.folder, [], now=time.time() - 380 * 86_400)
        with ServeProcess(keys, bundle, tmp_path / "store.sqlite3") as serve:
            assert any("(16 days); renew it soon" in line for line in serve.lines)

    def test_never_reads_the_operators_private_key(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        (keys.folder / "operator.key").unlink()
        with ServeProcess(keys, bundle, tmp_path / "store.sqlite3") as serve:
            assert serve.lines[-1] == "ready"


class TestBundles:
    def test_wrong_signature(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        signed = bytearray(bundle.read_bytes())
        signed[-1] ^= 1
        bundle.write_bytes(signed)
        assert "not signed by the operator key" in refusal(keys, bundle, tmp_path / "s")

    def test_foreign_operator(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        put_in_force(make_bundle(keys, make_metric()), tmp_path / "s")
        stranger = Operator.create(tmp_path / "stranger")
        bundle.write_bytes(make_bundle(stranger, make_metric(), revision=2).signed)
        text = refusal(stranger, bundle, tmp_path / "s")
        assert f"everything kept here belongs to {keys.key}" in text

    def test_lower_revision(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        put_in_force(make_bundle(keys, make_metric(), revision=2), tmp_path / "s")
        text = refusal(keys, bundle, tmp_path / "s")
        assert "has revision 1, but 2 has been in force" in text

    def test_changed_definition(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        put_in_force(make_bundle(keys, make_metric()), tmp_path / "s")
        changed = make_metric(epsilon="2")
        bundle.write_bytes(make_bundle(keys, changed, revision=2).signed)
        assert "a changed question needs a new name" in refusal(keys, bundle, tmp_path / "s")

    def test_a_threshold_nudged_past_the_bound(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        metric = contract_pb2.Metric.FromString(make_metric())
        metric.randomised_response.keep += 1
        bundle.write_bytes(keys.sign([metric.SerializeToString(deterministic=True)]))
        text = refusal(keys, bundle, tmp_path / "s")
        assert "health.self_rated" in text
        assert "reveal more than the declared ε" in text

    def test_metrics_of_an_older_bundle_still_count(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        old = make_bundle(keys, make_metric())
        put_in_force(make_bundle(keys, make_metric()), tmp_path / "s")
        bundle.write_bytes(make_bundle(keys, make_metric("another"), revision=2).signed)
        with (
            ServeProcess(keys, bundle, tmp_path / "s") as serve,
            serve.public_channel() as public,
            serve.private_channel() as private,
        ):
            stub = report_pb2_grpc.ReportServiceStub(public)
            answer = stub.SubmitReports(make_request(old, "health.self_rated"), timeout=TIMEOUT)
            assert answer.statuses == [report_pb2.REPORT_STATUS_COUNTED]
            estimates = estimate_pb2_grpc.EstimateServiceStub(private)
            metrics = estimates.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
        listed = {metric.name: metric.listed for metric in metrics.metrics}
        assert listed == {"another": True, "health.self_rated": False}


class TestKeys:
    def test_a_key_the_bundle_does_not_list(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        added = add_sealing_key(keys.folder, hybrid=False, now=time.time())
        text = refusal(keys, bundle, tmp_path / "s")
        assert f"sealing key {added.key_id.hex()}, which the bundle does not list" in text

    def test_a_listed_key_that_is_missing(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        add_sealing_key(keys.folder, hybrid=False, now=time.time())
        bundle.write_bytes(make_bundle(keys, make_metric()).signed)
        min(keys.folder.glob("sealing-*.key")).unlink()
        assert "does not hold it" in refusal(keys, bundle, tmp_path / "s")

    def test_no_certificate(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        (keys.folder / "server.crt").unlink()
        assert "server.crt: No such file" in refusal(keys, bundle, tmp_path / "s")

    def test_an_expired_certificate(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        add_certificates(keys.folder, [], now=time.time() - 500 * 86_400)
        text = refusal(keys, bundle, tmp_path / "s")
        assert "server.crt expired on" in text
        assert "--new-certificate" in text


class TestAddresses:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::]"])
    @pytest.mark.parametrize("listener", ["listen", "private_listen"])
    def test_a_taken_port(
        self, keys: Operator, bundle: Path, tmp_path: Path, *, listener: str, host: str
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"{host}:{taken.getsockname()[1]}"
            text = refusal(keys, bundle, tmp_path / "s", private_tls=True, **{listener: address})
        assert f"cannot listen on {address}" in text
        # Refused before anything was put in force.
        assert not (tmp_path / "s").exists()

    def test_a_port_another_aggregator_has(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        with ServeProcess(keys, bundle, tmp_path / "one") as serve:
            text = refusal(keys, bundle, tmp_path / "two", listen=serve.public)
        assert f"cannot listen on {serve.public}" in text

    def test_plaintext_for_devices_needs_loopback(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        text = refusal(keys, bundle, tmp_path / "s", listen="0.0.0.0:0", insecure_loopback=True)
        assert "--insecure-loopback needs a loopback address" in text

    def test_plaintext_on_loopback_when_asked_for(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        (keys.folder / "server.crt").unlink()
        with (
            ServeProcess(keys, bundle, tmp_path / "s", flags=["--insecure-loopback"]) as serve,
            grpc.insecure_channel(serve.public) as channel,
        ):
            stub = report_pb2_grpc.CatalogServiceStub(channel)
            answer = stub.GetBundle(report_pb2.GetBundleRequest(), timeout=TIMEOUT)
        assert answer.signed_bundle.SerializeToString() == bundle.read_bytes()

    def test_the_private_listener_beyond_loopback_needs_tls(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        text = refusal(keys, bundle, tmp_path / "s", private_listen="0.0.0.0:0")
        assert "add --private-tls or use a loopback address" in text

    def test_private_tls_wants_a_client_certificate(
        self, keys: Operator, bundle: Path, tmp_path: Path
    ) -> None:
        request = estimate_pb2.ListMetricsRequest()
        with ServeProcess(
            keys,
            bundle,
            tmp_path / "s",
            private_listen="0.0.0.0:0",
            flags=["--private-tls"],
        ) as serve:
            with open_channel(serve.private, keys.folder) as channel:
                stub = estimate_pb2_grpc.EstimateServiceStub(channel)
                assert len(stub.ListMetrics(request, timeout=TIMEOUT).metrics) == 1
            run = subprocess.run(
                [
                    *(COMMAND, "estimate", "health.self_rated"),
                    *("--aggregator", serve.private, "--keys", str(keys.folder)),
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            assert "first snapshot needs 100 reports" in run.stdout
            strangers = [
                grpc.insecure_channel(serve.private),
                grpc.secure_channel(
                    serve.private,
                    grpc.ssl_channel_credentials((keys.folder / "ca.crt").read_bytes()),
                ),
                open_channel(serve.private, Operator.create(tmp_path / "stranger").folder),
            ]
            for channel in strangers:
                stub = estimate_pb2_grpc.EstimateServiceStub(channel)
                with channel, pytest.raises(grpc.RpcError) as raised:
                    stub.ListMetrics(request, timeout=TIMEOUT)
                assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


class TestStores:
    def test_a_missing_folder(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        text = refusal(keys, bundle, tmp_path / "missing" / "s")
        assert "cannot be created: No such file or directory" in text

    def test_something_else(self, keys: Operator, bundle: Path, tmp_path: Path) -> None:
        (tmp_path / "diary").write_text("Dear diary\n" * 1_000)
        assert "is no SQLite database" in refusal(keys, bundle, tmp_path / "diary")


def test_the_pure_python_parser_is_refused(keys: Operator, bundle: Path, tmp_path: Path) -> None:
    """And that a refusal is one line and a failure for whoever started the command."""
    environment = {"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    with pytest.raises(ServeFailed) as raised:
        ServeProcess(keys, bundle, tmp_path / "s", environment=environment)
    assert str(raised.value).startswith("hubbub: protobuf runs without its compiled parser")
    assert "\n" not in str(raised.value)


def test_settings_come_from_the_file_too(keys: Operator, bundle: Path, tmp_path: Path) -> None:
    config = tmp_path / "hubbub.toml"
    config.write_text("[publish]\nstepp = 3\n")
    run = subprocess.run(
        [COMMAND, "serve", str(bundle), "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr == "hubbub: unknown setting 'publish.stepp'\n"
