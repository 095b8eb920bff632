"""The settings of `hubbub serve` as flags: for it, and for `hubbub doctor`, which checks them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.logs import LogFormat
from hubbub_aggregator.settings import Settings, SettingsError, load_settings

ServeKeys = Annotated[
    Path | None,
    # What is wrong with the folder, we say ourselves.
    typer.Option("--keys", readable=False, help="The keys folder; operator.key is never read."),
]
Listen = Annotated[
    str | None,
    typer.Option("--listen", help="Where devices report, host:port.  [default: [::]:7443]"),
]
PrivateListen = Annotated[
    str | None,
    typer.Option(
        "--private-listen",
        help="Where estimates are read and rounds closed.  [default: 127.0.0.1:7444]",
    ),
]
MetricsListen = Annotated[
    str | None,
    typer.Option(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Where Prometheus scrapes, over plain HTTP; a port alone is on 127.0.0.1.  "
        "[default: nowhere]",
    ),
]
StoreLocation = Annotated[
    str | None,
    typer.Option("--store", help="A path or URL.  [default: sqlite:///hubbub.sqlite3]"),
]
Archive = Annotated[
    # As it was typed: as a path, nothing would be the folder that one is in.
    str | None,
    typer.Option(
        "--archive",
        metavar="FOLDER",
        help="Where rounds of metrics that retain their reports are written when they close.  "
        "[default: nowhere]",
    ),
]
PublishStep = Annotated[
    int | None,
    typer.Option("--publish-step", help="New reports that a snapshot waits for.  [default: 100]"),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", help="Requests of 16 and more reports worked on at once.  [default: 64]"
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Processes that open batches of sealed reports; one for each core that is to spare.  "
        "[default: 0, in this process]",
    ),
]
TakePlain = Annotated[
    bool | None,
    typer.Option(
        "--take-plain",
        help="Take reports that are not sealed too, to import what was randomised elsewhere; "
        "estimates say how many there were.",
    ),
]
PrivateTls = Annotated[
    bool | None,
    typer.Option(
        "--private-tls",
        help="TLS on the private listener, for clients with a certificate of the keys folder.",
    ),
]
LameDuck = Annotated[
    float | None,
    typer.Option(
        "--lame-duck",
        metavar="SECONDS",
        help="After SIGTERM, how long health says NOT_SERVING while calls are still answered.  "
        "[default: 1]",
    ),
]
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option("--log-format", help="text, or json: an object a line.  [default: text]"),
]
InsecureLoopback = Annotated[
    bool,
    typer.Option("--insecure-loopback", help="No TLS for devices; only on a loopback address."),
]
Config = Annotated[Path | None, typer.Option("--config", help="A TOML file of the same settings.")]


def settings_from(config: Path | None, publish_step: int | None = None, **given: Any) -> Settings:
    """Merge the flags that were given with the environment and the file. Raises CommandError."""
    flags = {name: value for name, value in given.items() if value is not None}
    if publish_step is not None:
        flags["publish"] = {"step": publish_step}
    try:
        return load_settings(flags, config)
    except SettingsError as error:
        raise CommandError(str(error)) from None
