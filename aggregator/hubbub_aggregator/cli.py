"""The `hubbub` command, which an install of the device SDK alone has too."""

import os
import sys

from hubbub.printing import for_people


def main() -> None:
    """Run the command, or say which part of the install it needs."""
    for stream in (sys.stdout, sys.stderr):
        for_people(stream)
    # gRPC's core writes about a taken port, or a stranger's failed handshake, in a language of
    # its own; what matters of it we say ourselves.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        # Imported here: without the extra there is no typer, nor much else that it needs.
        from hubbub_aggregator.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hubbub"):
            raise
        sys.exit(
            "hubbub: this command needs more than the device SDK: pip install 'hubbub[aggregator]'"
        )
    run()
