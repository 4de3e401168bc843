"""Make of what was kept of a read what the function gave back, or raised."""

from __future__ import annotations

import errno
import os
import struct
from datetime import UTC, date, datetime, timedelta
from typing import Any

from playhead.capture.hooks import What
from playhead.event.plain import restore

_EPOCH = datetime(1970, 1, 1)
_TUPLES = {
    "os.uname": "uname_result",
    "os.get_terminal_size": "terminal_size",
    "os.statvfs": "statvfs_result",
    "os.times": "times_result",
}


def as_text(kept: Any) -> Any:
    """Return a text as it was, and what was redacted as the placeholder that names the rule."""
    if isinstance(kept, dict) and "$redacted" in kept:
        return f"[redacted:{kept['$redacted']}]"
    return restore(kept)


def value_of(what: int, kept: Any, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
    """Return what a function gave back that tells something else each time."""
    kept = restore(kept)
    match what:
        case What.SECONDS:
            return kept / 1e9 if isinstance(kept, int) else kept
        case What.MOMENT:
            return _moment(kept, owner, args, named)
        case What.UNIT:
            return struct.unpack("<d", kept)[0]
        case What.BITS:
            return int.from_bytes(kept, "little")
        case What.UUID:
            return _rust_uuid(kept)
        case What.FIRST_RAW:
            return kept, None
        case _:
            return kept


def _rust_uuid(kept: bytes) -> Any:
    import uuid_utils  # type: ignore[import-not-found,unused-ignore]  # the program has it: it asked

    return uuid_utils.UUID(bytes=kept)


def _moment(ns: int, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
    """Return a date or a time of the class that was asked; the last digit tells which of two equal hours it is."""
    micro, fold = divmod(ns, 1000)
    zone = args[0] if args else (named or {}).get("tz")
    plain = _EPOCH + timedelta(microseconds=micro)
    kind = owner if isinstance(owner, type) else datetime
    if not issubclass(kind, datetime):
        return kind(plain.year, plain.month, plain.day) if issubclass(kind, date) else plain.date()
    if zone is not None:
        plain = plain.replace(tzinfo=UTC).astimezone(zone)
        fold = plain.fold
    parts = (plain.year, plain.month, plain.day, plain.hour, plain.minute, plain.second, plain.microsecond)
    return kind(*parts, tzinfo=plain.tzinfo, fold=fold)


def failed(kept: Any, path: Any = None) -> OSError | None:
    """Return the error that asking the system led to; None where it led to an answer."""
    name = kept.get("error") if isinstance(kept, dict) else None
    if name is None:
        return None
    number = getattr(errno, str(name), None)
    if number is None:
        raise _other(str(name))
    return OSError(number, os.strerror(number), path) if path is not None else OSError(number, os.strerror(number))


def _other(name: str) -> BaseException:
    import builtins

    kind = getattr(builtins, name, None)
    return kind() if isinstance(kind, type) and issubclass(kind, BaseException) else OSError(name)


def facts_of(kept: dict[str, Any]) -> os.stat_result:
    """Return what was told of a file."""
    numbers = kept["stat"]
    plain, times = numbers[:7], numbers[7:]
    whole = [times[at] * 10**9 + times[at + 1] for at in (0, 2, 4)]
    names = ("atime", "mtime", "ctime")
    more: dict[str, Any] = {f"st_{name}": _seconds(ns) for name, ns in zip(names, whole, strict=True)}
    more.update({f"st_{name}_ns": ns for name, ns in zip(names, whole, strict=True)})
    return os.stat_result((*plain, *(ns // 10**9 for ns in whole)), more)


def told_of(of: str, kept: dict[str, Any]) -> Any:
    """Return what the system told of itself."""
    value = restore(kept["value"])
    if of in _TUPLES and isinstance(value, list):
        return getattr(os, _TUPLES[of])(value)
    if of == "resource.getrusage" and isinstance(value, list):
        import resource

        return resource.struct_rusage(value)
    return tuple(value) if isinstance(value, list) else value


def _seconds(ns: int) -> float:
    """Return a time as the system's facts have it: rounded twice, as Python does there, and not for clocks."""
    whole, rest = divmod(ns, 1_000_000_000)
    return whole + 1e-9 * rest
