"""What the aggregator's tests share: an operator, and stores of every kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.bundles import Operator

SQLITE = "sqlite"


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """One operator's keys folder; tests must not change it."""
    return Operator.create(tmp_path_factory.mktemp("operator") / "keys")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """Another operator, whose bundles are nobody's business here."""
    return Operator.create(tmp_path_factory.mktemp("stranger") / "keys")


@pytest.fixture(scope="session")
def servers() -> Iterator[postgres.Servers]:
    """The PostgreSQL servers that run, each started when the first test asks for it."""
    with postgres.Servers() as servers:
        yield servers


@pytest.fixture(params=postgres.KINDS)
def server(request: pytest.FixtureRequest, servers: postgres.Servers) -> postgres.Server:
    """Each PostgreSQL server in turn."""
    return servers.get(request.param)


@pytest.fixture
def database(server: postgres.Server) -> Iterator[str]:
    """The URL of an empty database on each server in turn."""
    with server.database() as url:
        yield url


@pytest.fixture(params=[SQLITE, *postgres.KINDS])
def location(
    request: pytest.FixtureRequest, servers: postgres.Servers, tmp_path: Path
) -> Iterator[str]:
    """Where each kind of store can be made: a path, or the URL of an empty database."""
    if request.param == SQLITE:
        yield str(tmp_path / "store.sqlite3")
        return
    with servers.get(request.param).database() as url:
        yield url
