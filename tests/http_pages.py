"""Write the reference of the HTTP API from the table of its routes.

`python tests/http_pages.py` writes into `docs/reference/http.md` what the routes say of themselves; what stands above the
mark is written by hand, and stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from playhead.server.openapi import described, documented, told
from playhead.server.routing import Route, load

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "http.md"
MARK = "<!-- From here on the page is made of the routes: python tests/http_pages.py -->"


def page(before: str) -> str:
    """Return the whole page: what was written by hand, up to the mark, and then every route."""
    head, mark, _ = before.partition(MARK)
    if not mark:
        raise SystemExit(f"{PAGE} has lost its mark: {MARK}")
    return head + MARK + "\n" + "\n".join(_groups()) + "\n"


def unsaid(routes: list[Route]) -> list[str]:
    """Return the parameters and fields of which nobody says what they mean."""
    forms = {form for route in routes for form in (route.query, route.body) if form is not None}
    return sorted(
        f"{form.__name__}.{field.encode_name}"
        for form in forms
        for field in msgspec.structs.fields(form)
        if not told(form, field.encode_name).strip()
    )


def _groups() -> Iterator[str]:
    for name, about, routes in documented(load()):
        yield f"\n## {name}\n\n{about}"
        for route in routes:
            yield from _route(route)


def _route(route: Route) -> Iterator[str]:
    path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
    yield f"\n### `{route.method} {path}`\n\n{_linked(route.about)}"
    if route.more:
        yield f"\n{_linked(route.more)}"
    yield f"\nScope: {_scope(route)}.{_taken(route)} Answers: {_answers(route)}."
    rows = list(_rows(route))
    if rows:
        yield "\n| where | name | what may stand there | what it means |\n|---|---|---|---|"
        yield from rows


def _scope(route: Route) -> str:
    if route.scope == "open":
        return "none, anybody may ask"
    return f"`{route.scope}`" + ("" if route.limited else ", and not counted against the rate of a key")


def _taken(route: Route) -> str:
    if not route.takes:
        return ""
    needed = "" if route.body is None or _is_needed(route.body) else ", or no body"
    return f" Takes: {', '.join(f'`{media}`' for media in route.takes)}{needed}."


def _is_needed(form: type) -> bool:
    return any(field.required for field in msgspec.structs.fields(form))


def _answers(route: Route) -> str:
    statuses = ", ".join(
        f"{status}" + (f" `{json.dumps(like, ensure_ascii=False)}`" if isinstance(like, dict) and like else "")
        for status, like in route.answers.items()
    )
    return f"{statuses}, as {', '.join(f'`{media}`' for media in route.media)}"


def _rows(route: Route) -> Iterator[str]:
    for name, meaning in described(route):
        yield f"| path | `{name}` | text | {_linked(meaning)} |"
    for where, form in (("query", route.query), ("body", route.body)):
        if form is None:
            continue
        _, components = msgspec.json.schema_components([form])
        schema = components[form.__name__]
        needed = set(schema.get("required", ()))
        for name, field in schema.get("properties", {}).items():
            meaning = _linked(told(form, name))
            yield f"| {where} | `{name}` | {_form(field, name in needed)} | {meaning} |"


def _form(schema: dict[str, Any], needed: bool) -> str:
    """Say what may stand in a field, and what is taken where nothing does."""
    said = " or ".join(dict.fromkeys(_one(one) for one in schema.get("anyOf", [schema]) if one.get("type") != "null"))
    if needed:
        return f"{said}; needed"
    default = schema.get("default")
    if default is None or default == []:
        return said
    return f"{said}; else `{json.dumps(default) if not isinstance(default, str) else default}`"


def _one(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "string":
            if "pattern" in schema:
                return f"text that fits `{_cell(schema['pattern'])}`"
            return f"text{_between(schema.get('minLength'), schema.get('maxLength'), ' characters')}"
        case "integer":
            return f"a whole number{_between(schema.get('minimum'), schema.get('maximum'), '')}"
        case "number":
            return "a number"
        case "boolean":
            return "`true` or `false`"
        case "array":
            return f"a list{_between(schema.get('minItems'), schema.get('maxItems'), '')} of: {_inner(schema['items'])}"
        case "object":
            return f"an object, each value: {_inner(schema['additionalProperties'])}"
    raise AssertionError(f"say in words what this is: {schema}")


def _inner(schema: dict[str, Any]) -> str:
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") not in ("null", "integer")]
    return " or ".join(dict.fromkeys(_one(one) for one in kinds))


def _between(least: int | None, most: int | None, unit: str) -> str:
    if most is not None and most >= 2**53:
        most = None  # no limit that anybody reaches
    if least is None and most is None:
        return ""
    if most is None:
        return f", from {least:,}{unit}"
    return f", {f'{least:,} to ' if least is not None else 'at most '}{most:,}{unit}"


def _linked(text: str) -> str:
    """Return what the code says, as a page does: commands lead to their section."""
    return re.sub(r"(`playhead ([a-z]+)[^`]* --json`)", r"[\1](cli.md#playhead-\2)", _cell(text))


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    was = PAGE.read_text("utf-8")
    now = page(was)
    if now != was:
        PAGE.write_text(now, "utf-8")
        print(f"updated {PAGE.name}")
