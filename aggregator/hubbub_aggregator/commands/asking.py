"""What `hubbub query` and `hubbub compare` have in common: options, and where figures are from."""

from typing import Annotated, Final

import typer

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.estimate import EstimateTarget
from hubbub_aggregator.records import provenance, state_name

TARGETS: Final = {
    EstimateTarget.RESPONDENTS: estimate_pb2.TARGET_RESPONDENTS,
    EstimateTarget.POPULATION: estimate_pb2.TARGET_POPULATION,
}

TargetOption = Annotated[
    EstimateTarget,
    typer.Option(help="Shares among those who answered, or among all who would have."),
]
LevelOption = Annotated[
    float, typer.Option(help="Probability that an interval covers, between 0 and 1.")
]


def require_level(level: float) -> None:
    """Raises CommandError."""
    if not 0 < level < 1:
        raise CommandError(f"--level is between 0 and 1, for example 0.95, not {level:g}")


def heading(of: estimate_pb2.Provenance) -> str:
    """One line: which snapshot, and the law of its reports."""
    source = provenance(of)
    epsilon, as_of = source["epsilon"], f" as of {source['as_of']}" if of.n else ""
    return (
        f"{of.metric}, round {of.round} ({state_name(of.state)}): n = {of.n:,}{as_of}; "
        f"{of.mechanism}, ε = {epsilon['declared']} (realised {epsilon['realised']})"
    )


def no_figures(of: estimate_pb2.Provenance) -> str:
    """Why there is nothing to say of a snapshot that is not there."""
    if of.state == estimate_pb2.ROUND_STATE_CLOSED:
        return f"no figures: round {of.round} of {of.metric} closed without a report"
    return f"no figures yet: round {of.round} of {of.metric} has no snapshot; ask again later"
