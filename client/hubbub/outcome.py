"""What came of recording a value: the return value of `record`."""

from enum import Enum


class Outcome(Enum):
    """Truthy if a noisy report was stored for sending. `str()` is a sentence."""

    STORED = "stored for sending"
    STORED_OUTSIDE_DOMAIN = (
        "stored for sending, but the value is not one of the metric's: the answer declared for "
        "that, or else a random one, was randomised in its place"
    )
    ALREADY_ANSWERED = "not stored: this round is answered already"
    NOT_JOINED = "nothing to do: this round is not one of those that this device joins"
    BUDGET_SPENT = "not stored: the budget does not cover it"
    NOT_ASKED_NOW = "not stored: the metric is not being asked at this time"
    PAUSED = "not stored: the device's owner has paused collection"
    OPTED_OUT = "not stored: the device's owner has opted out"
    COLLECTION_OFF = "not stored: collection is turned off"
    CLIENT_CLOSED = "not stored: the client is closed"
    NOT_STORED = "not stored: the state file could not be written"

    # There is one of each; Enum's own would be asked for their names.
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self in (Outcome.STORED, Outcome.STORED_OUTSIDE_DOMAIN)

    def __str__(self) -> str:
        return self.value
