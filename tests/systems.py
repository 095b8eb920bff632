"""What a system may lack. Where the checks must pass, nothing does: with CI set, nothing skips."""

import os

import pytest

_MAY_SKIP = "CI" not in os.environ

# Windows has none; there a client has no child to be safe from.
needs_fork = pytest.mark.skipif(
    _MAY_SKIP and not hasattr(os, "fork"), reason="this system cannot fork"
)
# Linux alone lists there what a process has open.
needs_proc = pytest.mark.skipif(
    _MAY_SKIP and not os.path.exists("/proc/self/fd"), reason="this system has no /proc"
)
