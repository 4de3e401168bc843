"""Leave out of what was asked and answered what is not to be compared: fields that the user ignores, and what rules
call volatile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.errors import UsageError
from playhead.event.envelope import Event
from playhead.event.keys import ASKED
from playhead.event.normalise import Normalisers
from playhead.views.diff import content

_NAMES = ("method",)  # of what is asked, which is no part of the input that a rule is given


class Volatile:
    """What is not compared."""

    def __init__(self, ignore: Sequence[str], normalisers: Normalisers | None) -> None:
        self._paths = [_steps(path) for path in ignore]
        self._normalisers = normalisers or Normalisers(registered=False)

    @property
    def ignores(self) -> bool:
        """Say whether any field is ignored."""
        return bool(self._paths)

    def concerns(self, event: Event) -> bool:
        """Say whether something may be left out of what this event asks: the same for all that ask alike."""
        if self._paths:
            fields = content.asking(event.kind)
            if fields is None or any(path[0] == "*" or path[0] in fields for path in self._paths):
                return True
        return bool(self._normalisers) and self._is_ruled(event)

    def asked(self, event: Event, folder: str) -> dict[str, Any]:
        """Return what is left of a question, by its fields; the event must be resolved."""
        found = content.question(event.kind, event.data, folder)
        if self._normalisers and self._is_ruled(event):
            found = self._normalised(event, found)
        left: dict[str, Any] = self.ignored(content.meant(event.kind, found))
        return left

    def ignored(self, value: Any) -> Any:
        """Return a value without the fields that are ignored."""
        for path in self._paths:
            value = content.without(value, path)
        return value

    def is_ignored(self, pointer: str) -> bool:
        """Say whether a difference is at a place that is ignored."""
        return any(content.covers(path, _unescaped(pointer)) for path in self._paths)

    def is_ignored_of_setting(self, pointer: str) -> bool:
        """Say the same of what the runs ran with."""
        return any(content.covers_printed(path, _unescaped(pointer)) for path in self._paths)

    def _is_ruled(self, event: Event) -> bool:
        asked = ASKED.get(event.kind)
        return asked is not None and bool(self._normalisers.concerned(event.kind, asked(event.data)[0]))

    def _normalised(self, event: Event, found: dict[str, Any]) -> dict[str, Any]:
        """Give the rules the input as a replay does, by the names of its parts, and put back what they leave."""
        kind, name = event.kind, ASKED[event.kind](event.data)[0]

        def left(given: Any) -> Any:
            return self._normalisers.normalised(kind, name, given)

        if kind == "tool.called":
            return {**found, "input": left(found.get("input"))}
        if kind == "model.invoked":
            request = found.get("request")
            if "http" not in event.data or not isinstance(request, dict) or "operation" in request:
                return {**found, "request": left(request)}
            request = left({"operation": found.get("operation"), **request})
            if not isinstance(request, dict):
                return {**found, "request": request}
            rest = {field: value for field, value in request.items() if field != "operation"}
            return {**found, "operation": request.get("operation"), "request": rest}
        names = {field: value for field, value in found.items() if field in _NAMES}
        rest = left({field: value for field, value in found.items() if field not in _NAMES})
        return {**names, **(rest if isinstance(rest, dict) else {"input": rest})}


def _steps(path: str) -> list[str]:
    if not path.startswith("/") or path == "/":
        raise UsageError(
            f"not a path: {path!r}",
            hint="Write a JSON pointer as the diff shows it, such as /output/time or /request/*.",
        )
    return _unescaped(path)


def _unescaped(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]
