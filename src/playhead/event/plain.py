"""Turn Python values into JSON, lossless or visibly marked, and back.

A value that JSON has no form for becomes an object with one `$` key that names what it was (`MARKS`). An object of the
agent that itself has a `$` key, or a key that is not a string, becomes `$dict`, a list of pairs: so a mark is never
ambiguous. `restore` undoes every mark that needs no foreign class; it never imports, evaluates or unpickles anything.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import hashlib
import os
import pathlib
import re
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from playhead import _limits
from playhead.errors import PlayheadError

MARKS = {
    "$bytes": "bytes, base64",
    "$bytearray": "bytearray, base64",
    "$str": "text that is not valid Unicode: base64 of UTF-8 with surrogates",
    "$float": "nan, inf or -inf",
    "$int": "an integer beyond 2^53, decimal",
    "$complex": "[real, imaginary]",
    "$tuple": "a tuple; `type` names a named tuple",
    "$set": "a set, sorted by its JSON",
    "$frozenset": "a frozenset, sorted by its JSON",
    "$dict": "pairs of a dict whose keys are not plain strings",
    "$datetime": "ISO 8601",
    "$date": "ISO 8601",
    "$time": "ISO 8601",
    "$timedelta": "[days, seconds, microseconds]",
    "$decimal": "decimal.Decimal, text",
    "$fraction": "[numerator, denominator]",
    "$uuid": "UUID, text",
    "$path": "a pure path, text",
    "$enum": "an enum member, `value` beside it",
    "$object": "a dataclass, pydantic model, msgspec struct or attrs object: its class, `fields` beside it",
    "$as": "an instance of a subclass of a JSON type: its class, `value` beside it",
    "$error": "an exception",
    "$cycle": "a value that contains itself: how many levels up the ancestor is",
    "$repr": "a value that cannot be restored: its repr, `type` beside it; `digest` where content was cut off",
    "$redacted": "a secret was here: the rule that removed it",
    "$same": "a value this run already holds: <seq>#<JSON pointer into that event's data>",
    "$extends": "an array that begins like one this run already holds; `keep` items of it, `then` these",
    "$blob": "a value kept beside the timeline: SHA-256, `len`, and `as`: text, json or bytes",
    "$commit": "an erasable value: SHA-256 of salt and bytes, `len` beside it",
}


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # differs from run to run, and with it would the key of a call
_HOPELESS = (TypeError, ValueError, ArithmeticError)  # what undoing a mark may raise


_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "capture", "")


_VALUE_MARKS = frozenset(MARKS) - {"$same", "$extends", "$blob", "$commit"}  # those that stand for themselves


class Mark(dict[str, Any]):
    """A marked value; told apart from an agent's own dict, whose `$` keys must be escaped."""


