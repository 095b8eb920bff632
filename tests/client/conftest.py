"""What the client's tests share: an operator."""

from collections.abc import Iterator

import pytest

from hubbub.ledger import Ledger
from tests.bundles import Operator


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """One operator's keys folder; tests must not change it."""
    return Operator.create(tmp_path_factory.mktemp("operator") / "keys")


@pytest.fixture
def empty_ledger() -> Iterator[Ledger]:
    """A ledger in memory that nothing was written into."""
    ledger = Ledger.open(None)
    yield ledger
    ledger.close()
