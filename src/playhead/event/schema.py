"""Describe the line as JSON Schema (2020-12): its thirteen fields, the payload of every kind, and the `$` marks.

A line as written holds references: any text, list or object of a payload may stand as a mark instead. Fields are only
ever added, so more of them are allowed everywhere; a kind that this release does not know has any object as its data.
"""

from __future__ import annotations

from typing import Any

import msgspec

from playhead.event.envelope import FORMAT
from playhead.event.kinds import PAYLOADS, Payload
from playhead.event.plain import MARKS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_VALUE: Schema = {"$ref": "#/$defs/value"}
_MARK: Schema = {"$ref": "#/$defs/mark"}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_LIST: Schema = {"type": "array", "items": _VALUE}
_DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_REFERENCE: Schema = {"type": "string", "pattern": "^[0-9]+#(/.*)?$"}

# What stands under each mark, and what stands beside it.
_MARK_FORMS: dict[str, tuple[Schema, dict[str, Schema]]] = {
    "$bytes": (_TEXT, {}),
    "$bytearray": (_TEXT, {}),
    "$str": (_TEXT, {}),
    "$float": ({"enum": ["nan", "inf", "-inf"]}, {}),
    "$int": ({"type": "string", "pattern": "^-?(0x[0-9a-f]+|[0-9]+)$"}, {}),
    "$complex": ({**_LIST, "minItems": 2, "maxItems": 2}, {}),
    "$tuple": (_LIST, {}),
    "$set": (_LIST, {}),
    "$frozenset": (_LIST, {}),
    "$dict": ({"type": "array", "items": {"type": "array", "items": _VALUE, "minItems": 2, "maxItems": 2}}, {}),
    "$datetime": (_TEXT, {}),
    "$date": (_TEXT, {}),
    "$time": (_TEXT, {}),
    "$timedelta": ({"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3}, {}),
    "$decimal": (_TEXT, {}),
    "$fraction": ({**_LIST, "minItems": 2, "maxItems": 2}, {}),
    "$uuid": (_TEXT, {}),
    "$path": (_TEXT, {}),
    "$enum": (_TEXT, {"value": _VALUE}),
    "$object": (_TEXT, {"fields": _VALUE}),
    "$as": (_TEXT, {"value": _VALUE}),
    "$error": ({"type": "object"}, {}),
    "$cycle": (_COUNT, {}),
    "$repr": (_TEXT, {"type": _TEXT}),
    "$redacted": (_TEXT, {}),
    "$same": (_REFERENCE, {}),
    "$extends": (_REFERENCE, {"keep": _COUNT, "then": _LIST}),
    "$blob": (_DIGEST, {"len": _COUNT, "as": _TEXT}),
    "$commit": (_DIGEST, {"len": _COUNT}),
}


def schema(kind: str | None = None) -> Schema:
    """Return the schema of every line, or of the lines of one kind."""
    payloads = PAYLOADS if kind is None else {kind: PAYLOADS[kind]}
    definitions = _payloads(payloads)
    line: Schema = {
        "$schema": DIALECT,
        "title": "A line of a Playhead timeline" + (f": {kind}" if kind else ""),
        "description": f'One sealed event, format {FORMAT}. The bytes before `,"hash":` are what the hash covers.',
        "type": "object",
        "properties": _envelope(kind),
        "required": list(_envelope(kind)),
    }
    if kind is None:
        line["allOf"] = [
            {
                "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
                "then": {"properties": {"data": {"$ref": f"#/$defs/{payload.__name__}"}}},
            }
            for name, payload in payloads.items()
        ]
    else:
        line["properties"]["data"] = {"$ref": f"#/$defs/{payloads[kind].__name__}"}
    line["$defs"] = {**definitions, **_values()}
    return line


def _envelope(kind: str | None) -> dict[str, Schema]:
    """Return the thirteen fields in their order."""
    nullable = {"type": ["string", "null"]}
    return {
        "v": {"const": FORMAT, "description": "format of the line"},
        "run": {"type": "string", "minLength": 1, "description": "id of the run, in every line"},
        "seq": {**_COUNT, "description": "dense from 0; the order of events"},
        "time": {
            "type": "string",
            "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$",
            "description": "UTC, for people",
        },
        "elapsed_us": {"type": "integer", "description": "monotonic, for durations"},
        "kind": {"const": kind} if kind else {"type": "string", "pattern": r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"},
        "span": {**nullable, "description": "shared by an opening and a closing event"},
        "parent": {**nullable, "description": "span in which it happened"},
        "lane": {"type": "string", "pattern": r"^\d+(\.\d+)*$", "description": "lineage of the task or thread"},
        "key": {**nullable, "description": "of a call: digest of its question"},
        "data": {"type": "object", "description": "payload; its form depends on the kind"},
        "prev": {**_DIGEST, "description": "hash of the line before"},
        "hash": {**_DIGEST, "description": "SHA-256 of the bytes of this line before this field"},
    }


def _payloads(payloads: dict[str, type[Payload]]) -> dict[str, Schema]:
    _, components = msgspec.json.schema_components(list(payloads.values()), ref_template="#/$defs/{name}")
    out: dict[str, Schema] = {}
    for name, definition in components.items():
        fields = {field: _as_written(form) for field, form in definition.get("properties", {}).items()}
        out[name] = {**definition, "properties": fields}
    for kind, payload in payloads.items():
        out[payload.__name__]["description"] = f"{kind} ({payload.PHASE}): {(payload.__doc__ or '').strip()}"
    return out


def _as_written(form: Schema) -> Schema:
    """Allow a mark wherever a text, a list or an object stands, and every plain value where anything may."""
    bare = {key: value for key, value in form.items() if key not in ("default", "description", "title")}
    if not bare:
        return {**form, **_VALUE}
    if "anyOf" in form:
        return {**form, "anyOf": [*(_as_written(one) for one in form["anyOf"]), _MARK]}
    match form.get("type"):
        case "array":
            inner = {**form, "items": _as_written(form.get("items", {}))}
        case "object":
            inner = {**form, "additionalProperties": _as_written(form.get("additionalProperties") or {})}
        case "string" if "enum" not in form and "const" not in form:
            inner = dict(form)
        case _ if "$ref" in form:
            inner = dict(form)
        case _:
            return form
    default = {"default": inner.pop("default")} if "default" in inner else {}
    return {**default, "anyOf": [inner, _MARK]}


def _values() -> dict[str, Schema]:
    marks = [
        {
            "description": MARKS[name],
            "type": "object",
            "properties": {name: form, **beside},
            "required": [name],
        }
        for name, (form, beside) in _MARK_FORMS.items()
    ]
    return {
        "value": {
            "description": "A plain value: JSON, with marks where JSON has no form.",
            "anyOf": [
                {"type": ["null", "boolean", "number", "string"]},
                {"type": "array", "items": _VALUE},
                {"type": "object", "propertyNames": {"pattern": "^(?!\\$)"}, "additionalProperties": _VALUE},
                _MARK,
            ],
        },
        "mark": {"description": "A value that JSON has no form for, or that stands elsewhere.", "anyOf": marks},
    }
