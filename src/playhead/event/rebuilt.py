"""Make of a recorded value what it was, classes of the agent included, as far as the program has them.

`plain.restore` leaves the agent's own classes marked; a replay runs inside of the program, which has them. A class is
looked up by its name among what the program itself has loaded: nothing is imported because a record says so.
"""

from __future__ import annotations

import builtins
import dataclasses
import datetime as dt
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from playhead.event.plain import builtin_base, class_name, error_message, restore


class StandIn:
    """Something in the place of a value that cannot be made again: it says of itself what that one said."""

    def __init__(self, text: str, kind: str) -> None:
        self._text, self._kind = text, kind

    def __repr__(self) -> str:
        return self._text


class Loaded:
    """The classes of the program that runs, by the names that `class_name` gives them."""

    def __init__(self) -> None:
        self._known: dict[str, type] = {}

    def get(self, name: Any) -> type | None:
        """Return a class; None where the program has not loaded one of this name."""
        if not isinstance(name, str):
            return None
        found = self._known.get(name)
        if found is None:
            found = _in_modules(name) or _among_subclasses(name)
            if found is not None and "<locals>" not in name:  # of which there is another one with each call
                self._known[name] = found
        return found


def _in_modules(name: str) -> type | None:
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:cut]))
        for part in parts[cut:] if found is not None else ():
            found = getattr(found, "__dict__", {}).get(part)  # not getattr: a module may import when asked
        if isinstance(found, type):
            return found
    return None


def _among_subclasses(name: str) -> type | None:
    """Return the latest class of this name that was made inside of a function, or by a call."""
    if "<locals>" not in name and "[" not in name:
        return None
    found, seen, left = None, set(), [object]
    while left:
        for kind in type.__subclasses__(left.pop()):
            if kind not in seen:
                seen.add(kind)
                left.append(kind)
                if class_name(kind) == name:
                    found = kind
    return found


def is_whole(value: Any) -> bool:
    """Say whether a plain value holds nothing that can not be made again, whatever the program has loaded."""
    if isinstance(value, list):
        return all(map(is_whole, value))
    if not isinstance(value, dict):
        return True
    first = next(iter(value), "")
    lost = first in ("$repr", "$cycle", "$commit") or value.get("$as") == "collections.defaultdict"  # its factory
    return not lost and all(map(is_whole, value.values()))


class Rebuilder:
    """Make values again. `missing` lists the classes that were looked for and are not there."""

    def __init__(self, classes: Loaded | None = None) -> None:
        self._classes = classes or Loaded()
        self.missing: list[str] = []

    def value(self, value: Any) -> Any:
        """Return what a plain value was, with new containers throughout."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        first = next(iter(value), "")
        make = self._MAKE.get(first)
        if make is not None:
            return make(self, value)
        if first.startswith("$"):
            return restore(value)
        return {key: self.value(item) for key, item in value.items()}

    def error(self, described: Mapping[str, Any]) -> BaseException:
        """Return an exception that was described as a whole: of the same class, with the same text."""
        name, message = str(described.get("type")), str(described.get("message"))
        kind = self._error_class(name, described)
        args = self.value(list(described.get("args") or ()))
        if "errors" in described:
            args = [message.rpartition(" (")[0], [self.error(inner) for inner in described["errors"]]]
        error = _raw_error(kind, args)
        if error is None:  # such as those of compiled code, that nobody else can make
            error = _raw_error(_like(name, builtin_base(kind)), args) or Exception(*args)
        attributes = self.value(described.get("attributes") or {})
        own = builtin_base(kind)
        for attribute, item in attributes.items():
            if hasattr(own, attribute):  # such as the name of a module that was not found
                setattr(error, attribute, item)
            else:
                error.__dict__[attribute] = item  # whatever the class has of that name
        for note in described.get("notes") or ():
            error.add_note(note)
        if isinstance(described.get("cause"), Mapping):
            cause = self.error(described["cause"])
            error.__context__ = cause
            if described.get("chained"):
                error.__cause__ = cause
        return error if error_message(error) == message else _saying(error, message)

    def _error_class(self, name: str, described: Mapping[str, Any]) -> type[BaseException]:
        found = self._classes.get(name) if "." in name else getattr(builtins, name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        self.missing.append(name)
        base = getattr(builtins, str(described.get("base")), Exception)
        return _like(name, base if isinstance(base, type) and issubclass(base, BaseException) else Exception)

    # One for each mark that holds something else.

    def _tuple(self, value: Mapping[str, Any]) -> Any:
        items = self.value(value["$tuple"])
        if "type" not in value:
            return tuple(items)
        kind = self._class(value["type"])
        return tuple(items) if kind is None else tuple.__new__(kind, items)

    def _pairs(self, value: Mapping[str, Any]) -> Any:
        return {self.value(key): self.value(item) for key, item in value["$dict"]}

    def _enum(self, value: Mapping[str, Any]) -> Any:
        owner, _, member = value["$enum"].rpartition(".")
        kind: Any = self._class(owner)
        held = self.value(value["value"])
        if kind is None:
            return StandIn(str(value["$enum"]), owner)
        known = kind.__members__.get(member)  # a combination of flags is no member
        return kind(held) if known is None else known

    def _as(self, value: Mapping[str, Any]) -> Any:
        held, kind = self.value(value["value"]), self._class(value["$as"])
        return held if kind is None else _instance_of(kind, held)

    def _object(self, value: Mapping[str, Any]) -> Any:
        fields, kind = self.value(value["fields"]), self._class(value["$object"])
        if kind is None:
            return StandIn(f"<{value['$object']}>", str(value["$object"]))
        held = self.value(value["value"]) if "value" in value else None
        # Its own code may change what it is given, so it gets values of its own.
        return _with_fields(kind, fields, held, self.value(value["fields"]))

    def _class(self, name: Any) -> type | None:
        found = self._classes.get(name)
        if found is None:
            self.missing.append(str(name))
        return found

    _MAKE: dict[str, Callable[[Rebuilder, Mapping[str, Any]], Any]] = {
        "$tuple": _tuple,
        "$set": lambda self, value: set(self.value(value["$set"])),
        "$frozenset": lambda self, value: frozenset(self.value(value["$frozenset"])),
        "$dict": _pairs,
        "$enum": _enum,
        "$as": _as,
        "$object": _object,
        "$path": lambda self, value: pathlib.Path(value["$path"]),  # what agents pass around; and it is a pure one too
        "$error": lambda self, value: self.error(value["$error"]),
        "$repr": lambda self, value: StandIn(str(value["$repr"]), str(value.get("type"))),
        "$cycle": lambda self, value: StandIn("...", "cycle"),
        "$redacted": lambda self, value: f"[redacted:{value['$redacted']}]",
    }


# Objects.


def _with_fields(kind: Any, fields: dict[str, Any], held: Any, given: dict[str, Any]) -> Any:
    """Return an object of the agent's with these fields, whatever its own code would make of them."""
    if hasattr(kind, "model_construct") and hasattr(kind, "model_fields"):  # pydantic: not validated once more
        return kind.model_construct(**fields)
    if hasattr(kind, "__struct_fields__"):  # msgspec, which may be frozen
        import msgspec

        made = _made(kind, given, held)
        for name, value in fields.items():
            msgspec.structs.force_setattr(made, name, value)
        return made
    if dataclasses.is_dataclass(kind):
        given = {field.name: given[field.name] for field in dataclasses.fields(kind) if field.init}
    else:
        given = {item.alias: given[item.name] for item in getattr(kind, "__attrs_attrs__", ()) if item.init}
    made = _made(kind, given, held)
    for name, value in fields.items():
        object.__setattr__(made, name, value)  # what was recorded, and not what became of it: frozen ones too
    return made


