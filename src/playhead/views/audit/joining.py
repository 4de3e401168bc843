"""Join what one thing is: a connection, told by the number that it went to, and the request by name that it was for.

A connection says which hosts were looked up that have its number. Where one of them was asked for something at the
same port, in the same span, both are one. Records that do not say it keep two.
"""

from __future__ import annotations

from collections.abc import Iterable

from playhead.views.audit.acts import Act
from playhead.views.audit.addresses import one_name, split
from playhead.views.audit.around import Around

Place = tuple[Around | None, bool, str, str]  # span, whether past a tape, host, port


def joined(acts: Iterable[Act]) -> list[Act]:
    """Return the acts; those that are connections for a request of a host by its name are a part of that one."""
    acts = list(acts)
    asked: dict[Place, int] = {}  # which of the acts
    for at, act in enumerate(acts):
        if act.rule == "network" and act.asked:
            host, port = split(act.target)
            asked.setdefault((act.around, act.past_tape, one_name(host), port), at)
    parts: dict[int, list[Act]] = {}
    out: dict[int, Act] = {}
    for at, act in enumerate(acts):
        request = _request(act, asked) if act.only_connects else None
        if request is None:
            out[at] = act
        else:
            parts.setdefault(request, []).append(act)
    return [act.with_connections(parts[at]) if at in parts else act for at, act in out.items()]


def _request(act: Act, asked: dict[Place, int]) -> int | None:
    port = split(act.target)[1]
    places = ((act.around, act.past_tape, one_name(name), port) for name in sorted(act.names))
    return next((asked[place] for place in places if place in asked), None)
