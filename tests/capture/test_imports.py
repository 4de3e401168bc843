"""Modules that somebody else imports are noticed, and nothing of the noticing stays."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

from playhead.capture.imports import AfterImport

NAME = "hooked_by_test"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / f"{NAME}.py"
    path.write_text("value = 1\n")
    yield path
    sys.modules.pop(NAME, None)


@pytest.fixture
def arrived() -> Iterator[list[ModuleType]]:
    """Watch for the module; yields those that came."""
    out: list[ModuleType] = []
    before = list(sys.meta_path)
    watch = AfterImport({NAME: out.append})
    watch.install()
    yield out
    watch.uninstall()
    assert sys.meta_path == before


def test_a_module_arrives_when_its_code_has_run(module: Path, arrived: list[ModuleType]) -> None:
    assert arrived == []
    imported = importlib.import_module(NAME)
    assert arrived == [imported]
    assert imported.value == 1
    spec = imported.__spec__
    assert spec is not None
    assert "exec_module" not in vars(spec.loader)


def test_one_that_is_there_already_arrives_at_once_and_once(module: Path) -> None:
    imported, out = importlib.import_module(NAME), []
    watch = AfterImport({NAME: out.append})
    watch.install()
    importlib.import_module(NAME)
    watch.uninstall()
    assert out == [imported]


def test_it_arrives_again_when_it_is_made_anew(module: Path, arrived: list[ModuleType]) -> None:
    first = importlib.import_module(NAME)
    assert importlib.reload(first) is first
    del sys.modules[NAME]
    second = importlib.import_module(NAME)
    assert second is not first
    assert arrived == [first, first, second]


def test_a_failing_import_fails_as_it_would_and_may_be_tried_again(module: Path, arrived: list[ModuleType]) -> None:
    module.write_text("raise LookupError('not today')\n")
    with pytest.raises(LookupError, match="not today"):
        importlib.import_module(NAME)
    assert arrived == []
    assert NAME not in sys.modules
    module.write_text("value = 22\n")
    importlib.invalidate_caches()
    assert importlib.import_module(NAME).value == 22
    assert len(arrived) == 1


def test_a_missing_module_is_missing_as_before(arrived: list[ModuleType]) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"^No module named '{NAME}'$"):
        importlib.import_module(NAME)
    assert importlib.util.find_spec(NAME) is None


def test_who_only_asks_where_it_is_does_not_make_it_arrive(module: Path, arrived: list[ModuleType]) -> None:
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.origin == str(module)
    assert arrived == []


def test_a_module_that_is_loaded_lazily_arrives_when_it_is_used(module: Path, arrived: list[ModuleType]) -> None:
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = lazy
    spec.loader.exec_module(lazy)
    assert arrived == []
    assert lazy.value == 1
    assert arrived == [lazy]


def test_modules_in_a_zip_share_a_loader_and_only_the_named_one_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrived: list[ModuleType]
) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{NAME}.py", "value = 3\n")
        file.writestr("beside_it.py", "value = 4\n")
    monkeypatch.syspath_prepend(str(archive))
    importlib.util.find_spec(NAME)  # and never loaded
    beside = importlib.import_module("beside_it")
    try:
        assert arrived == []
        named = importlib.import_module(NAME)
        assert arrived == [named]
        assert "exec_module" not in vars(named.__loader__)
    finally:
        for name in (NAME, "beside_it"):
            sys.modules.pop(name, None)
    assert beside.value == 4


class Frozen:
    """A loader as nobody would write it."""

    __slots__ = ()

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.value = 5  # type: ignore[attr-defined]


def test_a_loader_that_cannot_be_watched_still_loads(arrived: list[ModuleType]) -> None:
    class Finder:
        def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
            return importlib.util.spec_from_loader(name, Frozen()) if name == NAME else None

    finder: Any = Finder()
    sys.meta_path.append(finder)
    try:
        assert importlib.import_module(NAME).value == 5
    finally:
        sys.meta_path.remove(finder)
        del sys.modules[NAME]


@pytest.mark.parametrize("fake", [MagicMock(), object(), None], ids=["mock", "object", "none"])
def test_what_a_test_put_in_the_place_of_a_module_is_left_alone(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, NAME, fake)
    out: list[ModuleType] = []
    watch = AfterImport({NAME: out.append})
    watch.install()
    watch.uninstall()
    assert out == []


def test_a_module_that_is_half_imported_arrives_later(module: Path) -> None:
    """A run may be opened while another thread is in the middle of an import."""
    (module.parent / "other_of_test.py").write_text("")
    gates = module.parent / "gates_of_test.py"
    gates.write_text("import threading\nbegun, go_on = threading.Event(), threading.Event()\n")
    module.write_text("import gates_of_test as gates\ngates.begun.set()\ngates.go_on.wait(10)\nvalue = 6\n")
    out: list[Any] = []
    watch = AfterImport({NAME: lambda module: out.append(module.value)})
    try:
        gates_module = importlib.import_module("gates_of_test")
        thread = threading.Thread(target=importlib.import_module, args=(NAME,))
        thread.start()
        assert gates_module.begun.wait(10)
        watch.install()
        assert out == []
        gates_module.go_on.set()
        thread.join()
        importlib.import_module("other_of_test")
        assert out == [6]
    finally:
        watch.uninstall()
        for name in ("gates_of_test", "other_of_test"):
            sys.modules.pop(name, None)


def test_nobody_is_told_after_the_end(module: Path) -> None:
    out: list[ModuleType] = []
    watch = AfterImport({NAME: out.append})
    watch.install()
    spec = importlib.util.find_spec(NAME)
    watch.uninstall()
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.value == 1
    assert out == []
