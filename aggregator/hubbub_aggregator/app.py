"""The commands, and how whatever goes wrong in one of them is told."""

import os
import sys
from importlib import import_module
from typing import Any, Final, cast

import typer
from typer.core import TyperGroup

from hubbub.errors import HubbubError
from hubbub_aggregator.mistakes import Mistake

_HELP: Final = (
    "Learn how often each value occurs among many devices, while no report tells whether it is "
    "true.\n\n"
    "A device's own commands are `python -m hubbub record` and `python -m hubbub show`."
)
_SETTINGS: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    # Rich would keep the line ends of a docstring, and take "[::]" for markup.
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
# In the order in which one needs them; each is a function in a module of its name.
COMMANDS: Final = (
    "keygen",
    "plan",
    "simulate",
    "sign",
    "certify",
    "serve",
    "dashboard",
    "estimate",
    "query",
    "compare",
    "close",
    "status",
    "doctor",
    "backup",
    "recount",
    "forget",
    "health",
    "demo",
)


class _Commands(TyperGroup):
    """Loads a command when it is asked for: some bring numpy and scipy, half a second's start."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # The names, for the list of commands and for whoever mistypes one.
        self.commands = dict.fromkeys(COMMANDS, cast(Any, None))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"hubbub_aggregator.commands.{cmd_name}")
        one = typer.Typer(**_SETTINGS)
        one.command(cmd_name)(getattr(module, cmd_name))
        return typer.main.get_command(one)


app = typer.Typer(name="hubbub", cls=_Commands, help=_HELP, no_args_is_help=True, **_SETTINGS)


@app.callback()
def _hubbub() -> None:
    """What makes it a group, even though no command is registered here."""


def run() -> None:
    """Run a command; whatever goes wrong is one line that a person can act on."""
    try:
        app()
    except (Mistake, HubbubError) as error:
        sys.exit(f"hubbub: {error}")
    except UnicodeEncodeError as error:
        # Text of the command line that is none, or a path from a file that this locale cannot name.
        # It is not shown: it may be a password, in the store's URL.
        sys.exit(
            f"hubbub: something that was typed or set cannot be written in {error.encoding}; type "
            f"UTF-8, in a locale such as LC_ALL=C.UTF-8"
        )
    except BrokenPipeError:
        # Whoever read our output has gone (`hubbub … | head`); nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"hubbub: {where}{error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(130)
