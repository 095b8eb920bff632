"""`python -m hubbub`: record one value by hand, or show what this device has given away."""

import argparse
import sys
from collections.abc import Sequence

from hubbub.errors import HubbubError

EXIT_NOT_STORED = 1
EXIT_UNUSABLE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m hubbub", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_record(commands)
    _add_show(commands)
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except HubbubError as error:
        print(f"hubbub: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except (OSError, ValueError) as error:
        # What can be said here is about files and options: a value is never in it.
        print(f"hubbub: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    return status


def _add_record(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
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
    record.set_defaults(run=_record)


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
        metric = client.metric(options.metric)
        outcome = metric.record(sys.stdin.readline().rstrip("\r\n"))
        print(outcome)
        if not outcome:
            return EXIT_NOT_STORED
        if client.flush(options.timeout):
            print("sent")
        else:
            print(
                "the aggregator could not be reached; the report stays here and is sent at the "
                "next start",
                file=sys.stderr,
            )
    return 0


def _add_show(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    show = commands.add_parser(
        "show",
        help="show what was asked, what left, and what it can reveal at most",
        description="Reads a device's ledger and shows, for every metric, the question, its ε "
        "in words, what is spent and left, and every report that left.",
    )
    show.add_argument("state_dir", help="the device's state directory")
    show.set_defaults(run=_show)


def _show(options: argparse.Namespace) -> int:
    from hubbub.ledger import Ledger
    from hubbub.statement import statement

    ledger = Ledger.open_to_read(options.state_dir)
    try:
        print(statement(ledger))
    finally:
        ledger.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
