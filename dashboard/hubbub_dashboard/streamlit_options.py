"""How Streamlit is set up. These rank above any config.toml a user may have."""

from collections.abc import Mapping
from typing import Final

from hubbub_dashboard.palette import PALETTES, Palette

# Nothing leaves this machine, nothing is watched, nothing explains our code to a viewer.
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
    "server.enableStaticServing": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    # Else a page elsewhere could reach this one by a host name of its own that it
    # points at 127.0.0.1.
    "server.allowedHosts": ["localhost", "127.0.0.1", "::1"],
}

_LOOKS: Final[Mapping[str, object]] = {
    "theme.font": "sans-serif",
    "theme.headingFont": "sans-serif",
    "theme.baseRadius": "small",
    "theme.showWidgetBorder": True,
}


def options(address: str, port: int) -> dict[str, object]:
    """Return what Streamlit is run with, to serve the page on this address and port."""
    colours = {
        f"theme.{theme}.{option}": colour
        for theme, palette in PALETTES.items()
        for option, colour in _colours(palette).items()
    }
    here = {"server.address": address, "server.port": port}
    return {**_SERVER, **_LOOKS, **colours, **here}


def _colours(palette: Palette) -> dict[str, str]:
    return {
        "primaryColor": palette.accent,
        "backgroundColor": palette.paper,
        "secondaryBackgroundColor": palette.surface,
        "textColor": palette.ink,
        "borderColor": palette.edge,
    }
