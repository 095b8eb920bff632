"""Whatever happens to aggregators in whatever order, they count as a dict would."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests import postgres
from tests.aggregator.conftest import SQLITE
from tests.aggregator.model.ground import SCRATCH, Ground
from tests.aggregator.model.machine import Machine
from tests.bundles import Operator

# What the whole of it comes to in `make soak`, for each kind of store and number of aggregators.
STEPS = 10_000

# By these names `make soak` can do one after the other: PART="ten-thousand and sqlite and shared".
MEMBERS = pytest.mark.parametrize("members", [1, 2], ids=["alone", "shared"])

Locations = Callable[[], AbstractContextManager[str]]


@contextmanager
def a_file() -> Iterator[str]:
    with TemporaryDirectory(dir=SCRATCH) as folder:
        yield str(Path(folder) / "store.sqlite3")


def places(kind: str, servers: postgres.Servers) -> Locations:
    """Where stores of a kind are made, each empty."""
    return a_file if kind == SQLITE else servers.get(kind).database


def run_machine(ground: Ground, steps: int, **options: Any) -> None:
    """A number of lives, of so many steps each."""
    machine = type("TheMachine", (Machine,), {"ground": ground})
    chosen = seed(options.pop("seed"))(machine) if "seed" in options else machine
    run_state_machine_as_test(
        chosen,
        settings=settings(
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            **options,
        ),
    )


@MEMBERS
def test_aggregators_count_as_the_model_does(
    operator: Operator, stranger: Operator, members: int
) -> None:
    ground = Ground(operator, stranger, a_file, members)
    # Not made shorter if it fails: that may take longer than a test has.
    run_machine(ground, 35, max_examples=7, derandomize=True, phases=[Phase.generate])
    assert ground.steps >= 150


@pytest.mark.soak
@MEMBERS
@pytest.mark.parametrize("kind", [SQLITE, *postgres.KINDS])
def test_the_model_for_ten_thousand_steps(
    operator: Operator, stranger: Operator, servers: postgres.Servers, kind: str, members: int
) -> None:
    ground = Ground(operator, stranger, places(kind, servers), members)
    while ground.steps < STEPS:
        number = secrets.randbits(32)
        # Shown if it fails.
        print(f"after {ground.steps:,} steps: seed {number}")
        run_machine(
            ground,
            100,
            max_examples=10,
            seed=number,
            print_blob=True,
            phases=[Phase.generate, Phase.shrink],
        )
    print(f"{ground.steps:,} steps; {dict(ground.seen)}")
    assert ground.steps >= STEPS
