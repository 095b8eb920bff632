"""Fuzzes one target with atheris: python -m tests.fuzz.run TARGET [libFuzzer's options]

What takes long is a finding, as an exception is; libFuzzer writes the input to a file.
"""

import functools
import sys
import time
import zlib
from pathlib import Path

import atheris

_ORACLES = Path(__file__).resolve().parents[2] / "aggregator" / "hubbub_aggregator" / "oracles"
# To watch every step of the reader's and of exact arithmetic's takes twice the time. And atheris
# keeps the result of every comparison that it watches, for ever: of the oracles' those are arrays.
_UNWATCHED = [
    *("hubbub.exact", "hubbub.canonical"),
    *(f"hubbub_aggregator.oracles.{path.stem}" for path in _ORACLES.glob("*.py")),
]
with atheris.instrument_imports(
    include=["hubbub", "hubbub_aggregator"],
    exclude=_UNWATCHED,
    enable_loader_override=False,
):
    from hubbub import exact
    from tests.fuzz import targets
    from tests.fuzz.chance import Chance

    TARGET = targets.target(sys.argv[1])

# Of the processor's time; the code is slowed down by being watched.
_MOST_SECONDS = 1.0
# One in so many inputs is tried with the dearer checks as well, and may take longer for them.
_THOROUGH = 1_024
_MOST_THOROUGH_SECONDS = 5.0


def execute(data: bytes) -> None:
    thorough = zlib.crc32(data) % _THOROUGH == 0
    began = time.process_time()
    TARGET.execute(data, thorough=thorough)
    took = time.process_time() - began
    assert took < (_MOST_THOROUGH_SECONDS if thorough else _MOST_SECONDS), f"took {took:.1f} s"


def mutate(data: bytes, most: int, seed: int) -> bytes:
    chance = Chance(seed, lambda part: atheris.Mutate(part, most))
    return TARGET.mutate(data, chance)[:most]


def main() -> None:
    # The same few ε again and again: it is not their exponentials that are fuzzed.
    for function in (exact.exponential, exact.logarithm_rounded_up):
        setattr(exact, function.__name__, functools.lru_cache(maxsize=1 << 12)(function))
    options = [f"-max_len={TARGET.LONGEST}", "-reduce_inputs=0", *sys.argv[2:]]
    # To merge, libFuzzer runs this again, by its name and with other options.
    program = f"{sys.executable} -m tests.fuzz.run {sys.argv[1]}"
    atheris.Setup([program, *options], execute, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
