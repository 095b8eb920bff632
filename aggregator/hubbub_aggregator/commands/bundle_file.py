"""Reading a bundle as it lies there: its form is checked, but not whose it is or what it proves."""

from pathlib import Path

from hubbub.bundle import open_envelope, read_bundle
from hubbub.contract import Metric, read_metric
from hubbub.errors import InvalidContract, MalformedBundle
from hubbub_aggregator.commands import CommandError


def read_metrics(path: Path, signed: bytes) -> list[Metric]:
    """The metrics of a SignedBundle, read from `path`. Raises CommandError."""
    try:
        content = read_bundle(open_envelope(signed).bundle)
        return [read_metric(contract) for contract in content.contracts]
    except MalformedBundle as error:
        raise CommandError(f"{path}: {error.reason}; is it a signed bundle?") from None
    except InvalidContract as error:
        raise CommandError(f"{path}: {error}") from None
