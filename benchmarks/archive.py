"""Archiving: how long a round's closing holds up all counting, and what memory it takes.

Reports of an open domain at ε = 1, of 40 bytes with their ids, counted into an SQLite store in
commits of 10,000 and closed with an archive; then recounted, and compared with the store. Each
number of reports has a process of its own, whose memory before the closing is not counted.

Run as `python benchmarks/archive.py`; it takes half a minute.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

# The operator and the contract are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hubbub_aggregator.archive.comparing import Comparison, InStore
from hubbub_aggregator.archive.files import places
from hubbub_aggregator.archive.reading import open_reader, open_round
from hubbub_aggregator.archive.recount import recount
from hubbub_aggregator.archive.writing import Archive
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.store import Batch, Store, as_ids
from tests.bundles import Operator, make_bundle, make_metric

REPORTS: Final = (1_000_000, 5_000_000)
LIMIT_MEGABYTES: Final = 200
_COMMIT: Final = 10_000
_NOW: Final = 1_000.0


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<58} {figure:>12}  {note}".rstrip(), flush=True)


def memory(which: str) -> float:
    """What the kernel says of this process, in MB: VmRSS is now, VmHWM the most there was."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{which}:")[2].split()[0]) * 1024 / 1e6


def show(reports: int, folder: Path) -> None:
    """Count, close and recount so many; `folder`: an empty one."""
    bundle = make_bundle(
        Operator.create(folder / "keys"),
        make_metric("open", open=True, epsilon="1", source="open", periodic=(60, 1, 60)),
    )
    metric = bundle.metrics["open"]
    oracle, size = oracle_for(metric.mechanism), metric.mechanism.payload_size
    first = metric.mechanism.reports.to_bytes(size, "big")[0]
    with closing(Store(str(folder / "store"), writer=1, publish_step=reports)) as store:
        store.adopt(bundle, now=time.time())
        left = reports
        while left:
            n = min(left, _COMMIT)
            payloads = np.frombuffer(bytearray(os.urandom(n * size)), np.uint8).reshape(n, size)
            # What is below in its first byte is below, and so what the mechanism can make.
            payloads[:, 0] %= first
            batch = Batch(
                digest=metric.digest,
                round=0,
                ids=as_ids(os.urandom(16 * n)),
                fold=lambda new, some=payloads: oracle.fold(some[new]),
                retain=lambda new, some=payloads: some[new].tobytes(),
            )
            store.commit([batch], now=_NOW)
            left -= n
        archive = Archive(folder / "archive")
        before = memory("VmRSS")
        # Begins VmHWM anew.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        began = time.perf_counter()
        store.close_round(
            metric.digest, 0, now=_NOW, keep=lambda kept: archive.write(metric, 0, kept)
        )
        took = time.perf_counter() - began
        above = memory("VmHWM") - before
        line(f"closing {reports:,} reports, seconds", f"{took:.1f}")
        line("  at most above before, MB", f"{above:.0f}", f"limit {LIMIT_MEGABYTES}")
        (place,) = places(folder / "archive")
        line("  its file, MB", f"{place.path.stat().st_size / 1e6:.0f}")
        began = time.perf_counter()
        with closing(open_reader()) as reader:
            recounted = recount(open_round(place), reader)
        same = InStore(store).compare(recounted) == Comparison()
        took = time.perf_counter() - began
        line(
            "  recounting and comparing, seconds", f"{took:.1f}", "the same" if same else "DIFFERS"
        )


def main() -> None:
    spawning = multiprocessing.get_context("spawn")
    for reports in REPORTS:
        with tempfile.TemporaryDirectory() as folder:
            process = spawning.Process(target=show, args=(reports, Path(folder)))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