def as_marks(value: Any) -> Any:
    """Return a value that was read from JSON so that its marks are marks again, and not an agent's own keys."""
    if isinstance(value, list):
        return [as_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = {key: as_marks(item) for key, item in value.items()}
    return Mark(items) if next(iter(items), None) in _VALUE_MARKS else items


def class_name(kind: type) -> str:
    """Name a class so that a person can find it."""
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except Exception:  # a metaclass that refuses to be looked at
        return type.__repr__(kind)


def mark(value: Any) -> Any:
    """Return one level of JSON for a value that JSON has no form for; what is inside may need marking in turn.

    Never raises: a value that resists everything becomes `$repr`.
    """
    kind = type(value)
    known = _MARKERS.get(kind)
    try:
        return known(value) if known else _mark_by_trait(value, kind)
    except (Exception, SystemExit) as problem:
        return _unrepresentable(kind, problem)


def text_mark(value: str, gate: Callable[[bytes], bytes] | None = None) -> Any:
    """Return the value itself, or its mark when it holds lone surrogates; its bytes pass the gate first."""
    try:
        value.encode()
    except UnicodeEncodeError:
        data = value.encode("utf-8", "surrogatepass")
        return Mark({"$str": _base64(data if gate is None else gate(data))})
    return value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _mark_float(value: float) -> Any:
    return value if value - value == 0.0 else Mark({"$float": repr(float(value))})


def _mark_int(value: int) -> Any:
    if -_limits.INTEGER_EXACT_MAX <= value <= _limits.INTEGER_EXACT_MAX:
        return int(value)
    try:
        return Mark({"$int": str(int(value))})
    except ValueError:  # beyond the interpreter's limit on decimal digits
        return Mark({"$int": hex(value)})


def _mark_dict(value: Mapping[Any, Any]) -> Any:
    if all(type(key) is str and key[:1] != "$" for key in value):
        return dict(value)
    return Mark({"$dict": [[key, item] for key, item in value.items()]})


def _mark_moment(name: str, value: dt.datetime | dt.time) -> Any:
    zone = getattr(value.tzinfo, "key", None)  # a named zone is more than its offset on that day
    out = Mark({name: value.isoformat()})
    if zone:
        out["zone"] = zone
    if value.fold:
        out["fold"] = 1
    return out


_MARKERS: dict[type, Callable[[Any], Any]] = {
    float: _mark_float,
    int: _mark_int,
    dict: _mark_dict,
    bytes: lambda value: Mark({"$bytes": _base64(value)}),
    bytearray: lambda value: Mark({"$bytearray": _base64(bytes(value))}),
    memoryview: lambda value: Mark({"$bytes": _base64(value.tobytes())}),
    complex: lambda value: Mark({"$complex": [value.real, value.imag]}),
    tuple: lambda value: Mark({"$tuple": list(value)}),
    set: lambda value: Mark({"$set": list(value)}),
    frozenset: lambda value: Mark({"$frozenset": list(value)}),
    dt.datetime: lambda value: _mark_moment("$datetime", value),
    dt.date: lambda value: Mark({"$date": value.isoformat()}),
    dt.time: lambda value: _mark_moment("$time", value),
    dt.timedelta: lambda value: Mark({"$timedelta": [value.days, value.seconds, value.microseconds]}),
    decimal.Decimal: lambda value: Mark({"$decimal": str(value)}),
    fractions.Fraction: lambda value: Mark({"$fraction": [value.numerator, value.denominator]}),
    uuid.UUID: lambda value: Mark({"$uuid": str(value)}),
}
_CONTENT: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    dict: lambda value: dict(dict.items(value)),
    list: list.copy,
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}
_MARKED_BASES: tuple[Any, ...] = (
    dt.datetime, dt.date, dt.time, dt.timedelta, decimal.Decimal, fractions.Fraction, uuid.UUID, complex,
)  # fmt: skip


def _mark_by_trait(value: Any, kind: type) -> Any:
    if isinstance(value, enum.Enum):
        return Mark({"$enum": f"{class_name(kind)}.{value.name}", "value": value.value})
    if issubclass(kind, BaseException):
        return Mark({"$error": describe_error(value, whole=True)})
    if isinstance(value, pathlib.PurePath):
        return Mark({"$path": str(value)})
    if isinstance(value, tuple):
        return Mark({"$tuple": list(value), "type": class_name(kind)})
    fields = fields_of(value, kind)
    if fields is not None:
        out = Mark({"$object": class_name(kind), "fields": _mark_dict(fields)})
        held = next((content(value) for base, content in _CONTENT.items() if isinstance(value, base)), None)
        if held is not None:  # also a list or a dict, with items of its own
            out["value"] = held
        return out
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):  # a scalar
        return Mark({"$as": class_name(kind), "value": value.item()})
    for base in _CONTENT:
        if isinstance(value, base):
            plain = _CONTENT[base](value)  # what it holds, whatever its own methods answer
            return Mark({"$as": class_name(kind), "value": plain})
    for base in _MARKED_BASES:
        if isinstance(value, base):
            return Mark({"$as": class_name(kind), "value": _MARKERS[base](value)})
    return Mark({"$repr": _short(_ADDRESS.sub(" at 0x…", repr(value))), "type": class_name(kind)})


