"""`python -m hubbub_dashboard`: serve the page until interrupted."""

import importlib.util
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Final

from hubbub_aggregator.connection import open_channel
from hubbub_aggregator.mistakes import Mistake
from hubbub_dashboard.access.door import LOOPBACK_HOSTS, Door
from hubbub_dashboard.access.way_back import WayBack
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
        _check_packages(settings)
    except Mistake as error:
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


def _check_packages(settings: Settings) -> None:
    if settings.login and importlib.util.find_spec("authlib") is None:
        raise SettingsError("signing in needs Authlib: pip install 'hubbub[login]'")


def _serve(settings: Settings) -> None:
    import streamlit
    from starlette.middleware import Middleware

    @asynccontextmanager
    async def announce(_: streamlit.App) -> AsyncGenerator[None]:
        # Asked of Streamlit: with --port 0 only it knows.
        print(f"Hubbub dashboard: {_where(settings, streamlit.get_option('server.port'))}")
        sys.stdout.flush()
        yield

    base = settings.public.path if settings.public else ""
    app = streamlit.App(
        _SCRIPT,
        lifespan=announce,
        middleware=[Middleware(Door, public=settings.public), Middleware(WayBack, base=base)],
        secrets={"auth": dict(settings.login.auth)} if settings.login else None,
    )
    app.run(config=options(settings))


def _where(settings: Settings, port: int) -> str:
    """The address of the page for viewers, if it is another one, and that of the listener."""
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.address}]" if ":" in settings.address else settings.address
    path = settings.public.path if settings.public else ""
    listens = f"{scheme}://{host}:{port}{path}"
    if settings.public is None or settings.public.host in LOOPBACK_HOSTS:
        return listens
    return f"{settings.public}, served from {listens}"


if __name__ == "__main__":
    sys.exit(main())
