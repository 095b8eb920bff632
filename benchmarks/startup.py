"""What the SDK costs its host at the start: an import, then a ready client.

Every figure is a median over fresh interpreters, taken in turns, so that a machine that is
busy for a while is busy for both sides of a comparison. Modules are compiled beforehand, as
an installed package's are.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from hubbub_aggregator.commands.demo import sign_people
from hubbub_aggregator.demo.people import rand_hie

RUNS: Final = 31
LIMIT_RATIO: Final = 1.5
LIMIT_MILLISECONDS: Final = 80.0
LIMIT_MEGABYTES: Final = 18.0

_TIMED: Final = """
import sys, time
started = time.perf_counter_ns()
{script}
print((time.perf_counter_ns() - started) / 1e6)
"""
_MEASURED: Final = """
import sys
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1])
before = resident()
{script}
import os
print((resident() - before) * os.sysconf("SC_PAGE_SIZE") / 1e6)
"""
_IMPORT: Final = "import hubbub"
_YARDSTICK: Final = "import dataclasses, logging, threading"
_CLIENT: Final = """
import hubbub
file, key, state, *sources = sys.argv[1:]
budgets = dict.fromkeys(sources, "8")
client = hubbub.Client(file, operator_key=key, state_dir=state, budgets=budgets)
"""


class Interpreters:
    """Fresh interpreters that share a folder of compiled modules."""

    def __init__(self, compiled: Path) -> None:
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def figure(self, template: str, script: str, *arguments: str) -> float:
        ran = subprocess.run(
            [sys.executable, "-c", template.format(script=script), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(ran.stdout)


def memory(compiled: Path, *arguments: str) -> float:
    """Resident megabytes (10^6 bytes) of a ready client over a bare interpreter.

    `arguments`: bundle, operator key, state directory and sources.
    """
    interpreters = Interpreters(compiled)
    interpreters.figure(_MEASURED, _CLIENT, *arguments)
    return interpreters.figure(_MEASURED, _CLIENT, *arguments)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiled = folder / "compiled"
        figure = Interpreters(compiled).figure
        bundle, file = sign_people(rand_hie(), folder)
        sources = {metric.source for metric in bundle.metrics.values()}

        def arguments(state: str) -> tuple[str, ...]:
            return str(file), bundle.operator, str(folder / state), *sources

        imports: list[float] = []
        yardsticks: list[float] = []
        first_starts: list[float] = []
        starts: list[float] = []
        for run in range(RUNS + 1):
            imports.append(figure(_TIMED, _IMPORT))
            yardsticks.append(figure(_TIMED, _YARDSTICK))
            first_starts.append(figure(_TIMED, _CLIENT, *arguments(f"new{run}")))
            starts.append(figure(_TIMED, _CLIENT, *arguments("kept")))
        for figures in (imports, yardsticks, first_starts, starts):
            # The first was there to compile.
            del figures[0]
        megabytes = memory(compiled, *arguments("kept"))
    ratio = median(imports) / median(yardsticks)
    print(f"{_IMPORT:<44} {median(imports):6.1f} ms")
    print(f"{_YARDSTICK:<44} {median(yardsticks):6.1f} ms")
    print(f"{'  ratio':<44} {ratio:6.2f}     limit {LIMIT_RATIO}")
    for what, times in (("first start", first_starts), ("later", starts)):
        label = f"a ready client and its imports, {what}"
        print(f"{label:<44} {median(times):6.1f} ms  limit {LIMIT_MILLISECONDS:g}")
    print(f"{'  over a bare interpreter':<44} {megabytes:6.1f} MB  limit {LIMIT_MEGABYTES:g}")


if __name__ == "__main__":
    main()
