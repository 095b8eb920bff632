"""How Streamlit is set up. These rank above any config.toml a user may have."""

from collections.abc import Mapping
from typing import Final

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
    "server.enableStaticServing": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    # Else a page elsewhere could reach this one by a host name of its own that it
    # points at 127.0.0.1.
    "server.allowedHosts": ["localhost", "127.0.0.1", "::1"],
}

# Ink on paper and its reverse. Every text colour keeps a contrast of at least 4.5 to 1.
_THEME: Final[Mapping[str, object]] = {
    "theme.font": "sans-serif",
    "theme.headingFont": "sans-serif",
    "theme.baseRadius": "small",
    "theme.showWidgetBorder": True,
    "theme.light.primaryColor": "#1b5e8c",
    "theme.light.backgroundColor": "#fcfcfa",
    "theme.light.secondaryBackgroundColor": "#f2f2ee",
    "theme.light.textColor": "#1f2328",
    "theme.light.borderColor": "#d4d4cd",
    "theme.dark.primaryColor": "#6db3e3",
    "theme.dark.backgroundColor": "#15181c",
    "theme.dark.secondaryBackgroundColor": "#20252b",
    "theme.dark.textColor": "#e6e8ea",
    "theme.dark.borderColor": "#3a4149",
}


def options(address: str, port: int) -> dict[str, object]:
    """Return what Streamlit is run with, to serve the page on this address and port."""
    return {**_SERVER, **_THEME, "server.address": address, "server.port": port}
