"""Turn what git and CI say of a run into rows of the index. A field of the wrong form is no reason to raise."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead._clock import moment_us
from playhead.store.index_values import count

MADE = (None, "trailer", "note")  # links of a commit which say that the run made it
_LINES = ("added", "removed")
_COUNTED_MAX = 2**53


def commit(data: dict[str, Any], time: str) -> tuple[Any, ...]:
    """Return the columns of `commits` for one `git.committed`, as they stand in it; `time` is that of its line."""
    message, moment = data.get("message"), data.get("committed") or data.get("authored")
    known = (data.get(name) for name in ("author", "authored", "committed"))
    told = (data.get("commit"), _first_line(message), *known, _us(moment, time), data.get("link"))
    return (*told, *_size(data), data.get("parents") or None)


def _size(data: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Return how many files a commit changed, and how many lines it added and removed; None of what is not said."""
    files, changes = data.get("files", []), data.get("changes")
    if type(files) is not list or data.get("shallow"):
        return None, None, None
    told = [_mapping(each) for each in changes] if type(changes) is list else []
    added, removed = ([n for n in (count(each.get(name)) for each in told) if n is not None] for name in _LINES)
    return len(files) or None, sum(added) if added else None, sum(removed) if removed else None


def files_made(data: dict[str, Any]) -> list[Any]:
    """Return the files of a commit, where the run made it."""
    files = data.get("files")
    if type(files) is dict:
        # A reference. What it repeats stands in an earlier line of this run; what it adds is here.
        files = files["then"] if type(files.get("then")) is list else [files]
    return files if type(files) is list and data.get("link") in MADE else []


def result(data: dict[str, Any], time: str) -> tuple[Any, ...]:
    """Return the columns of `ci_results` for one `ci.reported`, as they stand in it; `time` is that of its line."""
    ci, test, errors = _mapping(data.get("ci")), data.get("test"), data.get("errors")
    duration = data.get("duration_us")
    return (
        data.get("source"),
        *(ci.get(name) for name in ("provider", "run_id", "attempt")),
        *(data.get(name) for name in ("job", "step")),
        _test(test),
        *(data.get(name) for name in ("result", "commit", "started", "finished")),
        _us(data.get("finished") or data.get("started"), time),
        duration if type(duration) is int and 0 <= duration <= _COUNTED_MAX else None,
        data.get("counts") or None,
        _first_line(errors[0] if type(errors) is list and errors else _mapping(test).get("message")),
    )


def _test(test: Any) -> Any:
    """Name a test as people do: `tests.test_login::test_case`."""
    named = _mapping(test)
    if type(named.get("name")) is str and type(named.get("classname")) is str:
        return f"{named['classname']}::{named['name']}"
    return named.get("name", test)


def _first_line(told: Any) -> Any:
    return told.partition("\n")[0][: _limits.INDEX_ERROR_CHARACTERS_MAX] if type(told) is str else told


def _us(moment: Any, time: str) -> int | None:
    """Return the moment of something, or that of its line where it says none that can be read."""
    found = moment_us(moment)
    return moment_us(time) if found is None else found


def _mapping(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}
