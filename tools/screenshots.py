"""Photograph the page in each of its states: `python -m tools.screenshots [--all FOLDER]`.

Without --all it writes the few that the documentation shows, to docs/images. Needs Debian's
chromium, and real people: a real aggregator counts examples/rand_hie.csv.
"""

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple

from playwright.sync_api import Browser, ViewportSize

from hubbub.bundle import Bundle
from hubbub.domain import text_index
from hubbub_dashboard.access.visitors import HOURS
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round
from tests.dashboard.logins import write_login
from tests.dashboard.pages import DashboardProcess, chromium
from tests.dashboard.provider import provider
from tests.processes import ServeProcess

_ROOT: Final = Path(__file__).resolve().parent.parent
_PEOPLE: Final = _ROOT / "examples" / "rand_hie.csv"

# So few of the 20,190 that one value is not distinguishable from zero.
_FEW: Final = 2_500
# Nobody listens on discard, here or elsewhere.
_NOBODY: Final = "127.0.0.1:9"

# For the chart to be drawn and the window to grow, milliseconds.
_SETTLING: Final = 1_500

_MONTH: Final = 30 * 86_400
_MONTHS: Final = 10
_SILENT: Final = 3
_WORSE_FROM: Final = 8

_METRICS: Final = (
    make_metric("health.self_rated"),
    make_metric(
        "health.physical_limitation",
        question="Does your health limit what you can do?",
        values=("no", "yes"),
    ),
    make_metric(
        "health.doctor_visits",
        question="How often did you see a doctor this year?",
        values=("0", "1", "2", "3–5", "6–10", "11+"),
    ),
    make_metric(
        "names",
        question="Which of a thousand names is yours?",
        values=[f"name {number}" for number in range(1, 1_025)],
        epsilon="4",
    ),
    make_metric(
        "health.monthly",
        question="How do you rate your health this month?",
        starts=int(time.time()) - 9 * _MONTH - _MONTH // 2,
        periodic=(_MONTH, 24, 24 * _MONTH),
    ),
    make_metric("drink.favourite", question="What do you like to drink?", open=True),
    make_metric(
        "mood.today",
        question="How are you today?",
        source="mood",
        values=("good", "middling", "bad"),
        absent="not asked",
        mechanism="memoised-optimised-unary",
        permanent="2",
        # Ten years of days, from the first of 2026.
        starts=1_767_225_600,
        periodic=(86_400, 3_650, 86_400),
    ),
)
# The first number of visits of each value above, from the last to the first.
_VISITS: Final = ((11, 5), (6, 4), (3, 3), (2, 2), (1, 1), (0, 0))


class Look(NamedTuple):
    """Whose screen it is."""

    theme: Literal["light", "dark"]
    width: int


_LOOKS: Final = (Look("light", 1280), Look("light", 390), Look("dark", 1280), Look("dark", 390))


class Shot(NamedTuple):
    """A state of the page, and how to see it."""

    state: str
    query: str
    waits_for: str
    """CSS of what shows that it is there."""
    person: str = ""
    """Who signs in first, if anybody."""


_CHART: Final = ".stVegaLiteChart svg .role-mark"
_LIVE: Final = (
    Shot("open", "?metric=health.self_rated", _CHART),
    Shot("waiting", "?metric=health.physical_limitation", ".badge.waiting"),
    Shot("closed", "?metric=health.doctor_visits&order=Largest+first", _CHART),
    Shot("large", "?metric=names", _CHART),
    Shot("parts", "?metric=health.self_rated&whole=true&among=population", _CHART),
    Shot("any-text", "?metric=drink.favourite", ".open-domain"),
    Shot("in-vain", "?metric=health.mood&among=doctors", _CHART),
    Shot("over-time", "over-time?metric=health.monthly", _CHART),
    Shot("over-time-once", "over-time?metric=health.self_rated", ".hubbub.notes"),
    Shot("compare", "compare?metric=health.doctor_visits&left=1&right=2", _CHART),
    Shot("compare-rounds", "compare?compare=two+rounds&metric=health.monthly", _CHART),
    Shot("compare-metrics", "compare?compare=two+metrics&metric=health.self_rated", _CHART),
    Shot("compare-waiting", "compare?metric=health.physical_limitation", ".badge.waiting"),
    Shot("plan", "plan?values=8", _CHART),
    Shot("health", "health", ".stVegaLiteChart"),
    Shot("privacy", "privacy?metric=health.self_rated&hostile=30", _CHART),
    Shot("privacy-memo", "privacy?metric=mood.today", ".badge.waiting"),
    Shot("privacy-any-text", "privacy?metric=drink.favourite", ".hubbub.answer"),
)
_AWAY: Final = Shot("away", "?metric=health.self_rated", ".badge.away")
_NOT_CONNECTED: Final = Shot("not-connected", "", ".badge.away")

_PEOPLE_SIGNED_IN: Final = {
    "ana": {"email": "ana@example.org", "email_verified": True},
    "eve": {"email": "eve@elsewhere.example", "email_verified": True},
    "uma": {"email": "ana@example.org", "email_verified": False},
}
_AT_THE_DOOR: Final = (
    Shot("sign-in", "", ".badge.waiting"),
    Shot("signed-in", "?metric=health.self_rated", ".signed-in", "ana"),
    Shot("not-a-reader", "", ".badge.problem", "eve"),
    Shot("unverified", "", ".badge.problem", "uma"),
)
_ENDED: Final = Shot("sign-in-ended", "", ".badge.waiting", "ana")

