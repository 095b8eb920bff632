"""What reports cost the aggregator: memory, and steps through it."""

from dataclasses import dataclass

from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    MemoisedUnary,
    OptimisedUnary,
    ProjectiveGeometry,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub_aggregator.oracles import oracle_for


@dataclass(frozen=True, slots=True)
class Work:
    """What a mechanism's reports cost the aggregator."""

    cells: int
    """Counts kept for a metric and round, 8 bytes each."""
    per_report: int
    """Cells that one report is compared with or added to, when it comes in."""
    per_reading: int
    """Additions and copies of a cell from the tally to a count for each value."""


def work(mechanism: Mechanism) -> Work:
    """What its reports cost the aggregator, in cells and in steps on one of them."""
    cells = oracle_for(mechanism).cells
    match mechanism:
        case SymmetricUnary() | OptimisedUnary() | MemoisedUnary() | LocalHashing():
            return Work(cells, per_report=cells, per_reading=cells)
        case SubsetSelection():
            # A set that is sent as its rank lists its members; a bit vector is gone through.
            members = mechanism.size if mechanism.ranks is not None else cells
            return Work(cells, per_report=members, per_reading=cells)
        case ProjectiveGeometry():
            additions = cells * mechanism.field * mechanism.dimensions
            return Work(cells, per_report=1, per_reading=additions)
        case MemoisedLocalHashing():
            additions = cells * mechanism.cells * mechanism.dimensions
            return Work(cells, per_report=1, per_reading=additions)
        case _:
            return Work(cells, per_report=1, per_reading=cells)
