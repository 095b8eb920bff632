"""From a value on a device to a durable count: reports a second, and what limits them.

Whole devices (a client each: ledger, randomiser, seal, upload, close) of one process against a
real `hubbub serve` over TLS with SQLite, one report to a request. Beside it, in the same run,
an empty gRPC server behind the same certificate answering requests of the same size: no
system of this flavour can be faster. Everything shares this machine's cores.
"""

import os
import sys
import tempfile
import time
from concurrent import futures
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.empty_server import empty_server
from hubbub.bundle import Bundle
from hubbub.sealing import seal
from hubbub.transport import GrpcTransport, Refused
from hubbub_aggregator.commands.demo import sign_people
from hubbub_aggregator.demo import processes
from hubbub_aggregator.demo.fleet import AT_ONCE, Fleet
from hubbub_aggregator.demo.people import People, rand_hie

DEVICES = 1_500
ROUNDS = 3


def empty_rate(address: str, bundle: Bundle) -> float:
    """Requests a second that the empty server answers, as many at once as there are devices."""
    transport = GrpcTransport(address, bundle.certificate_authority)
    metric, key = next(iter(bundle.metrics.values())), bundle.sealing_keys[0]
    sealed = seal(key, metric.digest, 0, bytes(16 + metric.mechanism.payload_size))

    def call(_: int) -> None:
        while True:
            # A server that takes a hundred calls at once refuses one before its books are closed
            # on another; devices send it again too.
            with suppress(Refused):
                transport.submit(metric.digest, 0, key.key_id, sealed, 30)
                return

    calls = DEVICES * len(bundle.metrics)
    with futures.ThreadPoolExecutor(AT_ONCE) as pool:
        started = time.perf_counter()
        list(pool.map(call, range(calls)))
        rate = calls / (time.perf_counter() - started)
    transport.close()
    return rate


def device_rate(address: str, bundle: Bundle, people: People) -> float:
    """Reports a second from whole devices to durable counts."""
    transport = GrpcTransport(address, bundle.certificate_authority)
    started = time.perf_counter()
    everybody = list(zip(*people.answers.values(), strict=True))
    delivered = Fleet(bundle, transport).answer(list(people.answers), everybody)
    rate = people.count * len(people.answers) / (time.perf_counter() - started)
    transport.close()
    if delivered != people.count:
        raise SystemExit(f"{people.count - delivered} devices could not deliver")
    return rate


def seal_rate(bundle: Bundle) -> float:
    """HPKE seals a second, one core."""
    metric, key = next(iter(bundle.metrics.values())), bundle.sealing_keys[0]
    count, started = 2_000, time.perf_counter()
    for _ in range(count):
        seal(key, metric.digest, 0, bytes(17))
    return count / (time.perf_counter() - started)


def main() -> None:
    everybody = rand_hie()
    print(f"{DEVICES} devices, {AT_ONCE} at once, {os.cpu_count()} cores, one report a request")
    print(
        f"{'':>8}  {'reports/s':>10}  {'empty server':>12}  {'ratio':>6}  {'seals/s, one core':>18}"
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bundle, path = sign_people(everybody, folder)
        addresses = stack.enter_context(processes.aggregator(folder, path, folder / "keys"))
        _, empty_address = stack.enter_context(empty_server(folder / "keys"))
        for number in range(ROUNDS):
            part = slice(number * DEVICES, (number + 1) * DEVICES)
            people = People(
                everybody.definitions,
                {metric: answers[part] for metric, answers in everybody.answers.items()},
            )
            bare = empty_rate(empty_address, bundle)
            real = device_rate(addresses.public, bundle, people)
            row = f"{real:>10,.0f}  {bare:>12,.0f}  {real / bare:>6.2f}"
            print(f"run {number + 1:>4}  {row}  {seal_rate(bundle):>18,.0f}")
    print("limit: the empty server, whose client shares its cores as ours does")


if __name__ == "__main__":
    main()
