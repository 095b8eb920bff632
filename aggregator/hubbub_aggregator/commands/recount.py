"""`hubbub recount`: count an archive's reports again, and see whether it comes to the same."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import MAX_ROUND, FormatOfOne, FormatOfOneOption, KeysOption
from hubbub_aggregator.commands.output import print_json, remark
from hubbub_aggregator.commands.store import open_store
from hubbub_aggregator.some_names import some

if TYPE_CHECKING:
    from hubbub_aggregator.archive.comparing import Comparison, Live
    from hubbub_aggregator.archive.files import Place
    from hubbub_aggregator.archive.reading import ArchivedRound
    from hubbub_aggregator.archive.recount import Recounted


def recount(
    folder: Annotated[Path, typer.Argument(help="The folder of `hubbub serve --archive`.")],
    metric: Annotated[
        str | None, typer.Argument(help="A metric's name; without it all that are there.")
    ] = None,
    *,
    round_number: Annotated[
        int | None,
        typer.Option("--round", min=0, max=MAX_ROUND, help="Which round; without it every one."),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(help="Texts that open domains are asked about, one a line.", readable=False),
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="Compare with this store: a path or URL.")
    ] = None,
    aggregator: Annotated[
        str | None, typer.Option(help="Compare with this private listener, host:port.")
    ] = None,
    keys: KeysOption = None,
    output: FormatOfOneOption = FormatOfOne.TABLE,
) -> None:
    """Count archived reports again, each file checked against its contract.

    It exits 1 if one is damaged, and goes on with the others. With --store or --aggregator it exits
    1 unless what is archived comes to what was counted live.
    """
    from hubbub_aggregator.archive.errors import ArchiveError, require_libraries

    require_libraries()
    # Imported here: no other command needs numpy to say what it does.
    from hubbub_aggregator.archive.reading import open_reader
    from hubbub_aggregator.archive.recount import recount as count
    from hubbub_aggregator.candidates import read_candidates
    from hubbub_aggregator.store import StoreError

    texts = [] if candidates is None else read_candidates(candidates)
    chosen, reports = _chosen(folder, metric, round_number)
    if texts and chosen and not any(archived.metric.domain.open for archived in chosen):
        raise CommandError(
            f"{chosen[0].metric.name} lists its values, which are all counted already; leave out "
            f"--candidates, which are for open domains"
        )
    try:
        with _compared_with(store, aggregator, keys) as lives, closing(open_reader()) as reader:
            for archived in chosen:
                try:
                    recounted = count(archived, reader, texts)
                except (ArchiveError, OSError) as error:
                    reports.append(_failure(archived.place, error, archived.metric.name))
                    continue
                reports.append(_report(recounted, [live.compare(recounted) for live in lives]))
                if output is FormatOfOne.TABLE:
                    _print(reports[-1])
    except StoreError as error:
        raise CommandError(str(error)) from None
    if output is FormatOfOne.JSON:
        print_json({"rounds": reports})
    failed = [report for report in reports if report["error"] is not None]
    for report in failed:
        remark(report["error"])
    differing = [report for report in reports if report["differences"]]
    for report in differing:
        remark(
            f"round {report['round']} of {report['metric']} differs: "
            f"{'; '.join(report['differences'])}"
        )
    if failed or differing:
        raise typer.Exit(1)


def _chosen(
    folder: Path, name: str | None, number: int | None
) -> tuple[list["ArchivedRound"], list[dict[str, Any]]]:
    """The rounds that are asked for, each with its head checked, and what to say of damaged ones.

    Raises CommandError if there are none.
    """
    from hubbub_aggregator.archive.errors import ArchiveError
    from hubbub_aggregator.archive.files import places
    from hubbub_aggregator.archive.reading import open_round

    found: list[ArchivedRound] = []
    failed: list[tuple[Place, Exception]] = []
    for place in places(folder):
        try:
            found.append(open_round(place))
        except (ArchiveError, OSError) as error:
            failed.append((place, error))
    # A damaged file's name is what the others of its metric say, if there are any.
    names = {archived.place.digest: archived.metric.name for archived in found}
    chosen = [archived for archived in found if _asked(archived.place, names, name, number)]
    failures = [
        _failure(place, error, names.get(place.digest))
        for place, error in failed
        if _asked(place, names, name, number)
    ]
    if not chosen and not failures:
        what = "" if number is None else f" of round {number}"
        what += "" if name is None else f" of metric {name!r}"
        there = some(sorted(set(names.values())), name or "")
        there = f", and what is in it: {there}" if names else ""
        raise CommandError(
            f"{folder} holds no reports{what}; give the folder of `hubbub serve --archive`{there}"
        )
    return chosen, failures


def _asked(
    place: "Place", names: Mapping[bytes, str], name: str | None, number: int | None
) -> bool:
    """Whether a file is one of those that are asked for, or may be."""
    return number in {None, place.round} and name in {None, names.get(place.digest, name)}


@contextmanager
def _compared_with(
    store: str | None, aggregator: str | None, keys: Path | None
) -> Generator[list["Live"]]:
    """What the counts are held against; raises CommandError or StoreError."""
    from hubbub_aggregator.archive.comparing import InStore, Published
    from hubbub_aggregator.reader import connect

    lives: list[Live] = []
    with ExitStack() as stack:
        if store is not None:
            lives.append(InStore(stack.enter_context(closing(open_store(store)))))
        if aggregator is not None:
            lives.append(Published(stack.enter_context(connect(aggregator, keys))))
        yield lives


def _report(recounted: "Recounted", comparisons: Sequence["Comparison"]) -> dict[str, Any]:
    archived = recounted.round
    differences = [one.difference for one in comparisons if one.difference is not None]
    gaps = [one.gap for one in comparisons if one.gap is not None]
    return {
        "metric": archived.metric.name,
        "digest": archived.metric.digest.hex(),
        "round": archived.place.round,
        "mechanism": archived.metric.mechanism.name,
        "n": recounted.tally.n,
        "plain": recounted.tally.plain,
        "values": [
            {"value": value, "count": count}
            for value, count in zip(recounted.values, recounted.counts.tolist(), strict=True)
        ],
        "compared": bool(comparisons),
        "differences": differences,
        "gaps": gaps,
        "error": None,
    }


def _failure(place: "Place", error: Exception, name: str | None) -> dict[str, Any]:
    """Of a file that cannot be counted; `name` is its metric's, if that is known."""
    text = str(error)
    if isinstance(error, OSError):
        text = f"{place.path}: {error.strerror or error}"
    return {
        "metric": name,
        "digest": place.digest.hex(),
        "round": place.round,
        "differences": [],
        "error": text,
    }


def _print(report: dict[str, Any]) -> None:
    from hubbub_aggregator.text_table import text_table

    print(f"{report['metric']}, round {report['round']}: n = {report['n']:,}; ", end="")
    print(f"{report['mechanism']}, digest {report['digest'][:16]}…")
    if report["plain"]:
        print(f"{report['plain']:,} of these reports came unsealed: imported, not from a device")
    if report["gaps"] and not report["differences"]:
        print(f"n is the same as counted live; nothing else was compared: {report['gaps'][0]}")
    elif report["compared"] and not report["differences"]:
        print("the same as counted live, bit for bit")
    rows = [(row["value"], f"{row['count']:,}") for row in report["values"]]
    if rows:
        print(text_table(("value", "count"), rows))
    else:
        print("an open domain: name candidates with --candidates FILE")
    print()