def fields_of(value: Any, kind: type) -> Mapping[str, Any] | None:
    """Return the fields of a dataclass, pydantic model, msgspec struct or attrs object; None for anything else."""
    if kind is type or isinstance(value, type):
        return None
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(kind, "model_fields") and hasattr(kind, "model_dump"):  # pydantic 2, without importing it
        extra = getattr(value, "__pydantic_extra__", None) or {}
        return {**{name: getattr(value, name) for name in kind.model_fields}, **extra}
    if hasattr(kind, "__struct_fields__"):  # msgspec
        return {name: getattr(value, name) for name in kind.__struct_fields__}
    if hasattr(kind, "__attrs_attrs__"):
        return {item.name: getattr(value, item.name) for item in kind.__attrs_attrs__}
    return None


def _short(text: str) -> str:
    over = len(text) - _limits.REPR_CHARACTERS_MAX
    if over <= 0:
        return text
    # The digest keeps two values apart that differ only in what is left out.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: _limits.REPR_CHARACTERS_MAX]}… and {over} more characters, sha256 {digest}"


def _unrepresentable(kind: type, problem: BaseException) -> Mark:
    name = class_name(kind)
    return Mark({"$repr": f"<{name}: {type(problem).__name__} while looking at it>", "type": name})


def describe_error(error: BaseException, *, whole: bool = False) -> dict[str, Any]:
    """Describe an exception: type, message, where it was raised, what caused it. Never raises.

    With `whole` it holds what the exception is made of too, so that it can be raised again.
    """
    return _describe(error, 0, set(), whole)


def _describe(error: BaseException, depth: int, seen: set[int], whole: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"type": class_name(type(error)).removeprefix("builtins."), "message": error_message(error)}
    if id(error) in seen:
        out["again"] = True  # described already: errors refer to each other in circles
        return out
    seen.add(id(error))
    try:
        _trace(error, out, depth, seen, whole)
        if whole:
            _parts(error, out)
    except Exception as problem:
        out["unreadable"] = type(problem).__name__
    return out


def builtin_base(kind: type[BaseException]) -> type[BaseException]:
    """Return the class of Python's own that an exception is one of."""
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")


def _parts(error: BaseException, out: dict[str, Any]) -> None:
    """Add what the exception is made of, as its builtin class tells it: what a class of the agent says may differ."""
    base = builtin_base(type(error))
    reduced: Any = base.__reduce__(error)
    _, args, *state = reduced
    if not isinstance(error, BaseExceptionGroup) and args:
        out["args"] = list(args)  # of an OSError with the path, which its `args` leave out
    attributes = {name: value for name, value in (state[0] if state else {}).items() if name != "__notes__"}
    if attributes:
        out["attributes"] = attributes
    if type(error) is not base:
        out["base"] = base.__name__
    if error.__cause__ is not None:
        out["chained"] = True


def error_message(error: BaseException) -> str:
    """Return what an exception says of itself."""
    try:
        return error.message if isinstance(error, PlayheadError) else str(error)  # advice is no part of what happened
    except (Exception, SystemExit) as problem:
        return f"<{type(problem).__name__} in __str__>"


def _trace(error: BaseException, out: dict[str, Any], depth: int, seen: set[int], whole: bool) -> None:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(_OWN):  # our wrappers stand in every traceback and explain nothing
            frames.append({"file": code.co_filename, "line": trace.tb_lineno, "name": code.co_name})
        trace = trace.tb_next
    if frames:
        out["frames"] = frames
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list) and notes:
        out["notes"] = [note for note in notes if isinstance(note, str)]
    if depth < 8:
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is not None:
            out["cause"] = _describe(cause, depth + 1, seen, whole)
        if isinstance(error, BaseExceptionGroup):
            out["errors"] = [_describe(inner, depth + 1, seen, whole) for inner in error.exceptions]


