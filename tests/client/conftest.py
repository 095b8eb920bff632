"""What the client's tests share: an operator."""

import pytest

from tests.bundles import Operator


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """One operator's keys folder; tests must not change it."""
    return Operator.create(tmp_path_factory.mktemp("operator") / "keys")
