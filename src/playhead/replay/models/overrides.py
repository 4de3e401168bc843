"""Ask a model something else than a program does: another model, another place, other parameters, another prompt."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec
import orjson

from playhead.capture import dialects
from playhead.errors import UsageError
from playhead.replay.pointing import put

_IN_PATH = re.compile(r"/(models|deployments|model)/([^/:]+)(?=[/:])")  # Google, Azure and Vertex, Bedrock
_VERSIONS = re.compile(r"(?:/[\w-]+)*?/v\d\w*(?=/)|/(?:api|openai)(?=/)")
_SYSTEM = {"system", "developer"}


class Asked(NamedTuple):
    """One request to a model, as it goes out."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be different in every question to a model."""

    model: str | None = None
    base_url: str | None = None
    system: str | None = None  # the system prompt
    parameters: dict[str, Any] = {}  # by path in the body of the request: `temperature`, `messages.0.content`

    def as_dict(self) -> dict[str, Any]:
        """Return what is different."""
        given = {"model": self.model, "base_url": self.base_url, "system": self.system}
        told: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return told | ({"parameters": self.parameters} if self.parameters else {})

    def applied(self, asked: Asked) -> Asked:
        """Return a request as it is to be asked."""
        url, body = asked.url, asked.body
        if self.model is not None or self.system is not None or self.parameters:
            url, body = self._rewritten(asked)
        if self.base_url is not None:
            url = elsewhere(url, self.base_url)
        return asked._replace(url=url, body=body)

    def _rewritten(self, asked: Asked) -> tuple[str, bytes]:
        found = dialects.find(asked.method, asked.url)
        try:
            body = orjson.loads(asked.body)
        except orjson.JSONDecodeError:
            body = None
        if found is None or not isinstance(body, dict):
            raise UsageError(f"what is asked of {asked.url} is no JSON of a known provider: it cannot be changed")
        url, dialect = asked.url, found[0].name
        if self.model is not None:
            url = _IN_PATH.sub(lambda part: f"/{part[1]}/{quote(str(self.model), safe='')}", url)
            if "model" in body or url == asked.url:
                body["model"] = self.model
        if self.system is not None:
            _set_system(dialect, body, self.system)
        for path, value in self.parameters.items():
            put(body, path, value, creates=True)
        return url, orjson.dumps(body)


def elsewhere(url: str, base: str) -> str:
    """Return the address of the same operation at another place; what both have for a version counts once."""
    try:
        there, here = urlsplit(base), urlsplit(url)
    except ValueError:
        there = here = urlsplit("")
    if there.scheme not in ("http", "https") or not there.netloc:
        raise UsageError(f"not the address of a provider: {base!r}", hint="For instance http://127.0.0.1:8080/v1.")
    version = _VERSIONS.match(here.path)
    path = here.path[version.end() :] if version and there.path.rstrip("/") else here.path
    return urlunsplit((there.scheme, there.netloc, there.path.rstrip("/") + path, here.query, ""))


def _set_system(dialect: str, body: dict[str, Any], text: str) -> None:
    """Put a system prompt where the dialect has it, in place of the one that is there."""
    if dialect == "anthropic.messages":
        body["system"] = text
    elif dialect == "openai.responses":
        body["instructions"] = text
    elif dialect == "google.generate":
        body["systemInstruction"] = {"parts": [{"text": text}]}
        body.pop("system_instruction", None)
    elif isinstance(body.get("messages"), list):
        messages = body["messages"]
        at = next((n for n, one in enumerate(messages) if isinstance(one, dict) and one.get("role") in _SYSTEM), None)
        if at is None:
            messages.insert(0, {"role": "system", "content": text})
        else:
            messages[at] = {**messages[at], "content": text}
    else:
        raise UsageError(f"questions of the sort {dialect} have no system prompt")
