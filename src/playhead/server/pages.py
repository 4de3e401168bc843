"""Show pages to people: the reference of the API, and where to go on. No script, and nothing from elsewhere."""

from __future__ import annotations

import base64
import functools
import hashlib
from html import escape
from typing import Any

from playhead._version import __version__
from playhead.server.answering import Answer
from playhead.server.openapi import documented, told
from playhead.server.routing import Query, load

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;--paper:#fff;--well:#f6f8fa;--blue:#0550ae}
@media(prefers-color-scheme:dark){
:root{--ink:#e6edf3;--dim:#9198a1;--line:#3d444d;--paper:#0d1117;--well:#151b23;--blue:#79c0ff}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
body{margin:0 auto;max-width:60rem;padding:1.5rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem;border-bottom:1px solid var(--line)}
a{color:var(--blue)}code,pre{font:13px/1.45 ui-monospace,monospace;background:var(--well);border-radius:4px}
code{padding:.1em .3em}pre{padding:.75rem;overflow:auto}p{margin:.4rem 0}
details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0;padding:.4rem .7rem}
summary{cursor:pointer}summary b{display:inline-block;min-width:4.2em;font:700 12px ui-monospace,monospace}
.dim{color:var(--dim)}table{border-collapse:collapse;margin:.5rem 0;width:100%}
td,th{border-top:1px solid var(--line);padding:.25rem .5rem;text-align:left;vertical-align:top}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src 'self' data:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


@functools.cache
def reference() -> Answer:
    """Return the reference of the API as a page."""
    parts = [
        f"<h1>Playhead {escape(__version__)}: the HTTP API</h1>",
        "<p>The same for programs: <a href='/openapi.json'>openapi.json</a> (OpenAPI 3.1). Every error is"
        " <code>{&quot;error&quot;: {code, message, hint, detail}}</code>.</p>",
    ]
    for name, about, routes in documented(load()):
        parts.append(f"<h2>{escape(name)}</h2><p class='dim'>{escape(about)}</p>")
        parts += [_operation(route) for route in routes]
    return _page("Playhead: the HTTP API", "".join(parts))


def _operation(route: Any) -> str:
    parts = [f"<p>{escape(part)}</p>" for part in (route.more.split("\n\n") if route.more else ())]
    if route.scope != "open":
        parts.append(f"<p class='dim'>With keys: scope <code>{route.scope}</code>.</p>")
    for title, form in (("Parameters", route.query), ("Body", route.body)):
        if form is not None and form is not Query:
            rows = "".join(_row(form, name, schema) for name, schema in _fields(form).items())
            parts.append(f"<table><tr><th>{title}</th><th></th></tr>{rows}</table>")
    if route.body is None and route.takes:
        parts.append(f"<p>Takes {', '.join(f'<code>{escape(media)}</code>' for media in route.takes)}.</p>")
    answers = ", ".join(f"{status}" for status in route.answers)
    parts.append(f"<p class='dim'>Answers {answers}: {escape(', '.join(route.media))}</p>")
    head = f"<summary><b>{route.method}</b> <code>{escape(route.path)}</code> {escape(route.about)}</summary>"
    return f"<details>{head}{''.join(parts)}</details>"


def _row(form: type, name: str, schema: dict[str, Any]) -> str:
    default = (
        f" <span class='dim'>({escape(repr(schema['default']))})</span>" if schema.get("default") is not None else ""
    )
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(told(form, name))}{default}</td></tr>"


def _fields(form: type) -> dict[str, Any]:
    import msgspec

    _, components = msgspec.json.schema_components([form])
    found: dict[str, Any] = components[form.__name__].get("properties", {})
    return found


def front_page(keys: bool, address: str) -> Answer:
    """Return what stands at the front: how to send spans here, and where to read on."""
    address = escape(address)
    key = " -H 'Authorization: Bearer ph_…'" if keys else ""
    told = "A key is needed." if keys else "No key is needed: there are none, and only this machine is answered."
    body = (
        f"<h1>Playhead {escape(__version__)}</h1><p>The flight recorder for AI agents. {told}</p>"
        f"<h2>Send spans</h2><pre>OTEL_EXPORTER_OTLP_ENDPOINT={address}\n"
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf</pre>"
        f"<h2>Ask</h2><pre>curl{key} {address}/api/runs\nplayhead ls --store {address}</pre>"
        "<p><a href='/docs'>The HTTP API</a></p>"
    )
    return _page("Playhead", body)


def _page(title: str, body: str) -> Answer:
    text = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width,initial-scale=1'><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>"
    )
    return Answer(text.encode(), media="text/html; charset=utf-8", headers={"content-security-policy": _POLICY})
