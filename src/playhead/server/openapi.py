"""Describe the API from its table of routes: OpenAPI 3.1, which programs read, and `/docs` shows to people."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from playhead._version import __version__
from playhead.server.routing import Query, Route, load

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_PATHS = {
    "run": "the id of a run, the beginning of one, a name (its latest run), `@last`, or the id that it had outside",
    "seq": "the number of an event, from 0",
    "name": "the name of a file of the run; that of an artifact may have slashes",
    "digest": "SHA-256, 64 lower-case hex digits",
    "id": "the id of {thing}",
}
_THINGS = {"Cassettes": "a cassette, `cas_…`", "Jobs": "a job, `job_…`", "Keys": "a key, the middle part of its token"}
_ABOUT = {
    "OTLP": "Take in what OpenTelemetry sends, as OTLP/HTTP says.",
    "Span Chain": "Take in what the SDK of Span Chain sends.",
    "Runs": "List runs, and say what is known of one.",
    "Events": "Read what a run says, and how things stood at one event.",
    "Contents": "Read what runs hold beside their lines.",
    "Following": "Be told of news as they come, by server-sent events.",
    "Appending": "Send lines that were sealed elsewhere.",
    "Comparing": "Compare runs, add them up, audit and report them.",
    "Questions": "Ask the index in SQL.",
    "Cassettes": "Make immutable snapshots of runs, and feed them in anew.",
    "Jobs": "See how far work is that takes longer.",
    "Keys": "Make, list and revoke keys.",
    "Sessions": "Log browsers in and out.",
    "Server": "See how the server is.",
}
_STATUS = {
    400: "The request cannot be read.",
    401: "A key is needed, or the one that was sent is refused.",
    403: "Whoever asks may not.",
    404: "There is nothing of that name.",
    409: "It cannot be done as things are; the message says why.",
    410: "It was there, and is gone.",
    413: "The body is too large.",
    415: "The body has a form that is not read here.",
    416: "A range beyond the end, or lines that are missing in between.",
    422: "A parameter or a field is not as expected.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "Nothing was taken in; Retry-After says when to try again.",
}


def documented(routes: Iterable[Route]) -> list[tuple[str, str, list[Route]]]:
    """Return routes by what they are about: the name of a group, what it says of itself, its routes."""
    groups: dict[str, list[Route]] = {}
    for route in routes:
        groups.setdefault(route.group, []).append(route)
    assert not groups.keys() - _ABOUT.keys(), "say what each group is about"
    return [(name, about, groups[name]) for name, about in _ABOUT.items() if name in groups]


@functools.cache
def document() -> dict[str, Any]:
    """Return the whole description."""
    routes = load()
    forms = [form for route in routes for form in (route.query, route.body) if form is not None]
    _, components = msgspec.json.schema_components(forms, ref_template="#/components/schemas/{name}")
    bodies = {route.body.__name__ for route in routes if route.body is not None}
    schemas = {name: schema for name, schema in components.items() if name in bodies}
    schemas["Error"] = _error()
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        place = _PARAMETER.sub(lambda found: "{" + found[1] + "}", route.path)
        paths.setdefault(place, {})[route.method.lower()] = _operation(route, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Playhead",
            "version": __version__,
            "description": "The flight recorder for AI agents: spans in, answers out. Every error has one shape.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": about} for name, about, _ in documented(routes)],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key: `ph_…`."}},
        },
    }


def _operation(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.spelled,
        "summary": route.about,
        "tags": [route.group],
        "security": [] if route.scope == "open" else [{"key": []}, {}],
        "responses": _responses(route),
    }
    if route.more:
        found["description"] = route.more
    if route.scope != "open":
        found["x-scope"] = route.scope
    parameters = [*_of_path(route), *_of_query(route.query, components)]
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        reference = {"$ref": f"#/components/schemas/{route.body.__name__}"}
        needed = any(field.required for field in msgspec.structs.fields(route.body))
        found["requestBody"] = {"required": needed, "content": {"application/json": {"schema": reference}}}
    elif route.takes:
        forms = {
            media: {"schema": {} if "json" in media else {"type": "string", "format": "binary"}}
            for media in route.takes
        }
        found["requestBody"] = {"required": True, "content": forms}
    return found


def described(route: Route) -> list[tuple[str, str]]:
    """Return what stands for something else in the path of a route, each with what it means."""
    thing = _THINGS.get(route.group, "it")
    paths = _PATHS if route.group != "Appending" else {**_PATHS, "run": "the id of the run, `run_…`"}
    return [(name, paths[name].format(thing=thing)) for name in _PARAMETER.findall(route.path)]


def _of_path(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "description": meaning, "schema": {"type": "string"}}
        for name, meaning in described(route)
    ]


def _of_query(form: type[Query] | None, components: dict[str, Any]) -> list[dict[str, Any]]:
    if form is None:
        return []
    schema = components[form.__name__]
    needed = set(schema.get("required", ()))
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": field, "description": told(form, name)}
        for name, field in schema.get("properties", {}).items()
    ]


@functools.cache
def _comments(form: type) -> dict[str, str]:
    """Return what the source says of each field, behind it or above it: said once, where it is declared."""
    import inspect

    found: dict[str, str] = {}
    for base in reversed(form.__mro__):
        if not base.__module__.startswith("playhead.server"):
            continue
        above = ""
        for line in inspect.getsource(base).splitlines():
            if (field := re.match(r"    (\w+): (?:.*?  # (.+))?", line)) is not None and (field[2] or above):
                found[field[1]] = field[2] or above
            above = line.strip(" #") if line.startswith("    # ") else ""
    return found


def told(form: type, name: str) -> str:
    """Return what is said of a field."""
    return _comments(form).get(name, "")


def _responses(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in route.answers:
        content = {media: {"schema": _schema(media)} for media in route.media}
        found[str(status)] = {"description": "Done." if status != 202 else "Taken on.", "content": content}
    error = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    for status, about in _STATUS.items():
        found[str(status)] = {"description": about, **error}
    return found


def _schema(media: str) -> dict[str, Any]:
    return {"type": "object"} if media == "application/json" else {"type": "string"}


def _error() -> dict[str, Any]:
    text = {"type": "string"}
    fields = {"code": text, "message": text, "hint": text, "detail": {}}
    inner = {"type": "object", "required": list(fields), "properties": fields}
    return {"type": "object", "required": ["error"], "properties": {"error": inner}}
