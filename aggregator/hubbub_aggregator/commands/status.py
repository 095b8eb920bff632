"""`hubbub status`: how a running aggregator is doing."""

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands.options import (
    AggregatorOption,
    FormatOfOne,
    FormatOfOneOption,
    KeysOption,
)
from hubbub_aggregator.commands.output import print_json
from hubbub_aggregator.commands.status_text import status_text
from hubbub_aggregator.connection import DEFAULT_ADDRESS, TIMEOUT, private_listener
from hubbub_aggregator.status_record import status_record


def status(
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
    output: FormatOfOneOption = FormatOfOne.TABLE,
) -> None:
    """Print what a running aggregator does, holds and waits for.

    Counts are totals over all metrics since it started; of one metric, its newest snapshot's n.
    """
    with private_listener(aggregator, keys) as channel:
        stub = estimate_pb2_grpc.AdminServiceStub(channel)
        answer = stub.GetStatus(estimate_pb2.GetStatusRequest(), timeout=TIMEOUT)
    record = status_record(answer)
    if output is FormatOfOne.JSON:
        print_json(record)
    else:
        print(status_text(record))
