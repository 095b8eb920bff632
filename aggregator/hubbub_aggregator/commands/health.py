"""`hubbub health`: whether an aggregator serves, for scripts and containers."""

from typing import Any

import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub_aggregator.commands.options import AggregatorOption, KeysOption
from hubbub_aggregator.connection import DEFAULT_ADDRESS, private_listener

# Somebody waits for the answer who will act on none. Seconds.
_TIMEOUT = 5.0


def health(aggregator: AggregatorOption = DEFAULT_ADDRESS, keys: KeysOption = None) -> None:
    """Exit 0 if an aggregator serves, else 1: it is stopping, or nobody answers."""
    with private_listener(aggregator, keys) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT)
    serving = answer.status == health_pb2.HealthCheckResponse.SERVING
    print("serving" if serving else "stopping")
    raise typer.Exit(0 if serving else 1)
