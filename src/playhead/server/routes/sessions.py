"""Log browsers in and out: with a key, once; after that by a cookie that no script can read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from playhead import _limits
from playhead.server.access import COOKIE, session_of
from playhead.server.answering import Answer, answered
from playhead.server.asking import Ask
from playhead.server.routing import Body, route


class LoginBody(Body):
    """The key."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]  # the whole token, `ph_…`


@route("POST", "/api/session", scope="open", group="Sessions", body=LoginBody, runs="writing")
def log_in(ask: Ask) -> Answer:
    """Begin a session with a key. The cookie is HttpOnly and SameSite=Strict, and ends after 12 hours.

    `{project, scopes}` says what the key opens.
    """
    body: LoginBody = ask.json()
    access = ask.server.access
    key = access.keys.authenticate(body.key.strip())
    token = access.sessions.begin(key.id)
    secure = "; Secure" if ask.base.startswith("https:") or ask.headers.get("x-forwarded-proto") == "https" else ""
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={int(_limits.BROWSER_SESSION_S)}{secure}"
    return answered({"project": key.project, "scopes": sorted(key.scopes)}, headers={"set-cookie": cookie})


@route("GET", "/api/session", scope="open", group="Sessions")
def who_am_i(ask: Ask) -> dict[str, Any]:
    """Say whether a key is needed here, and who is logged in: `{needed, session: {project, scopes}}`."""
    access = ask.server.access
    token = session_of(ask.headers)
    key = None if token is None else access.sessions.find(token)
    told = None if key is None else {"project": key.project, "scopes": sorted(key.scopes)}
    return {"needed": access.demanded(), "session": told}


@route("DELETE", "/api/session", scope="open", group="Sessions", runs="writing")
def log_out(ask: Ask) -> Answer:
    """End a session."""
    if (token := session_of(ask.headers)) is not None:
        ask.server.access.sessions.end(token)
    return answered(
        {"session": None}, headers={"set-cookie": f"{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"}
    )
