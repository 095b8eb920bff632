# ruff: noqa: S311  chance decides what is sent twice, not what is secret
"""Crowds that send whatever happens, and every report of which can be found again.

Every crafted report raises one bit that no other report raises, so afterwards each count
says how often one report was counted.
"""

import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import grpc

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeProcess

TIMEOUT = 30
COUNTED = report_pb2.REPORT_STATUS_COUNTED
DUPLICATE = report_pb2.REPORT_STATUS_DUPLICATE

BUCKETS = 4_096
BATCH = 64


@dataclass
class Batch:
    """One request, and the buckets its reports raise."""

    metric: str
    buckets: range
    request: report_pb2.SubmitReportsRequest
    acknowledged: bool = False


@dataclass
class Crowd:
    """Senders of batches who do not give up, or do, but never send anything else."""

    operator: Operator
    batches: Sequence[Batch]
    addresses: Sequence[str]
    """Of aggregators that share a store, each as good as the other."""
    give_up: float = 0.0
    """Probability that a failed batch is never sent again."""
    send_twice: float = 0.0
    """Probability that an acknowledged batch is sent once more."""
    stop: threading.Event = field(default_factory=threading.Event)

    def start(self, senders: int) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._send_all, args=(random.Random(i), i, senders))
            for i in range(senders)
        ]
        for thread in threads:
            thread.start()
        return threads

    def wait_for(self, share: float) -> None:
        """Return when this share of the batches is acknowledged, or after two seconds."""
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if sum(batch.acknowledged for batch in self.batches) >= share * len(self.batches):
                return
            time.sleep(0.001)

    def _send_all(self, chance: random.Random, first: int, senders: int) -> None:
        for batch in self.batches[first::senders]:
            while not self.stop.is_set() and not batch.acknowledged:
                batch.acknowledged = self._send(batch, chance.choice(self.addresses))
                if not batch.acknowledged and chance.random() < self.give_up:
                    break
                if batch.acknowledged and chance.random() < self.send_twice:
                    self._send(batch, chance.choice(self.addresses))

    def _send(self, batch: Batch, address: str) -> bool:
        # A channel each time: one that saw the aggregator die would wait before it looks again.
        credentials = grpc.ssl_channel_credentials((self.operator.folder / "ca.crt").read_bytes())
        with grpc.secure_channel(
            address, credentials, (("grpc.use_local_subchannel_pool", 1),)
        ) as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            try:
                answer = stub.SubmitReports(batch.request, timeout=5)
            except grpc.RpcError:
                self.stop.wait(0.05)
                return False
        assert set(answer.statuses) <= {COUNTED, DUPLICATE}
        return True


def crafted(bundle: Bundle, metric: str, buckets: range) -> Batch:
    """A batch of one-hot reports, each in a bucket of its own."""
    size = bundle.metrics[metric].mechanism.payload_size
    reports = [(os.urandom(16), (1 << bucket).to_bytes(size, "little")) for bucket in buckets]
    return Batch(metric, buckets, make_request(bundle, metric, reports))


def close_and_count(serve: ServeProcess, metric: str) -> list[int]:
    """Close a metric's round; how often each bucket was counted."""
    options = (("grpc.max_receive_message_length", 64 << 20),)
    with grpc.insecure_channel(serve.private, options) as channel:
        admin = estimate_pb2_grpc.AdminServiceStub(channel)
        admin.CloseRound(estimate_pb2.CloseRoundRequest(metric=metric), timeout=TIMEOUT)
        answer = estimate_pb2_grpc.EstimateServiceStub(channel).GetEstimates(
            estimate_pb2.GetEstimatesRequest(metric=metric), timeout=TIMEOUT
        )
    counts = [row.count for row in answer.estimates.values]
    assert sum(counts) == answer.estimates.n
    return counts


def assert_each_once(serve: ServeProcess, batches: Sequence[Batch]) -> None:
    """Every bucket is 0 or 1, and 1 wherever the aggregator said so."""
    for metric in {batch.metric for batch in batches}:
        counts = close_and_count(serve, metric)
        assert set(counts) <= {0, 1}
        for batch in batches:
            if batch.metric == metric and batch.acknowledged:
                assert all(counts[bucket] == 1 for bucket in batch.buckets)


def bundle_of(operator: Operator, metrics: int) -> Bundle:
    """Metrics m0, m1, … with a value for each bucket."""
    values = [f"bucket {i}" for i in range(BUCKETS)]
    return make_bundle(
        operator,
        *(make_metric(f"m{i}", values=values, mechanism="optimised-unary") for i in range(metrics)),
    )


def batch_after_batch(bundle: Bundle, metric: str) -> Iterator[Batch]:
    for start in range(0, BUCKETS, BATCH):
        yield crafted(bundle, metric, range(start, start + BATCH))


def all_batches(bundle: Bundle, metrics: Sequence[str]) -> list[Batch]:
    batches = [batch for metric in metrics for batch in batch_after_batch(bundle, metric)]
    random.Random(1).shuffle(batches)
    return batches
