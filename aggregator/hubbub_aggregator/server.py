"""The aggregator's life: two listeners, one store, and a clean end.

Devices reach the public listener alone: reports, catalogue, health. Estimates, closing
rounds and reflection are on the private one.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.archive.writing import Archive
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.closing import Closer
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.intake import Intake
from hubbub_aggregator.keys import OpeningKey
from hubbub_aggregator.listeners import SUBMIT, Listeners
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.opening import Opening
from hubbub_aggregator.opening_pool import OpeningPool
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.services.admin import AdminService
from hubbub_aggregator.services.catalog import CatalogService
from hubbub_aggregator.services.estimate import EstimateService
from hubbub_aggregator.services.health import Health, HealthService
from hubbub_aggregator.services.report import ReportService
from hubbub_aggregator.services.status import ListenerInfo, StatusBoard
from hubbub_aggregator.store import Store, StoreError
from hubbub_aggregator.tls import ServerCertificate

_log = logging.getLogger(__name__)

# How often rounds whose time is over are closed, and other duties are seen to. Seconds.
_TICK: Final = 1.0


class Aggregator:
    """A running aggregator, from `start` to `drain`."""

    def __init__(
        self,
        bundle: Bundle,
        keys: Mapping[bytes, OpeningKey],
        store: Store,
        listeners: Listeners,
        *,
        clock: Callable[[], float],
        publish_step: int,
        certificate: ServerCertificate | None = None,
        take_plain: bool = False,
        pool: OpeningPool | None = None,
        archive: Archive | None = None,
    ) -> None:
        """`bundle` is in force in `store`; `keys` are exactly those it lists.

        `certificate`: what the listeners with TLS show; `pool`: where batches are opened, if not
        here; `archive`: where reports that are kept go when their round closes, if anywhere.
        """
        self.counters: Final = Counters()
        self.observations: Final = Observations(clock)
        self._certificate = certificate
        self._catalogue = Catalogue(bundle, store.metrics())
        self._clock = clock
        self._announcements = Announcements()
        self._closer = Closer(self._catalogue, store, archive, self._announcements)
        self._committer = Committer(store, self._announcements, clock, self.observations)
        self._opening = Opening(self._committer.commit, self.observations.opening, pool)
        intake = Intake(
            self._catalogue,
            keys,
            self._opening,
            self._committer,
            counters=self.counters,
            observations=self.observations,
            clock=clock,
            take_plain=take_plain,
        )
        self._health = Health()
        self.board: Final = StatusBoard(
            self._catalogue,
            store,
            self.counters,
            self.observations,
            self._health,
            closer=self._closer,
            bytes_in_hand=lambda: intake.bytes_in_hand,
            clock=clock,
        )
        self.board.listeners = _listeners(listeners)
        self.board.certificate_expires = None if certificate is None else certificate.expires
        self._stopping = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="ticker", daemon=True)

        self._public, self._private = listeners.public, listeners.private
        self._door = listeners.door
        self._door.on_refusal = self.counters.add
        reports = ReportService(intake)
        self._door.begin[SUBMIT] = reports.begin
        line = self._door.lines(SUBMIT)
        for backlog in (line.backlog, line.batches):
            backlog.commit_seconds = lambda: self._committer.seconds
        report_pb2_grpc.add_ReportServiceServicer_to_server(reports, self._public)
        report_pb2_grpc.add_CatalogServiceServicer_to_server(
            CatalogService(bundle.signed), self._public
        )
        estimates = EstimateService(
            self._catalogue,
            store,
            self._announcements,
            clock,
            publish_step=publish_step,
            started=self.board.started,
        )
        admin = AdminService(self._catalogue, self._closer, clock, self.board)
        estimate_pb2_grpc.add_EstimateServiceServicer_to_server(estimates, self._private)
        estimate_pb2_grpc.add_AdminServiceServicer_to_server(admin, self._private)
        reflection.enable_server_reflection(_names(estimate_pb2), self._private)
        services = (*_names(report_pb2), *_names(estimate_pb2))
        for server, watched in ((self._public, False), (self._private, True)):
            health = HealthService(services, self._health, watched=watched)
            health_pb2_grpc.add_HealthServicer_to_server(health, server)

    def start(self) -> None:
        """Answer calls, from now on."""
        self._ticker.start()
        self._door.receiver.start()
        self._public.start()
        self._private.start()

    def drain(
        self, grace: float, *, lame_duck: float = 0.0, at_once: threading.Event | None = None
    ) -> None:
        """Finish what is in hand, within `grace` seconds, and stop.

        For `lame_duck` seconds before that, or until `at_once` is set, health says NOT_SERVING
        while everybody is still answered, so that load balancers send nobody else.
        """
        self._health.leave()
        (at_once or threading.Event()).wait(lame_duck)
        self._stopping.set()
        self._announcements.end()
        self._health.end()
        self._door.receiver.hurry()
        for stopped in [self._public.stop(grace), self._private.stop(grace)]:
            stopped.wait()
        self._door.receiver.close()
        self._opening.close()
        self._committer.close()
        if self._ticker.is_alive():
            self._ticker.join()

    def _tick(self) -> None:
        duties: dict[str, Callable[[], object]] = {"close rounds": self.close_due_rounds}
        if self._certificate is not None:
            duties["look at the certificate"] = self._certificate.look
        failing: set[str] = set()
        while not self._stopping.wait(_TICK):
            self.observations.sample(self.board.counted)
            for duty, see_to in duties.items():
                try:
                    see_to()
                except Exception as error:
                    # Whatever it is, later rounds must close too. One line for as long as it lasts.
                    if duty not in failing:
                        _log.error(
                            "cannot %s now: %s",
                            duty,
                            error,
                            exc_info=not isinstance(error, StoreError),
                        )
                    failing.add(duty)
                else:
                    failing.discard(duty)

    def close_due_rounds(self) -> None:
        """Close, and so publish, every round whose time is over. Raises StoreError."""
        self._closer.close_due(self._clock())


def _names(module: Any) -> list[str]:
    """The full names of a generated module's services."""
    return [service.full_name for service in module.DESCRIPTOR.services_by_name.values()]


def _listeners(taken: Listeners) -> list[ListenerInfo]:
    return [
        ListenerInfo("public", taken.public_address, taken.public_tls),
        ListenerInfo("private", taken.private_address, taken.private_tls),
    ]
