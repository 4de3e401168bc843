"""What was recorded is made again as what it was, and nothing is imported for it."""

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
from typing import Any

import msgspec
import pytest

from playhead.event.plain import describe_error
from playhead.event.plainer import plain
from playhead.event.rebuilt import Loaded, Rebuilder, StandIn, is_whole


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    kept: list[int] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept.append(0)


class Frozen(msgspec.Struct, frozen=True):
    name: str


class Ordered(list[int]):
    def __init__(self, first: int, second: int) -> None:
        super().__init__([first, second])


class Odd(OSError):
    def __init__(self, text: str, *, code: int) -> None:
        super().__init__(5, text, "a file")
        self.code = code


class Mute(Exception):
    def __str__(self) -> str:
        return f"mute {self.what}"  # type: ignore[attr-defined]


def again(value: Any) -> Any:
    rebuilder = Rebuilder()
    found = rebuilder.value(plain(value))
    assert not rebuilder.missing
    return found


@pytest.mark.parametrize(
    "value",
    [
        Point(1), Color.RED, Frozen("n"), {"a": [Point(2), (Color.RED,)]}, Ordered(1, 2), {Color.RED: 1},
        collections.Counter("aab"), collections.OrderedDict(b=1, a=2), {(1, 2): "pair"},
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_is_made_again(value: Any) -> None:
    found = again(value)
    assert type(found) is type(value)
    assert found == value
    assert repr(found) == repr(value)


def test_a_class_that_was_made_inside_of_a_function_is_found_while_it_is_there() -> None:
    @dataclasses.dataclass
    class Local:
        number: int

    assert again(Local(3)) == Local(3)


def test_a_class_that_is_not_loaded_is_named_and_not_imported() -> None:
    assert "antigravity" not in sys.modules
    rebuilder = Rebuilder()
    found = rebuilder.value({"$object": "antigravity.Thing", "fields": {"a": 1}})
    assert isinstance(found, StandIn)
    assert rebuilder.missing == ["antigravity.Thing"]
    assert "antigravity" not in sys.modules


def test_what_a_module_would_load_when_asked_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    lazy = types.ModuleType("lazy_module")
    lazy.__getattr__ = lambda name: pytest.fail(f"asked for {name}")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", lazy)
    assert Loaded().get("lazy_module.Thing") is None


def test_a_stand_in_says_what_the_value_said() -> None:
    found = Rebuilder().value(plain(object))
    assert isinstance(found, StandIn)
    assert repr(found) == repr(object)


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        ([1, {"a": Point(1)}], True), ([object()], False), ({"deep": {"er": (lambda: 0,)}}, False),
        (collections.defaultdict(int), False), ("$repr", True),
    ],
    ids=["objects", "object", "function", "defaultdict", "text"],
)  # fmt: skip
def test_it_is_known_what_cannot_be_made_again(value: Any, whole: bool) -> None:
    assert is_whole(plain(value)) is whole


def raised(error: BaseException) -> BaseException:
    return Rebuilder().error(plain(describe_error(error, whole=True)))


def test_an_error_is_of_the_same_class_with_the_same_parts() -> None:
    error = Odd("broken", code=3)
    error.add_note("a note")
    found = raised(error)
    assert type(found) is Odd
    assert (str(found), found.args, vars(found)) == (str(error), error.args, vars(error))
    assert found.filename == "a file"


def test_an_error_whose_text_depends_on_what_was_not_kept_says_the_same() -> None:
    error = Mute()
    error.what = object()  # type: ignore[attr-defined]
    found = raised(error)
    assert isinstance(found, Mute)
    assert str(found).startswith("mute <object object")


def test_an_error_of_a_class_that_is_not_loaded_is_one_of_its_builtin_class() -> None:
    described = {"type": "elsewhere.Failed", "message": "no", "args": ["no"], "base": "LookupError"}
    found = Rebuilder().error(described)
    assert isinstance(found, LookupError)
    assert (type(found).__module__, type(found).__name__, str(found)) == ("elsewhere", "Failed", "no")


def test_groups_and_causes_come_back() -> None:
    error = ExceptionGroup("several", [ValueError(1), Odd("x", code=2)])
    error.__cause__ = KeyError("inner")
    found = raised(error)
    assert isinstance(found, ExceptionGroup)
    assert (repr(found), str(found)) == (repr(error), str(error))
    assert isinstance(found.__cause__, KeyError)


def test_an_error_with_an_attribute_that_its_class_computes_comes_back() -> None:
    class Computed(Exception):
        @property
        def code(self) -> int:
            return int(self.args[0])

    error = Computed(7)
    error.__dict__["code"] = "beside"
    found = raised(error)
    assert isinstance(found, Computed)
    assert (found.code, vars(found)) == (7, {"code": "beside"})


def test_an_import_error_knows_its_module_again() -> None:
    found = raised(ImportError("no module", name="a.b", path="/x"))
    assert isinstance(found, ImportError)
    assert (str(found), found.name, found.path) == ("no module", "a.b", "/x")
