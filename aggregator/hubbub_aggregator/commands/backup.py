"""`hubbub backup`: a store as it is at one instant, while an aggregator counts into it."""

from pathlib import Path
from typing import Annotated

import typer

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands import serve_options as options


def backup(
    destination: Annotated[Path, typer.Argument(help="The file to make; none is replaced.")],
    store: options.StoreLocation = None,
    config: options.Config = None,
) -> None:
    """Copy the store, whole or not at all; the aggregator may run on.

    Reports that are acknowledged later are not in the copy. An SQLite store only: PostgreSQL has
    pg_dump.
    """
    settings = options.settings_from(config, store=store)
    # Imported here: no other command needs SQLAlchemy to say what it does.
    from hubbub_aggregator.store.backup import BackupError, back_up

    try:
        size = back_up(settings.store, destination)
    except BackupError as error:
        raise CommandError(str(error)) from None
    print(f"{destination}: {size:,} bytes, whole; keep it as safe as the store")
