"""The demo's devices: each a real client with a ledger of its own, over one TLS channel."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hubbub.client import Client
from hubbub.contract import Bundle
from hubbub.exact import charge_text
from hubbub.limits import MAX_CHARGE_PER_SOURCE
from hubbub.transport import Transport
from hubbub_aggregator.demo.people import People

# A device waits for the commit that makes its report durable; meanwhile others work.
AT_ONCE: Final = 48
# Far longer than a report takes: whatever is not counted then is lost.
_FLUSH_SECONDS: Final = 60.0


def run_fleet(
    people: People, bundle: Bundle, transport: Transport, progress: Callable[[int], None]
) -> int:
    """Give every person a device, let it answer and send; return how many delivered all.

    `progress` is called with 1 after each device, from several threads.
    """
    budgets = {
        metric.source: charge_text(MAX_CHARGE_PER_SOURCE) for metric in bundle.metrics.values()
    }

    def answer(person: int) -> bool:
        with Client(
            bundle,
            operator_key=bundle.operator,
            state_dir=None,
            budgets=budgets,
            transport=transport,
        ) as device:
            stored = [
                bool(device.metric(metric).record(values[person]))
                for metric, values in people.answers.items()
            ]
            delivered = device.flush(_FLUSH_SECONDS)
        progress(1)
        return delivered and all(stored)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="device") as pool:
        return sum(pool.map(answer, range(people.count)))
