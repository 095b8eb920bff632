"""The link that one came by: only this page's own is followed after signing in."""

import pytest

from hubbub_dashboard.access.way_back import way_back

HOST = "stats.example.org"


@pytest.mark.parametrize(
    ("referer", "base", "path"),
    [
        (f"https://{HOST}/", "", "/"),
        (
            f"https://{HOST}/?metric=a%20b&order=Largest+first",
            "",
            "/?metric=a%20b&order=Largest+first",
        ),
        (f"https://{HOST}/stats/health", "/stats", "/stats/health"),
        (f"https://{HOST}/stats/health", "", "/stats/health"),
        ("", "", None),
        (f"https://{HOST}", "", None),
        ("https://evil.example/health", "", None),
        (f"https://{HOST}.evil.example/health", "", None),
        (f"https://{HOST}@evil.example/health", "", None),
        (f"https://{HOST}//evil.example", "", None),
        (f"https://{HOST}/\\evil.example", "", None),
        (f"https://{HOST}/a\\b", "", None),
        (f"https://{HOST}/a b", "", None),
        (f"https://{HOST}/other", "/stats", None),
        (f"https://{HOST}/statsother", "/stats", None),
        (f"https://{HOST}/{'x' * 2_000}", "", None),
        ("https://[", "", None),
    ],
)
def test_way_back(referer: str, base: str, path: str | None) -> None:
    assert way_back(referer, HOST, base) == path
