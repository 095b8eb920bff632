"""One call to a private listener, as a command makes it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import grpc
import typer

from hubbub_aggregator.connection import TIMEOUT, calling, open_channel

__all__ = ["MAX_ROUND", "TIMEOUT", "AggregatorOption", "KeysOption", "private_listener"]

# What a round's number can be asked for; the aggregator says which ones there are.
MAX_ROUND: Final = (1 << 63) - 1

AggregatorOption = Annotated[str, typer.Option(help="The private listener, host:port.")]
KeysOption = Annotated[
    Path | None,
    typer.Option(help="The keys folder, if the private listener runs with --private-tls."),
]


@contextmanager
def private_listener(address: str, keys: Path | None) -> Generator[grpc.Channel]:
    """A channel for the body; what goes wrong there becomes CallFailed."""
    with open_channel(address, keys) as channel, calling(address):
        yield channel
