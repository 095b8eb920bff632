"""`hubbub demo`: the whole system on one machine, on people whose answers are known."""

import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.connection import TIMEOUT, private_listener
from hubbub_aggregator.demo import processes
from hubbub_aggregator.demo.fleet import run_fleets
from hubbub_aggregator.demo.people import People, column_of, rand_hie
from hubbub_aggregator.demo.progress import Progress
from hubbub_aggregator.demo.verdict import judge
from hubbub_aggregator.keys import (
    create_keys,
    load_opening_keys,
    load_signing_key,
    read_operator_key,
)
from hubbub_aggregator.signing import sign_definitions


def demo(
    headless: Annotated[
        bool, typer.Option("--headless", help="Without the page; ends by itself.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(help="Another table of people; needs --column.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column whose cells they answer.")] = None,
    epsilon: Annotated[str, typer.Option(help="ε of a report on --column.")] = "1",
) -> None:
    """Turn every row of a table into a device, collect, and compare.

    Without --csv: 20,190 person-years of the RAND Health Insurance Experiment, three
    questions each. Exits with status 1 if a report was lost or counted twice.
    """
    people = _people(csv, column, epsilon)
    _end_on_signals()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-demo-")))
        bundle, path = sign_people(people, folder)
        addresses = stack.enter_context(processes.aggregator(folder, path, folder / "keys"))
        address = None
        if not headless:
            address = stack.enter_context(processes.page(addresses.private))
            print(f"The page: {address} (Ctrl-C ends everything)\n", flush=True)
        print(
            f"{people.count:,} people answer {len(people.answers)} "
            f"question{'s' if len(people.answers) > 1 else ''}, each on a device of their own"
        )
        progress = Progress(people.count)
        delivered = run_fleets(people, bundle, addresses.public, progress.add)
        estimates = _close_and_read(addresses.private, bundle)
        verdict = judge(people, bundle, estimates)
        print(f"\n{verdict.table}\n")
        print(
            f"{verdict.sent:,} reports sent, {verdict.lost:,} lost, {verdict.doubled:,} doubled",
            flush=True,
        )
        if delivered < people.count or verdict.lost or verdict.doubled:
            raise CommandError(
                f"{people.count - delivered:,} devices could not deliver; "
                f"{verdict.lost:,} reports lost, {verdict.doubled:,} doubled"
            )
        if address is not None:
            _stay(address)


def _people(csv: Path | None, column: str | None, epsilon: str) -> People:
    if csv is None and column is None:
        return rand_hie()
    if csv is None or column is None:
        raise CommandError("--csv and --column go together")
    return column_of(csv, column, epsilon)


def sign_people(people: People, folder: Path) -> tuple[Bundle, Path]:
    """A fresh operator's bundle of what these people are asked."""
    keys, now = folder / "keys", time.time()
    create_keys(keys, [], hybrid=False, now=now)
    signed = sign_definitions(
        people.definitions,
        operator=load_signing_key(keys),
        sealing_keys=[key.sealing_key for key in load_opening_keys(keys).values()],
        certificate_authority=(keys / "ca.crt").read_bytes(),
        previous=None,
        now=int(now),
    )
    path = folder / "demo.hubbub"
    path.write_bytes(signed)
    return Bundle.verify(signed, operator_key=read_operator_key(keys)), path


def _close_and_read(private: str, bundle: Bundle) -> dict[str, estimate_pb2.Estimates]:
    """Close every metric's round, which publishes the rest, and read what it says."""
    estimates: dict[str, estimate_pb2.Estimates] = {}
    with private_listener(private, None) as channel:
        admin = estimate_pb2_grpc.AdminServiceStub(channel)
        service = estimate_pb2_grpc.EstimateServiceStub(channel)
        for name in bundle.metrics:
            admin.CloseRound(estimate_pb2.CloseRoundRequest(metric=name), timeout=TIMEOUT)
            answer = service.GetEstimates(
                estimate_pb2.GetEstimatesRequest(metric=name), timeout=TIMEOUT
            )
            estimates[name] = answer.estimates
    return estimates


def _end_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the demo, and all that it started.

    Ctrl-C is set as well, since a shell starts what runs in its background deaf to it.
    """

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        # Not print(), in the midst of which the signal may have come.
        os.write(sys.stdout.fileno(), b"\nending\n")
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _stay(address: str) -> None:
    """Keep the page up until a signal comes."""
    with suppress(KeyboardInterrupt):
        print(f"\nThe page stays at {address}; Ctrl-C ends everything.", flush=True)
        # Not signal.pause(), which sleeps through a signal that came just before it.
        while True:
            time.sleep(0.5)
