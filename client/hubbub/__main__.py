"""`python -m hubbub`: record a value by hand; see what this device has told; switch it off."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final, TextIO

from hubbub.contract import read_metric
from hubbub.errors import HubbubError
from hubbub.ledger import Ledger
from hubbub.outcome import Outcome
from hubbub.printing import for_people, for_programs
from hubbub.rows import Status, Switch
from hubbub.statement import ENGLISH, NEWEST, Statement, Words, statement
from hubbub.statement.metric_section import command

# Nothing was stored, or what was stored will not be counted.
EXIT_NOT_COUNTED = 1
EXIT_UNUSABLE = 2
EXIT_INTERRUPTED = 130

_SWITCHES: Final = {
    "pause": (Switch.PAUSED, "record and send nothing until `resume`; keep what waits"),
    "resume": (Switch.ON, "end a pause"),
    "opt-out": (Switch.OPTED_OUT, "record and send nothing until `opt-in`; delete what was said"),
    "opt-in": (Switch.ON, "end opting out; no budget comes back"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = _parser().parse_args(arguments)
    if sys.stdout is None:
        # It was closed before the start: what is said goes nowhere, and what is done is done.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for_people(sys.stdout)
    try:
        status: int = options.run(options)
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
    _add_record(commands.add_parser("record", help="randomise a value and send the report"))
    state = argparse.ArgumentParser(add_help=False)
    state.add_argument("state_dir", help="the device's state directory")
    spoken = argparse.ArgumentParser(add_help=False, parents=[state])
    spoken.add_argument("--words", metavar="FILE", help="a translation of what `words` prints")
    show = commands.add_parser(
        "show",
        parents=[spoken],
        help="show what was asked, what left, and what it can reveal at most",
        description="Reads a device's ledger and shows, for every metric, the question, its ε "
        "in words, what is spent and left, and the reports that left.",
    )
    show.add_argument("--json", action="store_true", help="everything, for programs")
    show.add_argument("--all", action="store_true", help="every report, not the newest alone")
    show.set_defaults(run=_show)
    export = commands.add_parser(
        "export", parents=[state], help="write everything that `show --json` shows to a new file"
    )
    export.add_argument("file", help="must not be there yet; only its owner may read it")
    export.set_defaults(run=_export)
    for name, (_, help_text) in _SWITCHES.items():
        commands.add_parser(name, parents=[spoken], help=help_text).set_defaults(run=_switch)
    words = commands.add_parser("words", help="print every sentence of `show`, to be translated")
    words.set_defaults(run=_print_words)
    return parser


def _add_record(record: argparse.ArgumentParser) -> None:
    record.description = (
        "Reads the value from standard input, since an argument would show in the list of "
        "processes; randomises it, charges the budget, and sends the noisy report."
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
        "--absent", action="store_true", help="there is nothing to report: read no standard input"
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
        outcome = client.metric(options.metric).record(None if options.absent else _value())
        print(outcome)
        # Even if this was not stored: what was stored before may be due.
        delivered = client.flush(options.timeout)
        if not outcome:
            return 0 if outcome is Outcome.NOT_JOINED else EXIT_NOT_COUNTED
        metrics = {metric.metric: metric for metric in client.statement().metrics}
    report = metrics[options.metric].reports[-1]
    if not delivered:
        print("not sent yet; the report stays here, and leaves at the next start", file=sys.stderr)
        return 0
    print(Words()(f"status.{report.status}", due_at=report.due_at))
    if report.status == "waiting":
        print(
            "a report of a series leaves after its round: when this command runs again then",
            file=sys.stderr,
        )
        return 0
    return 0 if report.status == "counted" else EXIT_NOT_COUNTED


def _value() -> str:
    """One line of standard input. What is not text is no label, and the error must not quote it."""
    stdin: TextIO | None = sys.stdin  # None if it was closed.
    line = stdin.buffer.readline() if stdin else b""
    if not stdin or not line:
        raise ValueError("there is no value on standard input")
    return line.decode(stdin.encoding, errors="replace").rstrip("\r\n")


def _read(state_dir: str) -> Statement:
    with closing(Ledger.open_to_read(state_dir)) as ledger:
        return statement(ledger, now=time.time())


def _words(options: argparse.Namespace) -> Words:
    return Words() if options.words is None else Words.load(options.words)


def _show(options: argparse.Namespace) -> int:
    words, shown = _words(options), _read(options.state_dir)
    if options.json:
        for_programs(sys.stdout)
        print(shown.json())
    else:
        print(shown.text(words, newest=None if options.all else NEWEST))
    return 0


def _export(options: argparse.Namespace) -> int:
    content = _read(options.state_dir).json()
    # Never in place of another file, and for nobody else to read.
    file = open(  # noqa: SIM115
        options.file, "x", encoding="utf-8", opener=lambda path, how: os.open(path, how, 0o600)
    )
    try:
        with file:
            file.write(content + "\n")
    except BaseException:
        # Half of it would be in the way of the next try.
        os.unlink(options.file)
        raise
    return 0


def _switch(options: argparse.Namespace) -> int:
    words, (switch, _) = _words(options), _SWITCHES[options.command]
    # Where there is no ledger none is made: the directory may be a slip of the pen.
    Ledger.open_to_read(options.state_dir).close()
    unless = Switch.OPTED_OUT if options.command in ("pause", "resume") else None
    with closing(Ledger.open(options.state_dir)) as ledger:
        deleted = _to_delete(ledger)
        if ledger.set_switch(switch, int(time.time()), unless=unless) is unless:
            print(words("done.still-opted-out", command=command("opt-in DIR")))
            return 0
    print(words(f"done.{options.command}"))
    if switch is Switch.OPTED_OUT:
        print(words("done.deleted", **deleted))
        print(words("done.stays"))
    return 0


def _to_delete(ledger: Ledger) -> dict[str, int]:
    """How much of a ledger opting out deletes."""
    entries, contracts = ledger.entries(), ledger.contracts()
    return {
        "waiting": sum(entry.status in (Status.WAITING, Status.SENT) for entry in entries),
        "reports": sum(entry.report is not None for entry in entries),
        "memos": sum(
            enrolment.secret is not None
            and read_metric(contracts[enrolment.metric]).memoised is not None
            for enrolment in ledger.enrolments()
        ),
    }


def _print_words(_: argparse.Namespace) -> int:
    for_programs(sys.stdout)
    print(json.dumps(dict(ENGLISH), ensure_ascii=False, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
