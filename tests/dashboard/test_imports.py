"""What is loaded for every viewer's first look."""

import subprocess
import sys


def test_the_pages_load_scipy_only_when_they_need_it() -> None:
    said = "import sys, hubbub_dashboard.navigation; print([*filter('scipy'.__eq__, sys.modules)])"
    loaded = subprocess.run([sys.executable, "-c", said], stdout=subprocess.PIPE, check=True)
    assert loaded.stdout.strip() == b"[]"
