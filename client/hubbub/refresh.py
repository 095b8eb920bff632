"""Which bundle is in force on a device, and how a newer one gets there.

From the app, with which it is shipped; or from the aggregator, which is asked once a day, after a
report was sent, and whenever it says that it has another one. Either way only a bundle that an
operator signed whom the app names, and none older than one seen before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hubbub import log
from hubbub.bundle import Bundle
from hubbub.errors import HubbubError
from hubbub.ledger import Ledger
from hubbub.transport import Refused, Transport

_REFRESH_SECONDS: Final = 86_400


class BundleInForce:
    """The bundle that a client goes by."""

    def __init__(
        self,
        given: Bundle,
        ledger: Ledger,
        operator_keys: Sequence[str],
        budgets: Mapping[str, int],
        clock: Callable[[], float],
    ) -> None:
        """Put the app's bundle in force, or one fetched earlier that is newer.

        Raises BundleError or StateError, and then changes nothing.
        """
        self._ledger = ledger
        self._keys = operator_keys
        self._budgets = budgets
        self._clock = clock
        self.bundle = self._adopt(given, fetched=False)

    def refresh(self, transport: Transport, timeout: float, *, needed: bool) -> bool:
        """Ask the aggregator, if it is time or one is `needed`; tell whether a newer one came.

        `timeout`: seconds that may take, above 0. Raises StateError.
        """
        now = int(self._clock())
        # By a clock that was set back, the last time may lie ahead.
        if not needed and 0 <= now - self._ledger.refreshed_at() < _REFRESH_SECONDS:
            return False
        try:
            newer = Bundle.verify(transport.fetch_bundle(timeout), operator_key=self._keys)
            # Of several operators that the app trusts, one is followed at a time.
            if newer.operator == self.bundle.operator and newer.revision > self.bundle.revision:
                self.bundle = self._adopt(newer, fetched=True)
                return True
        except (Refused, HubbubError) as refusal:
            log.info("no newer bundle: %s", type(refusal).__name__)
        finally:
            self._ledger.note_refresh(now)
        return False

    def _adopt(self, bundle: Bundle, *, fetched: bool) -> Bundle:
        signed = self._ledger.adopt(
            bundle, self._keys, self._budgets, now=int(self._clock()), fetched=fetched
        )
        if signed == bundle.signed:
            return bundle
        return Bundle.verify(signed, operator_key=self._keys)
