"""Millions of reports, made at once and sent unsealed: only for `hubbub serve --take-plain`."""

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hubbub.contract import Metric
from hubbub.limits import MAX_REPORTS_PER_REQUEST, REPORT_ID_BYTES
from hubbub.v1 import report_pb2
from hubbub_aggregator.crowd import SeededChance, batch_size, sampler_for
from hubbub_aggregator.crowd.population import Population
from hubbub_aggregator.listeners import SUBMIT
from tests.flood import flood
from tests.processes import ServeProcess

_OK, _OVERLOADED = 0, 8
_COUNTED = report_pb2.REPORT_STATUS_COUNTED


def answer_plainly(
    serve: ServeProcess, metric: Metric, devices: Sequence[int], *, number: int, seed: int
) -> None:
    """Randomise and submit one report of every device; `devices`: how many have each value.

    Whatever is turned away for want of time is sent again, so that each is counted once.
    """
    crowd = Population(metric.mechanism.k, dict(enumerate(devices)))
    waiting: Iterable[bytes] = _requests(metric, crowd, number, SeededChance(seed))
    counted = 0
    while counted < crowd.n:
        done, waiting = _send(serve, waiting)
        counted += done
    assert counted == crowd.n


def _requests(
    metric: Metric, crowd: Population, number: int, chance: SeededChance
) -> Iterator[bytes]:
    sampler, most = sampler_for(metric.mechanism), batch_size(metric.mechanism)
    for start in range(0, crowd.n, most):
        values = crowd.values(start, min(start + most, crowd.n), chance)
        payloads = sampler.randomise(values, chance)
        for first in range(0, len(payloads), MAX_REPORTS_PER_REQUEST):
            some = np.ascontiguousarray(payloads[first : first + MAX_REPORTS_PER_REQUEST])
            yield report_pb2.SubmitReportsRequest(
                digest=metric.digest,
                round=number,
                ids=os.urandom(REPORT_ID_BYTES * len(some)),
                payloads=some.tobytes(),
            ).SerializeToString()


def _send(serve: ServeProcess, requests: Iterable[bytes]) -> tuple[int, list[bytes]]:
    """How many reports were counted, and the requests that were turned away."""
    under_way: dict[int, bytes] = {}

    def noted() -> Iterator[bytes]:
        for place, request in enumerate(requests):
            under_way[place] = request
            yield request

    authority = (serve.operator.folder / "ca.crt").read_bytes()
    counted, turned_away = 0, []
    for answer in flood(
        serve.public, SUBMIT, noted(), authority=authority, connections=2, in_flight=4
    ):
        request = under_way.pop(answer.number)
        if answer.status == _OVERLOADED:
            turned_away.append(request)
            continue
        assert answer.status == _OK
        statuses = report_pb2.SubmitReportsResponse.FromString(answer.message).statuses
        assert set(statuses) == {_COUNTED}
        counted += len(statuses)
    return counted, turned_away