def _made(kind: Any, given: dict[str, Any], held: Any) -> Any:
    """Return a new object: by its own code, which may set more than its fields; else a bare one."""
    made = _tried(kind, **given)
    if made is None:  # it asks for something that is no field of it
        made = kind.__new__(kind) if held is None or isinstance(held, (dict, list, set)) else kind.__new__(kind, held)
    if isinstance(held, dict):
        dict.clear(made)
        dict.update(made, held)
    elif isinstance(held, list):
        list.__setitem__(made, slice(None), held)
    return made


def _tried(make: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return what code of the agent makes of this; None where it will not."""
    try:
        return make(*args, **kwargs)
    except Exception:
        return None


_RAW: tuple[type, ...] = (str, int, float, bytes, frozenset, complex)


def _instance_of(kind: Any, held: Any) -> Any:
    """Return an instance of a subclass of something plain, that holds this."""
    if isinstance(held, _RAW) and issubclass(kind, type(held)):
        raw: Any = type(held)
        return raw.__new__(kind, held)
    if isinstance(held, dt.datetime) and issubclass(kind, dt.datetime):
        parts = (held.year, held.month, held.day, held.hour, held.minute, held.second, held.microsecond)
        return kind(*parts, tzinfo=held.tzinfo, fold=held.fold)
    if isinstance(held, dt.date) and issubclass(kind, dt.date):
        return kind(held.year, held.month, held.day)
    if isinstance(held, dt.timedelta) and issubclass(kind, dt.timedelta):
        return kind(days=held.days, seconds=held.seconds, microseconds=held.microseconds)
    made = _tried(kind, held)
    if made is not None and _tried(lambda: bool(made == held)):
        return made
    made = kind.__new__(kind)  # its own code takes something else
    if isinstance(held, dict):
        dict.update(made, held)
    elif isinstance(held, list):
        list.extend(made, held)
    elif isinstance(held, set):
        set.update(made, held)
    else:
        return held
    return made


# Exceptions.


def _raw_error(kind: type[BaseException], args: list[Any]) -> BaseException | None:
    """Return an exception made of these by Python itself: the code of its class would ask for something else."""
    base = builtin_base(kind)

    def make() -> BaseException:
        error: BaseException = base.__new__(kind, *args)
        base.__init__(error, *args)
        return error

    made = _tried(make)
    return made if isinstance(made, BaseException) else None


def _like(name: str, base: type[BaseException]) -> type[BaseException]:
    """Return a class of this name, in place of one that is not there."""
    module, _, short = name.rpartition(".")
    return type(short, (base,), {"__module__": module or "builtins", "__qualname__": short})


def _saying(error: BaseException, message: str) -> BaseException:
    """Return the error with this text, whatever its class makes of it."""
    kind = type(error)
    names = {"__str__": lambda self: message, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    try:
        error.__class__ = type(kind.__name__, (kind,), names)
    except TypeError:  # a class of another shape, such as those of Python itself
        changed = _raw_error(type(kind.__name__, (kind,), names), list(error.args))
        error = error if changed is None else changed
    return error
