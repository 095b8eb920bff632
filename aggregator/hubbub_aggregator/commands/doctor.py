"""`hubbub doctor`: what would keep an aggregator from running, or from running much longer."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from hubbub_aggregator.commands import serve_options as options
from hubbub_aggregator.commands.options import FormatOfOne, FormatOfOneOption
from hubbub_aggregator.commands.output import print_json
from hubbub_aggregator.doctor.findings import Finding, Level
from hubbub_aggregator.settings import Settings


def doctor(
    bundle: Annotated[
        Path | None, typer.Argument(help="The signed bundle that is served, or will be.")
    ] = None,
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
    output: FormatOfOneOption = FormatOfOne.TABLE,
) -> None:
    """Check everything that `hubbub serve` needs, with its settings; change nothing.

    A line for each thing looked at: ok, warning or problem, and what to do. Exits 1 if there
    is a problem. An aggregator may run meanwhile: it is asked how it is.
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
    findings: list[Finding] = []
    for finding in _look(bundle, settings, insecure_loopback=insecure_loopback):
        findings.append(finding)
        if output is FormatOfOne.TABLE:
            # At once: a large store takes a while to read.
            print(f"{finding.level:8} {finding.subject:13} {finding.text}", flush=True)
    counts = Counter(finding.level for finding in findings)
    if output is FormatOfOne.JSON:
        print_json({"findings": [finding._asdict() for finding in findings]})
    else:
        print(f"\nproblems: {counts[Level.PROBLEM]}, warnings: {counts[Level.WARNING]}")
    if counts[Level.PROBLEM]:
        raise typer.Exit(1)


def _look(path: Path | None, settings: Settings, *, insecure_loopback: bool) -> Iterator[Finding]:
    # Imported here: what these bring takes half a second, which `hubbub --help` need not wait for.
    from hubbub_aggregator.doctor.examination import examine

    return examine(path, settings, insecure_loopback=insecure_loopback, clock=time.time)