_INSIDE = (dict, list)


def restore(value: Any, types: Mapping[str, type] | None = None) -> Any:
    """Undo the marks of a plain value.

    Classes of the agent are not imported: `$object`, `$enum` and `$as` stay marked unless `types` maps their name to a
    class, which is then called with the recorded fields. So does what cannot be undone: a set of such values, a mark
    that was redacted inside. References must have been resolved before.
    """
    if isinstance(value, list):
        return [restore(item, types) if isinstance(item, _INSIDE) else item for item in value]
    if not isinstance(value, dict):
        return value
    first = next(iter(value), "")
    if not first.startswith("$"):
        return {key: restore(item, types) if isinstance(item, _INSIDE) else item for key, item in value.items()}
    undo = _UNDO.get(first)
    if undo is not None and not ("type" in value and first == "$tuple"):
        try:
            return undo(value[first], types)
        except _HOPELESS:
            return value
    if first in ("$datetime", "$time"):
        return _restore_moment(value, first)
    name = value.get("$object") or value.get("$as") or value.get("type")
    target = (types or {}).get(name) if isinstance(name, str) else None
    if target is not None:
        if "$object" in value:
            return target(**restore(value["fields"], types))
        if "$as" in value:
            return target(restore(value["value"], types))
        if "$tuple" in value:
            return target(*restore(value["$tuple"], types))
    if "$enum" in value and types:
        owner, _, member = value["$enum"].rpartition(".")
        if owner in types:
            known = getattr(types[owner], member, None)  # a combination of flags has no member of its own
            return types[owner](restore(value["value"], types)) if known is None else known
    return value


def _restore_moment(value: Mapping[str, Any], name: str) -> Any:
    try:
        moment: Any = (dt.datetime if name == "$datetime" else dt.time).fromisoformat(value[name])
    except _HOPELESS:
        return value
    if value.get("zone"):
        import zoneinfo

        try:
            moment = moment.replace(tzinfo=zoneinfo.ZoneInfo(value["zone"]))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            pass  # this machine has no such zone: the offset that was in force is kept
    return moment.replace(fold=1) if value.get("fold") else moment


def _integer(text: str) -> int:
    if text.lstrip("-").startswith("0x"):
        return int(text, 16)
    limit = sys.get_int_max_str_digits()
    if limit and len(text) > limit:
        raise ValueError(f"an integer of {len(text)} digits is beyond this interpreter's limit of {limit}")
    return int(text)


_UNDO: dict[str, Callable[[Any, Mapping[str, type] | None], Any]] = {
    "$bytes": lambda text, _: base64.b64decode(text, validate=True),
    "$bytearray": lambda text, _: bytearray(base64.b64decode(text, validate=True)),
    "$str": lambda text, _: base64.b64decode(text, validate=True).decode("utf-8", "surrogatepass"),
    "$float": lambda text, _: float(text),
    "$int": lambda text, _: _integer(text),
    "$complex": lambda pair, types: complex(*restore(pair, types)),
    "$tuple": lambda items, types: tuple(restore(items, types)),
    "$set": lambda items, types: set(restore(items, types)),
    "$frozenset": lambda items, types: frozenset(restore(items, types)),
    "$dict": lambda pairs, types: {restore(key, types): restore(item, types) for key, item in pairs},
    "$date": lambda text, _: dt.date.fromisoformat(text),
    "$timedelta": lambda parts, _: dt.timedelta(*parts),
    "$decimal": lambda text, _: decimal.Decimal(text),
    "$fraction": lambda pair, types: fractions.Fraction(*restore(pair, types)),
    "$uuid": lambda text, _: uuid.UUID(text),
    "$path": lambda text, _: pathlib.PurePath(text),
}
