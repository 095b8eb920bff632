"""A gateway for a crowd on one machine: reports that wait together travel together.

A request may hold a thousand sealed reports. Twenty thousand devices that share a machine
with their aggregator would otherwise spend it on the overhead of sixty thousand requests.
The gateway sees what the network sees, and opens nothing.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from hubbub.limits import MAX_REPORTS_PER_REQUEST
from hubbub.transport import Refused, Transport

# How long the first to come waits for others.
_GATHER_SECONDS: Final = 0.02


class _Parcel:
    """One device's sealed report, and what became of it."""

    __slots__ = ("outcome", "sealed")

    def __init__(self, sealed: bytes) -> None:
        self.sealed = sealed
        self.outcome: int | Refused | None = None


class _Lane:
    """Where reports of one metric, round and key wait for the request before theirs to end."""

    def __init__(self) -> None:
        self.waiting: list[_Parcel] = []
        self.sending = threading.Lock()


class Gateway:
    """A Transport that many devices share, over one that can carry several reports at once."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lanes: defaultdict[tuple[bytes, int, bytes], _Lane] = defaultdict(_Lane)
        self._lock = threading.Lock()

    @property
    def destination(self) -> str:
        return self._transport.destination

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        parcel = _Parcel(sealed)
        with self._lock:
            lane = self._lanes[digest, round_number, key_id]
            lane.waiting.append(parcel)
        with lane.sending:
            # Whoever comes first sends for all that wait; the others find their answer.
            if parcel.outcome is None:
                time.sleep(_GATHER_SECONDS)
                with self._lock:
                    group = lane.waiting[:MAX_REPORTS_PER_REQUEST]
                    del lane.waiting[:MAX_REPORTS_PER_REQUEST]
                self._send(group, digest, round_number, key_id, timeout)
        if isinstance(parcel.outcome, int):
            return [parcel.outcome]
        raise parcel.outcome or Refused("UNREADABLE_ANSWER")

    def fetch_bundle(self, timeout: float) -> bytes:
        return self._transport.fetch_bundle(timeout)

    def close(self) -> None:
        self._transport.close()

    def _send(
        self,
        group: list[_Parcel],
        digest: bytes,
        round_number: int,
        key_id: bytes,
        timeout: float,
    ) -> None:
        sealed = b"".join(parcel.sealed for parcel in group)
        try:
            statuses = self._transport.submit(digest, round_number, key_id, sealed, timeout)
        except Refused as refusal:
            for parcel in group:
                parcel.outcome = refusal
        else:
            for parcel, status in zip(group, statuses, strict=True):
                parcel.outcome = status
