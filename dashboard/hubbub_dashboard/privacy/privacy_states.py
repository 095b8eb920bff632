"""What stands in the way of saying what a metric gives away, in words. Pure."""

from hubbub.errors import BundleError
from hubbub_dashboard.states import Status, Tone


def refused(error: BundleError) -> Status:
    """A device would not take the contract."""
    return Status(
        Tone.PROBLEM,
        "A device would refuse this",
        f"The contract that the aggregator gives proves nothing: {error}. A device that is given "
        f"these bytes records nothing and sends nothing, and no figure here would be a promise.",
    )


def no_contract(address: str) -> Status:
    """The aggregator has not answered for it."""
    return Status(
        Tone.AWAY,
        "No contract",
        f"The aggregator at {address} has not given this metric's contract yet: it is busy, or of "
        f"a version that cannot. This page keeps asking and fills up by itself.",
    )
