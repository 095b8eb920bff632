"""Recounting: what an archived round comes to, by the same oracles that counted it live."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.domain import text_index
from hubbub_aggregator.archive.fingerprint import Fingerprint, fingerprint, nothing
from hubbub_aggregator.archive.reading import ArchivedRound
from hubbub_aggregator.oracles import OpenHashingOracle, Oracle, Payloads, oracle_for
from hubbub_aggregator.tally import Counts, Tally

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Recounted:
    """A round's counts, all from its reports."""

    round: ArchivedRound
    tally: Tally
    values: list[str]
    """The domain's, or of an open domain the candidates."""
    counts: Counts
    """How many reports support each of them: int64 of shape (len(values),), each in [0, n]."""
    fingerprint: Fingerprint
    """Of an open domain, which is not counted but kept, all reports' in whatever order."""


def recount(
    archived: ArchivedRound, reader: "duckdb.DuckDBPyConnection", candidates: Sequence[str] = ()
) -> Recounted:
    """Read a round's reports once, and count them; `candidates` are of an open domain's alone.

    Raises ArchiveError.
    """
    domain, oracle = archived.metric.domain, oracle_for(archived.metric.mechanism)
    values = list(candidates) if domain.open else list(domain.labels)
    n, cells = 0, np.zeros(oracle.cells, np.int64)
    decoded, kept = np.zeros(len(values), np.int64), nothing()
    for payloads in archived.payloads(reader):
        n += len(payloads)
        cells += oracle.fold(payloads)
        if domain.open:
            kept += fingerprint(payloads)
            decoded += _decode(oracle, payloads, values)
    tally = Tally(n, cells, archived.plain)
    return Recounted(
        archived, tally, values, decoded if domain.open else oracle.supports(cells), kept
    )


def _decode(oracle: Oracle, payloads: Payloads, candidates: Sequence[str]) -> Counts:
    """How many of an open domain's reports support each candidate."""
    if not isinstance(oracle, OpenHashingOracle):
        raise TypeError("only open domains have candidates")
    return oracle.candidate_supports(payloads, [text_index(text) for text in candidates])