# What the documentation shows.
_SHOWN: Final = {
    "open-light-1280",
    "closed-dark-1280",
    "away-light-390",
    "plan-light-1280",
    "over-time-light-1280",
    "compare-light-1280",
    "privacy-dark-1280",
}


def main() -> None:
    """Bring up an aggregator with reports, and photograph its page."""
    parser = argparse.ArgumentParser(description="Photograph the page in each of its states.")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every state, theme and width")
    every = parser.parse_args().all
    folder = every or _ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)

    def take(browser: Browser, url: str, shot: Shot) -> None:
        for look in _LOOKS:
            name = f"{shot.state}-{look.theme}-{look.width}"
            if every or name in _SHOWN:
                _photograph(browser, url, shot, look, folder / f"{name}.png")

    with tempfile.TemporaryDirectory() as scratch, chromium() as browser:
        _photograph_all(Path(scratch), browser, take)


def _photograph_all(
    scratch: Path, browser: Browser, take: Callable[[Browser, str, Shot], None]
) -> None:
    operator = Operator.create(scratch / "keys")
    path = scratch / "metrics.hubbub"
    path.write_bytes(operator.sign(_METRICS))
    bundle = Bundle.load(path, operator_key=operator.key)
    with (
        ServeProcess(operator, path, scratch / "reports.sqlite3") as serve,
        DashboardProcess(serve.private) as dashboard,
    ):
        _report(serve, bundle)
        for shot in _LIVE:
            take(browser, dashboard.url, shot)
        _photograph_door(scratch, serve.private, lambda url, shot: take(browser, url, shot))
        serve.kill()
        take(browser, dashboard.url, _AWAY)
    with DashboardProcess(_NOBODY) as dashboard:
        take(browser, dashboard.url, _NOT_CONNECTED)


def _photograph_door(scratch: Path, aggregator: str, take: Callable[[str, Shot], None]) -> None:
    """What those see who need to sign in."""
    with provider(_PEOPLE_SIGNED_IN) as accounts:
        back = "http://localhost:{port}/oauth2callback"
        login = write_login(scratch / "login.toml", back, issuer=accounts.issuer)
        with DashboardProcess(aggregator, "--login", str(login)) as dashboard:
            url = dashboard.url.replace("127.0.0.1", "localhost")
            for shot in _AT_THE_DOOR:
                take(url, shot)
            accounts.issued = lambda: time.time() - 3_600 * HOURS - 1
            take(url, _ENDED)


def _report(serve: ServeProcess, bundle: Bundle) -> None:
    with _PEOPLE.open(newline="") as file:
        people = list(csv.DictReader(file))
    ratings = bundle.metrics["health.self_rated"].domain.labels
    healths = [ratings.index(person["health"]) for person in people[:_FEW]]
    visits = [_visits(int(person["doctor_visits"])) for person in people]
    answer(serve, bundle, "health.self_rated", healths)
    answer(serve, bundle, "health.doctor_visits", visits)
    close_round(serve, "health.doctor_visits")
    # Each name half as common as the one before.
    names = [name for name in range(8) for _ in range(_FEW >> (name + 1))]
    answer(serve, bundle, "names", names)
    answer(serve, bundle, "drink.favourite", [text_index("tea")] * _FEW)
    everybody = [ratings.index(person["health"]) for person in people]
    _report_months(serve, bundle, everybody)


def _report_months(serve: ServeProcess, bundle: Bundle, healths: list[int]) -> None:
    """Others every month; none in one of them, and the newest still answer."""
    for month in range(_MONTHS):
        asked = healths[month::_MONTHS]
        if month >= _WORSE_FROM:
            # Every other one who would have said "excellent" says "good".
            asked = [health or place % 2 for place, health in enumerate(asked)]
        if month != _SILENT:
            answer(serve, bundle, "health.monthly", asked, number=month)
        if month < _MONTHS - 1:
            close_round(serve, "health.monthly", month)


def _visits(number: int) -> int:
    return next(value for first, value in _VISITS if number >= first)


def _photograph(browser: Browser, url: str, shot: Shot, look: Look, path: Path) -> None:
    viewport: ViewportSize = {"width": look.width, "height": 800}
    with browser.new_context(color_scheme=look.theme, viewport=viewport) as context:
        page = context.new_page()
        page.goto(f"{url}/{shot.query}")
        if shot.person:
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("link", name=shot.person, exact=True).click()
        page.wait_for_selector(shot.waits_for, state="attached")
        # The page scrolls inside itself, so it is the window that has to grow.
        page.wait_for_timeout(_SETTLING)
        viewport["height"] = page.evaluate(
            "document.querySelector('.stMainBlockContainer').scrollHeight"
        )
        page.set_viewport_size(viewport)
        page.wait_for_timeout(_SETTLING)
        page.screenshot(path=path)


if __name__ == "__main__":
    main()
