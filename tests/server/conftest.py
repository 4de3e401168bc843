"""One server for all tests that do not disturb each other; each of them uses traces and names of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.serving import Client, Server

QUIET_S = "0.3"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server without keys, whose runs are over soon after their roots."""
    with Server(tmp_path_factory.mktemp("served") / "store", "--quiet", QUIET_S) as started:
        yield started
        assert "Traceback" not in started.log(), started.log()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Return what asks it."""
    asking = server.client()
    yield asking
    asking.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return where a server of one test keeps what it has."""
    return tmp_path / "store"
