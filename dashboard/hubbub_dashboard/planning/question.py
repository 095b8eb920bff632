"""What is asked of a plan, what comes of it, and the same as a command."""

import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from hubbub_aggregator.commands.plan import planned
from hubbub_aggregator.mistakes import Mistake
from hubbub_aggregator.planning.planner import Plan

# Above it the exact power takes seconds; the command takes its time.
MOST_REPORTS: Final = 10**8


class TakesLong(Mistake):
    """What the command plans, but a viewer would have to wait for."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a viewer typed."""

    values: int
    epsilon: str
    reports: int
    names: tuple[str, ...] = ()
    """The values' names, `values` of them; empty: they have none yet."""
    rounds: int | None = None
    join: int | None = None
    permanent: str | None = None
    cells: int | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """What the values are called."""
        return self.names or tuple(f"value-{place}" for place in range(1, self.values + 1))


@lru_cache(maxsize=64)
def answered(question: Question) -> Plan:
    """What `hubbub plan` works out for it, once for all viewers.

    Raises CommandError or TakesLong.
    """
    if question.reports > MOST_REPORTS:
        raise TakesLong(
            f"This page plans up to {MOST_REPORTS:,} reports; for {question.reports:,}, run "
            f"`{command(question)}`"
        )
    return planned(
        question.values,
        question.epsilon,
        question.reports,
        rounds=question.rounds,
        join=question.join,
        permanent=question.permanent,
        cells=question.cells,
    )


def command(question: Question) -> str:
    """The command that says the same."""
    options = {
        "--values": question.values,
        "--epsilon": question.epsilon,
        "--reports": question.reports,
        "--rounds": question.rounds,
        "--join": question.join,
        "--permanent": question.permanent,
        "--cells": question.cells,
    }
    given = ((name, str(said)) for name, said in options.items() if said is not None)
    return shlex.join(["hubbub", "plan", *(word for option in given for word in option)])
