"""The demo's devices: each a real client with a ledger of its own.

They share a verified bundle and a transport, one for each core of this machine: Python
computes on one core, and sealing 60,000 reports is work for all of them.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from itertools import repeat
from typing import Final

from hubbub.bundle import Bundle
from hubbub.client import Client
from hubbub.exact import charge_text
from hubbub.limits import MAX_CHARGE_PER_SOURCE
from hubbub.transport import GrpcTransport, Transport
from hubbub_aggregator.demo.gateway import Gateway
from hubbub_aggregator.demo.people import People

# A device waits for the commit that makes its report durable; meanwhile others work.
AT_ONCE: Final = 64
# Few enough that progress shows, enough that threads are seldom idle.
_PEOPLE_PER_TASK: Final = 300
# Far longer than a report takes: whatever is not counted then is lost.
_FLUSH_SECONDS: Final = 60.0


class _WaitOutside:
    """A transport for devices that take turns: whoever waits for the network gives up its own.

    Threads that all compute hand Python's interpreter on at every SQLite call, which makes
    each device cost two to three times as much.
    """

    def __init__(self, transport: Transport, turn: threading.Lock) -> None:
        self._transport = transport
        self._turn = turn
        self.destination = transport.destination
        self.fetch_bundle = transport.fetch_bundle
        self.close = transport.close

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        self._turn.release()
        try:
            return self._transport.submit(digest, round_number, key_id, sealed, timeout)
        finally:
            self._turn.acquire()


class Fleet:
    """Devices that take turns in one process."""

    def __init__(self, bundle: Bundle, transport: Transport) -> None:
        self._bundle = bundle
        self._turn = threading.Lock()
        self._transport = _WaitOutside(transport, self._turn)
        budget = charge_text(MAX_CHARGE_PER_SOURCE)
        self._budgets = {metric.source: budget for metric in bundle.metrics.values()}

    def answer(self, metrics: Sequence[str], people: Sequence[Sequence[str | None]]) -> int:
        """Give every person a device, let it answer and send; return how many delivered all."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="device") as pool:
            return sum(pool.map(self._one, repeat(metrics), people))

    def _one(self, metrics: Sequence[str], answers: Sequence[str | None]) -> bool:
        with (
            self._turn,
            Client(
                self._bundle,
                operator_key=self._bundle.operator,
                state_dir=None,
                budgets=self._budgets,
                transport=self._transport,
            ) as device,
        ):
            stored = [
                bool(device.metric(metric).record(answer))
                for metric, answer in zip(metrics, answers, strict=True)
            ]
            return device.flush(_FLUSH_SECONDS) and all(stored)


def run_fleets(
    people: People, bundle: Bundle, address: str, progress: Callable[[int], None]
) -> int:
    """Let everybody answer, on all cores; return how many devices delivered all they had.

    `progress` is called with how many more devices are done.
    """
    metrics = list(people.answers)
    everybody = list(zip(*people.answers.values(), strict=True))
    delivered = 0
    pool = ProcessPoolExecutor(
        os.cpu_count(),
        # A fork would copy gRPC's threads half-way through what they are doing.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_process,
        initargs=(bundle.signed, bundle.operator, address),
    )
    try:
        tasks: dict[Future[int], int] = {}
        for start in range(0, len(everybody), _PEOPLE_PER_TASK):
            some = everybody[start : start + _PEOPLE_PER_TASK]
            tasks[pool.submit(_answer, metrics, some)] = len(some)
        for task in as_completed(tasks):
            delivered += task.result()
            progress(tasks[task])
    finally:
        pool.shutdown(cancel_futures=True)
    return delivered


# This process's part, where the pool started it.
_fleet: Fleet | None = None


def _start_process(signed: bytes, operator: str, address: str) -> None:
    global _fleet  # noqa: PLW0603 (how a process of a pool keeps what it was started with)
    # Ctrl-C is for the demo, which ends its processes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bundle = Bundle.verify(signed, operator_key=operator)
    _fleet = Fleet(bundle, Gateway(GrpcTransport(address, bundle.certificate_authority)))


def _answer(metrics: Sequence[str], people: Sequence[Sequence[str | None]]) -> int:
    if _fleet is None:
        raise RuntimeError("the pool did not start this process")
    return _fleet.answer(metrics, people)
