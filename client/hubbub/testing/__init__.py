"""For the tests of programs that embed Hubbub: what was recorded, and an aggregator in process.

    from hubbub.testing import Aggregator, RecordingClient, metric

    client = RecordingClient()
    client.metric("lunch.today").record("salad")
    assert client.recorded[0].value == "salad"

    aggregator = Aggregator(metric("lunch.today", ["soup", "salad"]))
    with aggregator.client() as client:
        client.metric("lunch.today").record("salad")
        client.flush()
    assert len(aggregator.reports("lunch.today")) == 1

For tests only: the first keeps true values, and the second's clock can be set. `import hubbub`
never loads it.
"""

from hubbub.testing.aggregator import Aggregator, Report
from hubbub.testing.metrics import metric
from hubbub.testing.recording_client import Recorded, RecordingClient

__all__ = ["Aggregator", "Recorded", "RecordingClient", "Report", "metric"]
