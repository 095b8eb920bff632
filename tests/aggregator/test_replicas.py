# ruff: noqa: S311  chance decides when to kill, not what is secret
"""Several aggregators, one database, and whatever may happen to any of them: each report once."""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hubbub.bundle import Bundle
from tests import postgres
from tests.bundles import Operator
from tests.chaos import Fate, Proxy
from tests.crowds import Batch, Crowd, all_batches, assert_each_once, bundle_of
from tests.processes import ServeProcess

# What is short; `make soak` takes every one.
ON_THE_NEWEST = pytest.mark.parametrize("server", [postgres.NEWEST], indirect=True)

Strike = Callable[[random.Random], None]


class Replicas:
    """Aggregators that share a store, each at an address of its own."""

    def __init__(self, operator: Operator, bundle: Path, store: str, count: int) -> None:
        self._operator = operator
        self._bundle = bundle
        self._store = store
        self.running = [self._start("127.0.0.1:0") for _ in range(count)]
        self.addresses = [one.public for one in self.running]

    def _start(self, listen: str) -> ServeProcess:
        return ServeProcess(self._operator, self._bundle, self._store, listen=listen)

    def kill_one(self, chance: random.Random) -> None:
        """Kill any of them, and start it again."""
        place = chance.randrange(len(self.running))
        self.running[place].kill()
        self.running[place].__exit__()
        self.running[place] = self._start(self.addresses[place])

    def close(self) -> None:
        for one in self.running:
            one.__exit__()


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return bundle_of(operator, 25)


@pytest.fixture
def bundle_path(bundle: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


@contextmanager
def replicas(operator: Operator, bundle: Path, store: str, count: int) -> Iterator[Replicas]:
    with ExitStack() as stack:
        made = Replicas(operator, bundle, store, count)
        stack.callback(made.close)
        yield made


@contextmanager
def sending(
    operator: Operator, them: Replicas, batches: Sequence[Batch], addresses: Sequence[str]
) -> Iterator[tuple[Crowd, list[threading.Thread]]]:
    """While a crowd sends, the body; then every bucket is 0 or 1, and 1 where that was said."""
    crowd = Crowd(operator, batches, addresses, give_up=0.01, send_twice=0.05)
    threads = crowd.start(senders=4)
    try:
        yield crowd, threads
        for thread in threads:
            thread.join(240)
        assert not any(thread.is_alive() for thread in threads)
    finally:
        crowd.stop.set()
    assert sum(batch.acknowledged for batch in batches) > 0.8 * len(batches)
    assert_each_once(them.running[0], batches)


def strike_and_count(
    operator: Operator, batches: Sequence[Batch], them: Replicas, strike: Strike, *, times: int
) -> None:
    """Strike so many times while a crowd sends; each report counts once."""
    chance = random.Random(3)
    with sending(operator, them, batches, them.addresses) as (crowd, threads):
        for number in range(times):
            crowd.wait_for((number + chance.random()) / (times + 4))
            threads[0].join(chance.uniform(0.0, 0.02))
            strike(chance)


def metrics(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


@ON_THE_NEWEST
def test_killed_five_times(
    operator: Operator, bundle: Bundle, bundle_path: Path, database: str
) -> None:
    with replicas(operator, bundle_path, database, 3) as them:
        strike_and_count(operator, all_batches(bundle, metrics(2)), them, them.kill_one, times=5)


@pytest.mark.soak
def test_one_aggregator_killed_fifty_times(
    operator: Operator, bundle: Bundle, bundle_path: Path, location: str
) -> None:
    with replicas(operator, bundle_path, location, 1) as them:
        strike_and_count(operator, all_batches(bundle, metrics(25)), them, them.kill_one, times=50)


@pytest.mark.soak
def test_replicas_killed_fifty_times(
    operator: Operator, bundle: Bundle, bundle_path: Path, database: str
) -> None:
    with replicas(operator, bundle_path, database, 3) as them:
        strike_and_count(operator, all_batches(bundle, metrics(25)), them, them.kill_one, times=50)


def kill(server: postgres.Server) -> Strike:
    """Without a word, as the system does that has no memory left."""

    def strike(_: random.Random) -> None:
        server.stop(signal.SIGKILL)
        deadline = time.monotonic() + 60
        while True:
            try:
                return server.start()
            except AssertionError:
                # Its other processes end when they notice, and before that there is no other.
                if time.monotonic() > deadline:
                    raise

    return strike


@ON_THE_NEWEST
def test_the_database_is_killed_three_times(
    operator: Operator, bundle: Bundle, bundle_path: Path, server: postgres.Server, database: str
) -> None:
    with replicas(operator, bundle_path, database, 2) as them:
        strike_and_count(operator, all_batches(bundle, metrics(2)), them, kill(server), times=3)


@pytest.mark.soak
def test_replicas_whose_database_is_killed_fifty_times(
    operator: Operator, bundle: Bundle, bundle_path: Path, server: postgres.Server, database: str
) -> None:
    with replicas(operator, bundle_path, database, 3) as them:
        strike_and_count(operator, all_batches(bundle, metrics(25)), them, kill(server), times=50)


def through_chaos(
    operator: Operator, them: Replicas, batches: Sequence[Batch], *, silence: float, times: int
) -> None:
    """Each proxy deals out every fate so many times before it calms down; `silence`: seconds."""
    with ExitStack() as stack:
        proxies = [
            stack.enter_context(Proxy(address, random.Random(address), silence=silence))
            for address in them.addresses
        ]
        addresses = [proxy.address for proxy in proxies]
        with sending(operator, them, batches, addresses) as (_, threads):
            while any(thread.is_alive() for thread in threads) and any(
                proxy.fates[fate] < times for proxy in proxies for fate in Fate
            ):
                time.sleep(0.02)
            for proxy in proxies:
                proxy.calm = True
        for proxy in proxies:
            assert all(proxy.fates[fate] >= times for fate in Fate)


def test_a_bad_network_loses_and_doubles_nothing(
    operator: Operator, bundle: Bundle, bundle_path: Path, tmp_path: Path
) -> None:
    with replicas(operator, bundle_path, str(tmp_path / "s"), 1) as them:
        through_chaos(operator, them, all_batches(bundle, metrics(1)), silence=2, times=1)


@pytest.mark.soak
def test_replicas_behind_a_bad_network(
    operator: Operator, bundle: Bundle, bundle_path: Path, database: str
) -> None:
    with replicas(operator, bundle_path, database, 3) as them:
        through_chaos(operator, them, all_batches(bundle, metrics(25)), silence=60, times=20)
