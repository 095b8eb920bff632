"""One call to a private listener, as a command makes it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import grpc
import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.connection import open_channel

# What a round's number can be asked for; the aggregator says which ones there are.
MAX_ROUND: Final = (1 << 63) - 1

# The slowest answer is an estimate of 65,536 values, well below. Seconds.
TIMEOUT: Final = 30.0

AggregatorOption = Annotated[str, typer.Option(help="The private listener, host:port.")]
KeysOption = Annotated[
    Path | None,
    typer.Option(help="The keys folder, if the private listener runs with --private-tls."),
]


@contextmanager
def private_listener(address: str, keys: Path | None) -> Generator[grpc.Channel]:
    """A channel for the body; what goes wrong there becomes a CommandError."""
    with open_channel(address, keys) as channel:
        try:
            yield channel
        except grpc.RpcError as error:
            raise CommandError(_sentence(address, error)) from None


def _sentence(address: str, error: grpc.RpcError) -> str:
    code, details = error.code(), error.details() or ""
    out_of_reach = code is grpc.StatusCode.DEADLINE_EXCEEDED or details.startswith("failed to")
    if out_of_reach:
        return (
            f"no aggregator answers at {address}; is `hubbub serve` running, with its private "
            f"listener there, and does it want --keys?"
        )
    return details or f"the aggregator at {address} answered {code.name}"
