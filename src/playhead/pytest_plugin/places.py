"""Read what the mark of a test asks for, and say where its cassette lies."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead.errors import UsageError
from playhead.store.cassettes.form import LINES, form_of

FOLDER = "cassettes"
_OPTIONS = ("name", "waive", "on_deviation", "ambient", "allow")
_UNSAFE = re.compile(r"[^\w.\-\[\]]+", re.ASCII)
_DIGEST_CHARACTERS = 8


@dataclass(frozen=True)
class Wanted:
    """What `@pytest.mark.cassette(...)` says."""

    name: str | None = None
    waive: tuple[str, ...] = ()
    on_deviation: str = "raise"
    ambient: bool = False
    allow: tuple[str, ...] = ()

    @classmethod
    def of(cls, mark: Any) -> Wanted:
        """Read a mark; None for a test that has none."""
        if mark is None:
            return cls()
        given = dict(zip(_OPTIONS, mark.args[:1], strict=False)) | mark.kwargs
        unknown = [name for name in given if name not in _OPTIONS]
        if unknown or len(mark.args) > 1:
            raise UsageError(
                f"@pytest.mark.cassette does not take {', '.join(unknown) or 'so many arguments'}",
                hint=f"It takes {', '.join(_OPTIONS)}; only the name without saying so.",
            )
        if given.get("on_deviation", "raise") not in ("raise", "nearest"):
            raise UsageError(f"on_deviation={given['on_deviation']!r}", hint='It is "raise" or "nearest".')
        for name in ("waive", "allow"):
            value = given.get(name, ())
            given[name] = (value,) if isinstance(value, str) else tuple(value)
        name = given.pop("name", None)
        return cls(name=None if name is None else str(name), **given)

    def place(self, module: Path, test: str, name: str) -> Path:
        """Return the path of the cassette: beside the test, unless the mark names another one."""
        named = self.name
        if named is not None and form_of(Path(named)) is not None:
            return module.parent / named
        folder = module.parent / FOLDER
        if named is not None:
            return folder / f"{named}{LINES}"
        within = test.partition("::")[2].removesuffix(name).split("::")
        return folder / module.stem / f"{safe('.'.join((*filter(None, within), name)))}{LINES}"


def owners(tests: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, str]]:
    """Find the tests, given with their marks, whose cassette is that of a test before; return them with its name."""
    known: dict[str, str] = {}
    for test, mark in tests:
        try:
            path = Wanted.of(mark).place(test.path, test.nodeid, test.name)
        except UsageError:
            continue  # which is told when its turn comes
        owner = known.setdefault(os.path.normpath(path), test.nodeid)
        if owner != test.nodeid:
            yield test, owner


def taken(path: Path, test: str, owner: str) -> UsageError:
    """Say that a cassette is that of another test."""
    return UsageError(
        f"{test} and {owner} have the same cassette, {path.name}: each would write over that of the other",
        hint="Give each test a name of its own, or none: then it is named after the test and its parameters.",
    )


def safe(name: str) -> str:
    """Return a name that any file system takes, and that no other test has."""
    plain = _UNSAFE.sub("-", name)
    if plain == name and len(name) <= _limits.CASSETTE_NAME_CHARACTERS_MAX:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{plain[: _limits.CASSETTE_NAME_CHARACTERS_MAX]}-{digest}"
