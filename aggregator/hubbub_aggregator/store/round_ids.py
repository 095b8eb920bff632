"""What a round has counted, as this process knows it, and how it learns what others added.

Whoever counts holds the round's row locked. So what other processes added since the last time is
there to be read, once; and a commit of this one whose end is not known is found like theirs.
"""

from dataclasses import dataclass, field
from typing import Final

from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.store.id_set import Ids, IdSet, as_ids
from hubbub_aggregator.store.prepared import Cursor
from hubbub_aggregator.store.statements import CountingStatements
from hubbub_aggregator.tally import Tally

# Rows that are put into the set together: one may have a single id, or some ten thousand.
_TOGETHER: Final = 256


@dataclass(slots=True)
class RoundIds:
    """The ids of one round."""

    known: IdSet = field(default_factory=IdSet)
    """Durable, all of them."""
    up_to: int = 0
    """The last row of `counted_ids` that is in it."""
    own: Tally | None = None
    """What this process has counted of the round, when it last looked."""

    def catch_up(self, cursor: Cursor, run: CountingStatements, round_id: int) -> None:
        """Learn what is durable and not known here; in a transaction that holds the round locked,
        and has added none itself."""
        since = {"round_id": round_id, "since": self.up_to}
        if not self.up_to:
            (size,) = run.size_of_ids(cursor, **since).fetchone()
            self.known = IdSet(capacity=int(size) // REPORT_ID_BYTES)
        run.ids_since(cursor, **since)
        while rows := cursor.fetchmany(_TOGETHER):
            self.known.add(as_ids(b"".join([ids for _, ids in rows])))
            # Not before: an error in between must not make it look known.
            self.up_to = rows[-1][0]

    def committed(self, ids: Ids, row: int, own: Tally) -> None:
        """Note what a commit made durable."""
        self.known.add(ids)
        self.up_to = row
        self.own = own
