"""`hubbub close`: take no more reports for a round."""

from typing import Annotated

import typer

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import MAX_ROUND, AggregatorOption, KeysOption
from hubbub_aggregator.commands.output import EMPTY
from hubbub_aggregator.connection import DEFAULT_ADDRESS, TIMEOUT, NoAnswer, private_listener


def close(
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    round_number: Annotated[
        int | None,
        typer.Option(
            "--round",
            min=0,
            max=MAX_ROUND,
            help="Which round; of a metric with one round, that one.",
        ),
    ] = None,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Close a round for good, and publish all it holds.

    Reports that have not arrived by then are lost; this cannot be undone. Rounds close by
    themselves when their grace is over.
    """
    request = estimate_pb2.CloseRoundRequest(metric=metric, round=round_number)
    try:
        with private_listener(aggregator, keys) as channel:
            stub = estimate_pb2_grpc.AdminServiceStub(channel)
            answer = stub.CloseRound(request, timeout=TIMEOUT)
    except NoAnswer as error:
        raise CommandError(
            f"{error}; the round may be closed now, or not: see whether it runs with `hubbub "
            f"status`, and give the same command again, which says whether it was closed before"
        ) from None
    if answer.closed_now:
        state = f"is closed now, with {answer.n:,} reports"
    elif answer.n:
        state = f"was closed before, with {answer.n:,} reports"
    else:
        state = f"was {EMPTY}"
    print(f"{metric}, round {answer.round}: {state}")
