"""Collect what a run ran in, and with what: code, packages, models and their parameters, policy, what it read and did.

These explain why two runs differ, and are none of the differences themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.views.diff.content import ResolveValue, digest, folder_of
from playhead.views.difference import Change, changes
from playhead.views.points import mapping
from playhead.views.prompts import SYSTEM, SYSTEM_ROLES, TALK, texts

_DIGEST = re.compile("[0-9a-f]{64}")
_DIGEST_SHOWN = 12
_GIT = ("branch", "commit", "dirty", "remote")
_TOOLS = ("functions", "tools")
_GIVEN = frozenset({*TALK, *SYSTEM, *_TOOLS, "metadata", "model", "previous_response_id", "user"})


def brief(value: Any) -> Any:
    """Return a digest by its beginning, and anything else as it is."""
    return f"{value[:_DIGEST_SHOWN]}…" if isinstance(value, str) and _DIGEST.fullmatch(value) else value


def differing(left: dict[str, Any], right: dict[str, Any]) -> list[Change]:
    """Return in what two settings differ, each part by itself: also where the parts together have many changes."""
    found: list[Change] = []
    for name in [*left, *(name for name in right if name not in left)]:
        ones = ({name: side[name]} if name in side else {} for side in (left, right))
        found += changes(*ones)
    return found


class Setting:
    """Take the events of one run; then `found` says what it ran in."""

    def __init__(self, resolve: ResolveValue) -> None:
        self._resolve = resolve
        self._started: dict[str, Any] = {}
        self._is_received = False
        self._folder = ""  # in which the run began, with a slash
        self._models: dict[str, None] = {}
        self._providers: dict[str, None] = {}
        self._answering: dict[str, None] = {}  # models that answered in place of those that were asked for
        self._open: dict[str | None, Any] = {}  # by span, which model was asked for
        self._prompts: dict[str, None] = {}
        self._tools: dict[str, None] = {}
        self._parameters: dict[str, list[Any]] = {}
        self._effects: dict[str, dict[str, None]] = {}
        self._code: dict[str, Any] = {}
        self._files: dict[str, Any] = {}
        self._variables: dict[str, Any] = {}
        self._written: dict[str, Any] = {}

    def take(self, event: Event) -> None:
        """Look at the next event."""
        data = event.data
        match event.kind:
            case "run.started":
                self._is_received = data.get("received") is not None
                self._started = self._begun(self._value(data))
            case "step.started" if data.get("adopts"):
                self._started["agent"] = data.get("agent") or self._started.get("agent")
                if self._is_received:  # its first event was named by whatever came first
                    self._started["name"] = data.get("name") or self._started.get("name")
                if isinstance(file := mapping(data.get("entrypoint")).get("file"), str):
                    self._started["entrypoint"] = {
                        **mapping(self._started.get("entrypoint")),
                        "file": self._named(file),
                    }
            case "model.invoked":
                self._asked(data)
                self._open[event.span] = data.get("model")
            case "model.responded":
                asked, answered = self._open.pop(event.span, None), data.get("model")
                if isinstance(answered, str) and answered != asked:
                    self._answering.setdefault(answered)
            case "effect.observed":
                what, target = str(data.get("what")), self._named(str(data.get("target")))
                if what != "process.signalled":  # by a number that is another one each time
                    self._effects.setdefault(what, {}).setdefault(target)
            case "ambient.read":
                self._read(data)
            case "run.finished":
                for file in self._listed(data.get("files")):
                    if isinstance(path := file.get("path"), str):
                        self._written[self._named(path)] = file.get("digest") or file.get("size")

    @property
    def policy(self) -> dict[str, Any]:
        """Return which policy was in force."""
        return mapping(self._started.get("policy"))

    def found(self) -> dict[str, Any]:
        """Return what was collected; what is empty is left out."""
        everything = {
            **self._started,
            "providers": sorted(self._providers),
            "models": sorted(self._models),
            "models_that_answered": sorted(self._answering),
            "parameters": {name: sorted(values, key=repr) for name, values in sorted(self._parameters.items())},
            "system_prompts": sorted(self._prompts),
            "tools_offered": sorted(self._tools),
            "code": self._code,
            "variables_read": self._variables,
            "files_read": self._files,
            "files_written": self._written,
            "effects": {what: sorted(targets) for what, targets in sorted(self._effects.items())},
        }
        return {name: value for name, value in everything.items() if value not in (None, {}, [])}

    def _begun(self, data: dict[str, Any]) -> dict[str, Any]:
        entry, sdk = mapping(data.get("entrypoint")), mapping(data.get("sdk"))
        git, policy = mapping(data.get("git")), mapping(data.get("policy"))
        environment = {**mapping(data.get("environment"))}
        self._folder = folder_of(data)
        if isinstance(file := entry.get("file"), str):
            entry = {**entry, "file": self._named(file)}
        environment.pop("hash_seed", None)  # another one each time, unless somebody set it
        return {
            "name": data.get("name"),
            "agent": data.get("agent"),
            "git": {name: git[name] for name in _GIT if name in git},
            "packages": environment.pop("packages", None),
            **environment,
            "entrypoint": {name: entry[name] for name in ("argv", "cwd", "file") if name in entry},
            "policy": {name: policy[name] for name in ("digest", "mode") if name in policy},
            "tags": data.get("tags"),
            "sdk": sdk.get("version"),
        }

    def _asked(self, data: dict[str, Any]) -> None:
        for name, known in (("provider", self._providers), ("model", self._models)):
            if isinstance(data.get(name), str):
                known.setdefault(data[name])
        request = data.get("request")
        if isinstance(request, dict) and next(iter(request), "").startswith("$"):
            request = self._value(request)
        request = mapping(request)
        for name, value in self._parameters_of(request):
            values = self._parameters.setdefault(name, [])
            if value not in values and len(values) < _limits.DIFFERENCE_CHANGES_MAX:
                values.append(value)
        for text in self._system(request):
            self._prompts.setdefault(text)
        for name in _TOOLS:
            for tool in self._listed(request.get(name)):
                inner = mapping(tool.get("function")) or tool
                if isinstance(inner.get("name"), str):
                    self._tools.setdefault(inner["name"])

    def _parameters_of(self, request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield what was asked for beside the talk; of what is inside of others, such as schemas, only a digest."""
        for name, value in request.items():
            if name in _GIVEN:
                continue
            if not isinstance(value, (dict, list)):
                yield name, value
                continue
            value = self._value(value)
            for inner, one in value.items() if isinstance(value, dict) else (("", value),):
                deep = isinstance(one, (dict, list))
                yield f"{name}.{inner}" if inner else name, digest(one).hex() if deep else one

    def _system(self, request: dict[str, Any]) -> Iterator[str]:
        for name in SYSTEM:
            if request.get(name) is not None:
                yield from texts(self._value(request[name]))
        for name in TALK:
            talk = request.get(name)
            if isinstance(talk, list):  # what goes on from an earlier conversation begins as that did
                for message in talk[:2]:
                    message = mapping(self._value(message))
                    if message.get("role") in SYSTEM_ROLES:
                        yield from texts(message.get("content"))

    def _read(self, data: dict[str, Any]) -> None:
        for group in self._listed(data.get("reads")):
            if group.get("of") == "os.environ":
                for value in self._listed(group.get("values")):
                    self._variables.update(value)
            elif (found := {"import": self._code, "open": self._files}.get(str(group.get("of")))) is not None:
                for value in self._listed(group.get("values")):
                    if isinstance(path := value.get("path"), str):
                        found.setdefault(self._named(path), value.get("digest") or value.get("size"))

    def _named(self, path: str) -> str:
        """Return a path as it is called in the folder of the run: two runs of a program may be of two folders."""
        return path.removeprefix(self._folder)

    def _listed(self, value: Any) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, each as it was."""
        if isinstance(value, dict):
            value = self._value(value)
        for one in value if isinstance(value, list) else ():
            one = one if isinstance(one, dict) and not next(iter(one), "").startswith("$") else self._value(one)
            if isinstance(one, dict):
                yield one

    def _value(self, value: Any) -> Any:
        from playhead.errors import MissingContent

        try:
            return self._resolve(value)
        except MissingContent:
            return value
