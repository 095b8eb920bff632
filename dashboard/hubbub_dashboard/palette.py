"""The page's colours, in both themes: ink on paper, and its reverse."""

from dataclasses import dataclass
from typing import Final, Literal

Theme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme, as "#rrggbb".

    Ink, muted and accent keep a contrast of at least 4.5 to 1 against paper. Blue against grey
    is told apart with every kind of colour blindness, and nothing is said by colour alone.
    """

    ink: str
    muted: str
    """What is not distinguishable from zero, and small print."""
    accent: str
    paper: str
    surface: str
    """Of what can be clicked."""
    edge: str
    grid: str


PALETTES: Final[dict[Theme, Palette]] = {
    "light": Palette(
        ink="#1f2328",
        muted="#5f666d",
        accent="#1b5e8c",
        paper="#fcfcfa",
        surface="#f2f2ee",
        edge="#d4d4cd",
        grid="#e4e4de",
    ),
    "dark": Palette(
        ink="#e6e8ea",
        muted="#9aa3ac",
        accent="#6db3e3",
        paper="#15181c",
        surface="#20252b",
        edge="#3a4149",
        grid="#2b3138",
    ),
}
