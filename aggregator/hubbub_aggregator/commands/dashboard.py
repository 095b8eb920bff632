"""`hubbub dashboard`: the live page."""

import importlib.util
import os
import sys
from typing import Annotated

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import AggregatorOption, KeysOption
from hubbub_aggregator.connection import DEFAULT_ADDRESS


def dashboard(
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    port: Annotated[int, typer.Option(help="The page's port, on this machine only.")] = 8501,
    keys: KeysOption = None,
) -> None:
    """Show live estimates in the browser."""
    if importlib.util.find_spec("streamlit") is None:
        raise CommandError("the page needs Streamlit: pip install 'hubbub[dashboard]'")
    command = [sys.executable, "-m", "hubbub_dashboard"]
    command += ["--aggregator", aggregator, "--port", str(port)]
    if keys is not None:
        command += ["--keys", str(keys)]
    # The page is a program of its own, which this one must not import; it takes over.
    os.execv(sys.executable, command)  # noqa: S606
