"""`hubbub serve`: the aggregator, from a signed bundle to a clean end."""

import time
from pathlib import Path
from typing import Annotated

import typer

from hubbub.errors import HubbubError
from hubbub_aggregator import logs
from hubbub_aggregator.commands import serve_options as options
from hubbub_aggregator.mistakes import Mistake


def serve(
    bundle: Annotated[Path, typer.Argument(help="The signed bundle to put in force.")],
    *,
    keys: options.ServeKeys = None,
    listen: options.Listen = None,
    private_listen: options.PrivateListen = None,
    store: options.StoreLocation = None,
    archive: options.Archive = None,
    publish_step: options.PublishStep = None,
    threads: options.Threads = None,
    workers: options.Workers = None,
    take_plain: options.TakePlain = None,
    private_tls: options.PrivateTls = None,
    metrics_listen: options.MetricsListen = None,
    lame_duck: options.LameDuck = None,
    log_format: options.LogFormatOption = None,
    insecure_loopback: options.InsecureLoopback = False,
    config: options.Config = None,
) -> None:
    """Collect reports for a signed bundle until told to stop.

    Flags go before HUBBUB_* in the environment, and those before --config.
    """
    settings = options.settings_from(
        config,
        publish_step,
        keys=keys,
        listen=listen,
        private_listen=private_listen,
        store=store,
        archive=archive,
        threads=threads,
        workers=workers,
        take_plain=take_plain,
        private_tls=private_tls,
        metrics_listen=metrics_listen,
        lame_duck=lame_duck,
        log_format=log_format,
    )
    logs.set_up(settings.log_format)
    # Imported here: no other command needs numpy, scipy and SQLAlchemy to say what it does.
    from hubbub_aggregator.process import run

    try:
        run(bundle, settings, insecure_loopback=insecure_loopback, clock=time.time)
    except (Mistake, HubbubError) as error:
        if settings.log_format is logs.LogFormat.TEXT:
            raise
        logs.log_refusal(str(error))
        raise typer.Exit(1) from None
