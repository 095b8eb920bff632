"""The store of commands that work on one without an aggregator."""

import secrets
from typing import TYPE_CHECKING

from hubbub_aggregator.commands import CommandError

if TYPE_CHECKING:
    from hubbub_aggregator.store import Store


def open_store(location: str) -> "Store":
    """Open a store that is there already. Raises CommandError if it is not, or StoreError."""
    # Imported here: no other command needs SQLAlchemy to say what it does.
    from hubbub_aggregator.doctor.store_file import store_path
    from hubbub_aggregator.store import Store

    path = store_path(location)
    if path is not None and not path.exists():
        # To open one would make it.
        raise CommandError(f"there is no store {path}; give --store")
    return Store(location, writer=secrets.randbits(63), publish_step=1)
