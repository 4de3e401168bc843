"""Find the dialect of a request. This table is all that has to know a new one."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import orjson

from playhead.capture.dialects.anthropic import MESSAGES
from playhead.capture.dialects.base import Dialect
from playhead.capture.dialects.google import GENERATE
from playhead.capture.dialects.hosts import provider_of
from playhead.capture.dialects.ollama import OLLAMA
from playhead.capture.dialects.openai_chat import CHAT
from playhead.capture.dialects.openai_plain import COMPLETIONS, EMBEDDINGS
from playhead.capture.dialects.openai_responses import RESPONSES

# The first that matches speaks.
DIALECTS: tuple[Dialect, ...] = (CHAT, RESPONSES, MESSAGES, GENERATE, EMBEDDINGS, COMPLETIONS, OLLAMA)

_ESCAPED = re.compile(r"%(?:2[DEde]|3\d|[46][1-9A-Fa-f]|[57][\dAa]|5[Ff]|7[Ee])")  # what never has to be: RFC 3986 2.3
_ANY = re.compile("|".join(f"(?:{route})" for dialect in DIALECTS for route in dialect.routes))
_EACH = tuple((dialect, re.compile("|".join(f"(?:{route})" for route in dialect.routes))) for dialect in DIALECTS)


@lru_cache(maxsize=256)
def find(method: str, url: str) -> tuple[Dialect, str, str] | None:
    """Return dialect, provider and operation of a request; None where it is not known to be one to a model."""
    if method.upper() != "POST":
        return None
    authority, path = split(url)
    if _ANY.search(path) is None:
        return None
    for dialect, routes in _EACH:
        if routes.search(path):
            operation = dialect.operation if isinstance(dialect.operation, str) else dialect.operation(path)
            return dialect, provider_of(authority, dialect.provider), operation
    return None


def model_of(dialect: Dialect, url: str, body: bytes | None) -> str | None:
    """Return the model that a request asks for; None where that cannot be told."""
    try:
        asked = dialect.asked(orjson.loads(body or b"null"), split(url)[1])
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
    return asked.model if isinstance(asked.model, str) else None


def split(url: str) -> tuple[str, str]:
    """Return `host[:port]` and the path of a URL, without query, fragment and slashes at the end.

    In one form: `%63ompletions` is the same path as `completions` (RFC 3986 6.2.2.2).
    """
    start = url.find("://")
    start = start + 3 if start >= 0 else 0
    for mark in "?#":
        cut = url.find(mark, start)
        if cut >= 0:
            url = url[:cut]
    slash = url.find("/", start)
    if slash < 0:
        return url[start:], ""
    path = url[slash:].rstrip("/")
    return url[start:slash], _ESCAPED.sub(_unescaped, path) if "%" in path else path


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[0][1:], 16))


def speaks(dialect: Dialect, body: Any) -> bool:
    """Say whether a body can be of this dialect: other services have a `/v1/messages` too."""
    if not dialect.fields:
        return True
    return type(body) is dict and any(all(name in body for name in names) for names in dialect.fields)


def normalised(dialect: Dialect, body: Any) -> Any:
    """Return the body without what is no part of the question; the same object where nothing is volatile."""
    if type(body) is not dict or not any(name in body for name in dialect.volatile):
        return body
    return {key: value for key, value in body.items() if key not in dialect.volatile}
