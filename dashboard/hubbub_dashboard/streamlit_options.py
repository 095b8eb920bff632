"""How Streamlit is set up. These rank above any config.toml a user may have."""

from collections.abc import Mapping
from typing import Final

from hubbub_dashboard.access.door import LOOPBACK_HOSTS
from hubbub_dashboard.palette import PALETTES, Palette
from hubbub_dashboard.settings import Settings

# Nothing leaves this machine, nothing is watched, nothing explains our code to a viewer, and
# nobody but the provider that --login names says who a viewer is.
_SERVER: Final[Mapping[str, object]] = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": "warning",
    "runner.magicEnabled": False,
    # Else everything in memory is looked through after each refresh, which takes three times as
    # long as the refresh. Python looks through it now and then by itself.
    "runner.postScriptGC": False,
    "secrets.files": [],
    "server.enableAgentApi": False,
    "server.enableCORS": True,
    "server.enableStaticServing": False,
    "server.enableXsrfProtection": True,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.trustedUserHeaders": {},
}

_LOOKS: Final[Mapping[str, object]] = {
    "theme.font": "sans-serif",
    "theme.headingFont": "sans-serif",
    "theme.baseRadius": "small",
    "theme.showWidgetBorder": True,
}


def options(settings: Settings) -> dict[str, object]:
    """Return what Streamlit is run with, to serve the page as the settings say."""
    colours = {
        f"theme.{theme}.{option}": colour
        for theme, palette in PALETTES.items()
        for option, colour in _colours(palette).items()
    }
    return {**_SERVER, **_LOOKS, **colours, **_place(settings)}


def _place(settings: Settings) -> dict[str, object]:
    """Where the page is served, and under which names; the door goes by these, too."""
    certificate, key = settings.certificate or (None, None)
    public = settings.public
    return {
        "server.address": settings.address,
        "server.port": settings.port,
        "server.sslCertFile": certificate and str(certificate),
        "server.sslKeyFile": key and str(key),
        "server.allowedHosts": [*LOOPBACK_HOSTS, *([public.host] if public else [])],
        "server.baseUrlPath": public.path.strip("/") if public else "",
        # Without it Streamlit would ask a server elsewhere what this one's address is.
        "browser.serverAddress": public.host if public else "localhost",
    }


def _colours(palette: Palette) -> dict[str, str]:
    return {
        "primaryColor": palette.accent,
        "backgroundColor": palette.paper,
        "secondaryBackgroundColor": palette.surface,
        "textColor": palette.ink,
        "borderColor": palette.edge,
    }
