"""`hubbub forget`: delete what was kept of a metric, in its store and in its archive."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands import serve_options as options
from hubbub_aggregator.commands.output import remark
from hubbub_aggregator.commands.store import open_store
from hubbub_aggregator.some_names import some

if TYPE_CHECKING:
    from hubbub.contract import Metric
    from hubbub_aggregator.store import Store

_LEFT: Final = (
    "bytes of what was deleted may be left in the store's files for a while; for PostgreSQL VACUUM "
    "sees to it, for SQLite the same command again"
)


def forget(
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    *,
    store: options.StoreLocation = None,
    archive: options.Archive = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="The counts of closed rounds too: no estimates then.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: options.Config = None,
) -> None:
    """Delete the reports that were kept of a metric's closed rounds; the aggregator may run on.

    What its name means stays bound to it for ever, and closed rounds take no report again. Copies
    elsewhere, such as backups, are yours to delete.
    """
    settings = options.settings_from(config, store=store, archive=archive)
    # Imported here: no other command needs SQLAlchemy to say what it does.
    from hubbub_aggregator.archive.errors import ArchiveError
    from hubbub_aggregator.archive.removal import remove
    from hubbub_aggregator.doctor.store_file import store_path
    from hubbub_aggregator.store import StoreError

    failure: str | None = None
    try:
        with closing(open_store(settings.store)) as opened:
            known = _known(opened, metric)
            if known.retain and settings.archive is None:
                remark("no archive was looked at; give --archive, if `hubbub serve` has one")
            if not _agreed(opened, settings.archive, known, counts=counts, yes=yes):
                # An earlier one may have been stopped before this, or hindered by a reader.
                if not opened.scrub() and store_path(settings.store) is not None:
                    remark(_LEFT)
                return
            found = opened.forget(known.digest, counts=counts)
            try:
                if settings.archive is not None:
                    remove(settings.archive, known.digest, found.open)
            except (ArchiveError, OSError) as error:
                failure = str(error)
            finally:
                gone = opened.scrub()
    except StoreError as error:
        raise CommandError(str(error)) from None
    if failure is None:
        reports = f", with {found.reports:,} reports in the store" if found.reports else ""
        print(f"{metric}: forgotten{reports}")
    if not gone:
        remark(_LEFT)
    if failure is not None:
        raise CommandError(
            f"{metric} is forgotten in the store, with {found.reports:,} reports, but not all of "
            f"it in the archive: {failure}; mend that, and run the same again"
        )


def _known(store: "Store", name: str) -> "Metric":
    known = {metric.name: metric for metric in store.metrics()}
    try:
        return known[name]
    except KeyError:
        raise CommandError(
            f"{store.location} knows no metric {name!r}; it knows: {some(list(known), name)}"
        ) from None


def _agreed(
    store: "Store", archive: Path | None, metric: "Metric", *, counts: bool, yes: bool
) -> bool:
    """Say what there is to delete, and ask. False: nothing is to be done."""
    from hubbub_aggregator.archive.removal import size_of

    kept = store.kept(metric.digest)
    size = 0 if archive is None else size_of(archive, metric.digest, kept.open)
    parts: list[str] = []
    if kept.reports:
        parts.append(f"{kept.reports:,} reports in {store.location}")
    if size:
        parts.append(f"{size:,} bytes in {archive}")
    if counts and kept.counts:
        parts.append(f"the counts of {_rounds(kept.counts)}")
    if not parts:
        print(_nothing(metric, kept.open, counts=counts))
        return False
    if kept.open and (metric.retain or counts):
        remark(
            f"{metric.name} keeps the {_what(metric)} of {_rounds(kept.open)}, which can be "
            f"forgotten when closed"
        )
    print(f"{metric.name}: " + ", and ".join(parts))
    if yes or _confirmed():
        return True
    print(f"{metric.name}: nothing was forgotten")
    return False


def _confirmed() -> bool:
    """Raises CommandError if nobody answers."""
    try:
        return typer.confirm("Delete this for good?")
    except typer.Abort:
        # The question's line has not ended.
        print()
        raise CommandError(
            "nothing was forgotten: nobody answered; --yes answers beforehand"
        ) from None


def _nothing(metric: "Metric", open_rounds: Sequence[int], *, counts: bool) -> str:
    """Why nothing can be forgotten, and what could be done first."""
    if open_rounds and (metric.retain or counts):
        return (
            f"{metric.name}: the {_what(metric)} of {_rounds(open_rounds)} can be forgotten when "
            f"closed; run `hubbub close` first"
        )
    if not metric.retain and not counts:
        return f"{metric.name} keeps no reports; --counts would delete its counts"
    return f"{metric.name}: nothing is kept that could be forgotten"


def _what(metric: "Metric") -> str:
    return "reports" if metric.retain else "counts"


def _rounds(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"round {numbers[0]}"
    return f"{len(numbers):,} rounds from {numbers[0]} to {numbers[-1]}"
