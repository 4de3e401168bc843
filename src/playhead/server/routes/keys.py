"""Make, list and revoke keys over HTTP: with a key that may do everything in its project."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from playhead import _limits
from playhead._api.points_in_time import coming_us
from playhead.errors import NotThere, UsageError
from playhead.server.answering import Answer, answered
from playhead.server.asking import Ask
from playhead.server.routes.jobs import _moment
from playhead.server.routes.runs import Text
from playhead.server.routing import Body, route
from playhead.store.registry.keys import Key

Scopes = Annotated[list[Literal["ingest", "read", "admin"]], msgspec.Meta(min_length=1, max_length=3)]
Name = Annotated[str, msgspec.Meta(max_length=_limits.NAME_CHARACTERS_MAX)]


class KeyBody(Body):
    """What the key may do, and until when."""

    scopes: Scopes  # what it may do
    name: Name | None = None  # what it is for
    expires: Text | None = None  # a date, or a while from now such as 90d; else never


@route("POST", "/api/keys", scope="admin", group="Keys", body=KeyBody, runs="writing", answers={201: {"token": "ph_…"}})
def make_key(ask: Ask) -> Answer:
    """Make a key of this project. Its `token` is told once, here; only a hash of it is kept."""
    body: KeyBody = ask.json()
    expires = None if body.expires is None else coming_us(body.expires)
    made = ask.server.access.keys.create(ask.project.name, body.scopes, body.name, expires)
    return answered({**_told(made.key), "token": made.token}, status=201)


@route("GET", "/api/keys", scope="admin", group="Keys")
def list_keys(ask: Ask) -> dict[str, Any]:
    """List the keys of this project, without their secrets.

    Each is `{id, name, project, scopes, created, expires, used, revoked}`; `used` is exact to a minute.
    """
    return {"keys": [_told(key) for key in ask.server.access.keys.list(ask.project.name)]}


@route("DELETE", "/api/keys/{id}", scope="admin", group="Keys", runs="writing")
def revoke_key(ask: Ask) -> dict[str, Any]:
    """Revoke a key of this project: it is refused from now on."""
    keys, id = ask.server.access.keys, ask.path["id"]
    if all(key.id != id for key in keys.list(ask.project.name)):
        raise NotThere(f"there is no key {id[:60]!r} in this project")
    if ask.caller.key is not None and ask.caller.key.id == id:
        raise UsageError("a key does not revoke itself", hint="Ask with another one, or: playhead keys revoke ID")
    return _told(keys.revoke(id))


def _told(key: Key) -> dict[str, Any]:
    return {
        "id": key.id, "name": key.name, "project": key.project, "scopes": sorted(key.scopes),
        "created": _moment(key.created_us), "expires": _moment(key.expires_us), "used": _moment(key.used_us),
        "revoked": _moment(key.revoked_us),
    }  # fmt: skip
