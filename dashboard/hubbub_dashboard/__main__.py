"""`python -m hubbub_dashboard`: serve the page until interrupted."""

import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final

from hubbub_aggregator.connection import open_channel
from hubbub_aggregator.keys import KeysError
from hubbub_dashboard.settings import PROGRAM, Settings, SettingsError, read_settings
from hubbub_dashboard.streamlit_options import options

_SCRIPT: Final = Path(__file__).with_name("app.py")


def main() -> int:
    """Serve the page; return the exit status."""
    try:
        settings = read_settings(sys.argv[1:])
        # Missing keys are told here, not to the first viewer.
        open_channel(settings.aggregator, settings.keys).close()
        _check_port(settings)
    except (SettingsError, KeysError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    with suppress(KeyboardInterrupt):
        _serve(settings)
    return 0


def _check_port(settings: Settings) -> None:
    """Try the port before Streamlit does, which would only log that it is taken."""
    family = socket.AF_INET6 if ":" in settings.address else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # A page started again at once must not wait for its predecessor's connections to end.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.address, settings.port))
        except OSError as error:
            raise SettingsError(
                f"cannot serve on {settings.address}, port {settings.port} ({error.strerror}); "
                f"choose another with --port, or 0 for any free one"
            ) from error


def _serve(settings: Settings) -> None:
    import streamlit

    @asynccontextmanager
    async def announce(_: streamlit.App) -> AsyncGenerator[None]:
        host = f"[{settings.address}]" if ":" in settings.address else settings.address
        # Asked of Streamlit: with --port 0 only it knows.
        port = streamlit.get_option("server.port")
        print(f"Hubbub dashboard: http://{host}:{port}", flush=True)
        yield

    app = streamlit.App(_SCRIPT, lifespan=announce)
    app.run(config=options(settings.address, settings.port))


if __name__ == "__main__":
    sys.exit(main())
