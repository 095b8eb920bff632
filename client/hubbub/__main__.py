"""`python -m hubbub`: record one value by hand, or show what this device has given away."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import TextIO, TypeVar

from hubbub.errors import HubbubError
from hubbub.ledger import Ledger, Status
from hubbub.statement import IN_WORDS, newest, statement

# Nothing was stored, or what was stored will not be counted.
EXIT_NOT_COUNTED = 1
EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130

T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        # Better an escaped ε than none at all.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = _record(options) if options.command == "record" else _show(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever was reading has seen enough; what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_UNUSABLE
    except (HubbubError, OSError, ValueError) as error:
        # What can go wrong here is about files and options: a value is never in it.
        print(f"hubbub: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hubbub", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    record = commands.add_parser(
        "record",
        help="randomise a value read from standard input, and send the report",
        description="Reads the value from standard input, since an argument would show in the "
        "list of processes; randomises it, charges the budget, and sends the noisy report.",
    )
    record.add_argument("bundle", help="the signed bundle")
    record.add_argument("metric", help="the metric's name")
    record.add_argument(
        "--operator-key", action="append", required=True, help="ed25519:… (repeatable)"
    )
    record.add_argument("--state-dir", required=True, help="where this device keeps its ledger")
    record.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="SOURCE=EPSILON",
        help="the most a source may ever spend, e.g. health=8 (repeatable)",
    )
    record.add_argument(
        "--timeout", type=float, default=10.0, help="seconds to try sending for (default 10)"
    )
    show = commands.add_parser(
        "show",
        help="show what was asked, what left, and what it can reveal at most",
        description="Reads a device's ledger and shows, for every metric, the question, its ε "
        "in words, what is spent and left, and every report that left.",
    )
    show.add_argument("state_dir", help="the device's state directory")
    return parser


def _record(options: argparse.Namespace) -> int:
    from hubbub.client import Client

    budgets: dict[str, str] = {}
    for declared in options.budget:
        source, equals, epsilon = declared.partition("=")
        if not equals:
            raise ValueError(f"--budget must be SOURCE=EPSILON, such as health=8, not {declared!r}")
        budgets[source] = epsilon
    with Client(
        options.bundle,
        operator_key=options.operator_key,
        state_dir=options.state_dir,
        budgets=budgets,
    ) as client:
        outcome = client.metric(options.metric).record(_value())
        print(outcome)
        if not outcome:
            return EXIT_NOT_COUNTED
        delivered = client.flush(options.timeout)
    if not delivered:
        print("not sent yet; the report stays here, and leaves at the next start", file=sys.stderr)
        return 0
    status = _with_ledger(options.state_dir, lambda ledger: newest(ledger, options.metric))
    print(IN_WORDS[status])
    return 0 if status is Status.COUNTED else EXIT_NOT_COUNTED


def _value() -> str:
    """One line of standard input. What is not text is no label, and the error must not quote it."""
    stdin: TextIO | None = sys.stdin  # None if it was closed.
    line = stdin.buffer.readline() if stdin else b""
    if not stdin or not line:
        raise ValueError("there is no value on standard input")
    return line.decode(stdin.encoding, errors="replace").rstrip("\r\n")


def _show(options: argparse.Namespace) -> int:
    print(_with_ledger(options.state_dir, statement))
    return 0


def _with_ledger(state_dir: str, read: Callable[[Ledger], T]) -> T:
    ledger = Ledger.open_to_read(state_dir)
    try:
        return read(ledger)
    finally:
        ledger.close()


if __name__ == "__main__":
    sys.exit(main())
