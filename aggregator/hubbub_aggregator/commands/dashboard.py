"""`hubbub dashboard`: the live page."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import AggregatorOption, KeysOption
from hubbub_aggregator.connection import DEFAULT_ADDRESS


def dashboard(
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    address: Annotated[
        str,
        typer.Option(
            help="Address to serve the page on; other than loopback only with one of "
            "--behind-proxy and --login."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The page's port; 0 takes any free one.")] = 8501,
    keys: KeysOption = None,
    *,
    behind_proxy: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="https address at which a reverse proxy serves the page, to those whom it lets "
            "in.",
        ),
    ] = None,
    login: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with the OpenID Connect provider that signs readers in, and who they "
            "are.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM certificate to serve the page with."),
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")
    ] = None,
) -> None:
    """Show live estimates in the browser."""
    if importlib.util.find_spec("streamlit") is None:
        raise CommandError("the page needs Streamlit: pip install 'hubbub[dashboard]'")
    command = [sys.executable, "-m", "hubbub_dashboard"]
    command += ["--aggregator", aggregator, "--address", address, "--port", str(port)]
    given = {
        "--keys": keys,
        "--behind-proxy": behind_proxy,
        "--login": login,
        "--certificate": certificate,
        "--private-key": private_key,
    }
    for flag, value in given.items():
        if value is not None:
            command += [flag, str(value)]
    # The page is a program of its own, which this one must not import; it takes over.
    os.execv(sys.executable, command)  # noqa: S606
