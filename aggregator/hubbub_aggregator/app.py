"""The commands, and how whatever goes wrong in one of them is told."""

import os
import sys

import typer

from hubbub.errors import HubbubError
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.certify import certify
from hubbub_aggregator.commands.close import close
from hubbub_aggregator.commands.dashboard import dashboard
from hubbub_aggregator.commands.demo import demo
from hubbub_aggregator.commands.estimate import estimate
from hubbub_aggregator.commands.keygen import keygen
from hubbub_aggregator.commands.serve import serve
from hubbub_aggregator.commands.sign import sign
from hubbub_aggregator.definitions import DefinitionError
from hubbub_aggregator.keys import KeysError
from hubbub_aggregator.signing import ChangedDefinition

app = typer.Typer(
    name="hubbub",
    help="Learn how often each value occurs among many devices, while no report tells "
    "whether it is true.\n\n"
    "A device's own commands are `python -m hubbub record` and `python -m hubbub show`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich would keep the line ends of a docstring, and take "[::]" for markup.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (keygen, sign, certify, serve, dashboard, estimate, close, demo):
    app.command()(command)


def run() -> None:
    """Run a command; whatever goes wrong is one line that a person can act on."""
    try:
        app()
    except (CommandError, KeysError, DefinitionError, ChangedDefinition, HubbubError) as error:
        sys.exit(f"hubbub: {error}")
    except BrokenPipeError:
        # Whoever read our output has gone (`hubbub … | head`); nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"hubbub: {where}{error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(130)
