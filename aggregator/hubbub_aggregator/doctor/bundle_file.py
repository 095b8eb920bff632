"""The bundle: whose it is, and whether this folder opens what is sealed for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

from hubbub.bundle import Bundle
from hubbub.errors import HubbubError
from hubbub_aggregator.catalogue import Catalogue, RoundState
from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.keys import read_operator_key
from hubbub_aggregator.mistakes import Mistake
from hubbub_aggregator.process import opening_keys

_bundle = About("bundle")


def load_bundle(path: Path, folder: Path) -> Bundle | Finding:
    """Verified with the folder's operator key, or why that cannot be."""
    try:
        return Bundle.load(path, operator_key=read_operator_key(folder))
    except (Mistake, HubbubError) as error:
        return _bundle.problem(str(error))
    except OSError as error:
        return _bundle.problem(f"cannot read {path}: {error.strerror}; give its path")


def look_at_bundle(bundle: Bundle, folder: Path, clock: Callable[[], float]) -> Iterator[Finding]:
    yield _bundle.ok(f"revision {bundle.revision}, {len(bundle.metrics)} metric(s), signed")
    yield from _bundle.looking(lambda: _sealing(bundle, folder))
    if not any(_takes_reports(bundle, clock())):
        yield _bundle.warning(
            "no metric in it takes reports now: all its rounds are over, or are still to come"
        )


def _sealing(bundle: Bundle, folder: Path) -> Iterator[Finding]:
    keys = opening_keys(bundle, folder)
    yield _bundle.ok(f"all {len(keys)} sealing key(s) that it lists are in {folder}")


def _takes_reports(bundle: Bundle, now: float) -> Iterator[bool]:
    for metric in Catalogue(bundle, bundle.metrics.values()).by_name.values():
        newest = metric.newest_begun(now)
        yield newest is not None and metric.state(newest, now) is RoundState.OPEN
