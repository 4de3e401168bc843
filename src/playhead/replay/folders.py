"""Take the folder in which a run was recorded for the one in which it is replayed: a cassette is at home anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from playhead.event.envelope import Event

_WITH_PATHS = frozenset({"effect.observed", "process.started", "run.finished"})


class Folders(NamedTuple):
    """The working folder of then, and that of now; both empty where they are the same, or one is not known."""

    then: str = ""
    now: str = ""

    def recorded(self, path: str) -> str:
        """Return what a path of the recording means here."""
        if self.then and (path == self.then or path.startswith(f"{self.then}/")):
            return self.now + path[len(self.then) :]
        return path

    def asked(self, path: str) -> str:
        """Return what a path means that the program names: it may know the folder of then from the tape."""
        return self.recorded(path) if self.then and is_of_then(path, self.then, self.now) else path

    def both(self) -> tuple[str, str] | None:
        """Return them; None where they are the same."""
        return (self.then, self.now) if self.then else None

    def effects(self, effects: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return recorded effects with paths as they are here."""
        return [_moved(effect, self.recorded) for effect in effects]

    def event(self, event: Event, *, replayed: bool = False) -> Event:
        """Return an event with the paths of what was done as they are here."""
        if not self.then or event.kind not in _WITH_PATHS:
            return event
        map_path = self.asked if replayed else self.recorded
        if event.kind == "effect.observed":
            data = _moved(event.data, map_path)
        elif event.kind == "process.started":
            data = {**event.data, "env": _values(event.data.get("env") or {}, map_path)}
        else:
            data = {**event.data, "files": [_moved(one, map_path, "path") for one in event.data.get("files") or ()]}
        return msgspec.structs.replace(event, data=data)


def is_of_then(path: str, then: str, now: str) -> bool:
    """Say whether a path is one of the folder of then: of two that are one in the other, the inner one counts."""
    inner_is_now = f"{now}/".startswith(f"{then}/")
    return f"{path}/".startswith(f"{then}/") and not (inner_is_now and f"{path}/".startswith(f"{now}/"))


def folders(then: Event | None, now: str | None) -> Folders:
    """Return the folders of a recording, by its `run.started`, and of a replay."""
    entry = (then.data if then is not None else {}).get("entrypoint")
    before = entry.get("cwd") if isinstance(entry, dict) else None
    if not isinstance(before, str) or not now or before == now or "/" in (before, now):
        return Folders()
    return Folders(before, now)


def _moved(data: Mapping[str, Any], map_path: Any, name: str = "target") -> dict[str, Any]:
    found = dict(data)
    if isinstance(found.get(name), str):
        found[name] = map_path(found[name])
    detail = found.get("detail")
    if isinstance(detail, dict) and isinstance(detail.get("to"), str) and not detail.get("symbolic"):
        found["detail"] = {**detail, "to": map_path(detail["to"])}
    if isinstance(detail, dict) and isinstance(detail.get("set"), dict):
        found["detail"] = {**detail, "set": _values(detail["set"], map_path)}
    return found


def _values(variables: Mapping[str, Any], map_path: Any) -> dict[str, Any]:
    return {name: map_path(value) if isinstance(value, str) else value for name, value in variables.items()}
