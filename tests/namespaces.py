"""Linux namespaces: a disk, or a network, of a test's own, without being root."""

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest

MOUNTS = ("unshare", "--map-root-user", "--mount")
NETWORK = ("unshare", "--map-root-user", "--net")


def require(prefix: Sequence[str]) -> None:
    """Skip the test where the system does not permit it; in CI it must, and the test fails."""
    permitted = shutil.which(prefix[0]) is not None and (
        subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    )
    if not permitted and "CI" not in os.environ:
        pytest.skip(f"this system does not permit {' '.join(prefix)}")
