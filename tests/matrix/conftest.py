"""Run each program once for all tests that look at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.matrix.harness import Entry, Ran, Replayed, ran, replayed


class Runs:
    """Run a program when the first of its tests asks, with all scenarios that were chosen."""

    def __init__(self, chosen: dict[Entry, list[str]], folder: Path) -> None:
        self._chosen, self._folder = chosen, folder
        self._replayed: dict[Entry, Replayed] = {}
        self._done: dict[tuple[Entry, bool], Ran] = {}

    def bare(self, entry: Entry) -> Ran:
        """Return what the program does by itself."""
        return self._ran(entry, False)

    def recorded(self, entry: Entry) -> Ran:
        """Return what it does under a recording."""
        return self._ran(entry, True)

    def replayed(self, entry: Entry) -> Replayed:
        """Return what it does when that is replayed."""
        if entry not in self._replayed:
            self._replayed[entry] = replayed(entry, self._chosen[entry], self._folder)
        return self._replayed[entry]

    def _ran(self, entry: Entry, recorded: bool) -> Ran:
        if (entry, recorded) not in self._done:
            self._done[entry, recorded] = ran(entry, self._chosen[entry], recorded, self._folder)
        return self._done[entry, recorded]


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Share what programs did between the tests, and between the workers, which have a folder each below one."""
    base = tmp_path_factory.getbasetemp()
    chosen: dict[Entry, list[str]] = {}
    for item in request.session.items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "scenario" in parameters and "entry" in parameters:
            names = chosen.setdefault(parameters["entry"], [])
            if parameters["scenario"] not in names:
                names.append(parameters["scenario"])
    return Runs(chosen, (base.parent if hasattr(request.config, "workerinput") else base) / "matrix")
