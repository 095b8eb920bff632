"""`hubbub serve`: the aggregator, from a signed bundle to a clean end."""

import logging
import time
from pathlib import Path
from typing import Annotated

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.settings import SettingsError, load_settings


def serve(
    bundle: Annotated[Path, typer.Argument(help="The signed bundle to put in force.")],
    *,
    keys: Annotated[
        Path | None, typer.Option(help="The keys folder; operator.key is never read.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(help="Where devices report, host:port.  [default: [::]:7443]")
    ] = None,
    private_listen: Annotated[
        str | None,
        typer.Option(help="Where estimates are read and rounds closed.  [default: 127.0.0.1:7444]"),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="A path or URL.  [default: sqlite:///hubbub.sqlite3]"),
    ] = None,
    publish_step: Annotated[
        int | None,
        typer.Option(help="New reports that a snapshot waits for.  [default: 100]"),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Requests worked on at once.  [default: 64]")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that open batches of sealed reports; one for each core that is to "
            "spare.  [default: 0, in this process]"
        ),
    ] = None,
    take_plain: Annotated[
        bool | None,
        typer.Option(
            "--take-plain",
            help="Take reports that are not sealed too, to import what was randomised elsewhere; "
            "estimates say how many there were.",
        ),
    ] = None,
    private_tls: Annotated[
        bool | None,
        typer.Option(
            "--private-tls",
            help="TLS on the private listener, for clients with a certificate of the keys folder.",
        ),
    ] = None,
    insecure_loopback: Annotated[
        bool,
        typer.Option("--insecure-loopback", help="No TLS for devices; only on a loopback address."),
    ] = False,
    config: Annotated[Path | None, typer.Option(help="A TOML file of the same settings.")] = None,
) -> None:
    """Collect reports for a signed bundle until told to stop.

    Flags go before HUBBUB_* in the environment, and those before --config.
    """
    logging.basicConfig(format="%(levelname)s: %(message)s")
    given = {
        "keys": keys,
        "listen": listen,
        "private_listen": private_listen,
        "store": store,
        "publish": None if publish_step is None else {"step": publish_step},
        "threads": threads,
        "workers": workers,
        "take_plain": take_plain,
        "private_tls": private_tls,
    }
    flags = {name: value for name, value in given.items() if value is not None}
    try:
        settings = load_settings(flags, config)
    except SettingsError as error:
        raise CommandError(str(error)) from None
    # Imported here: no other command needs numpy, scipy and SQLAlchemy to say what it does.
    from hubbub_aggregator.process import run

    run(bundle, settings, insecure_loopback=insecure_loopback, clock=time.time)
