"""Say how runs stand in the store, for whoever checks them elsewhere: who writes them, and how far they were seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from playhead._ids import is_run_id
from playhead.errors import RunNotFound
from playhead.server.answering import NDJSON, Streamed
from playhead.server.asking import Ask
from playhead.server.finding import run_of
from playhead.server.projects import Project
from playhead.server.routing import route
from playhead.store import layout, presence

_AT_ONCE = 500  # lines that are sent together


@route("GET", "/api/runs/{run}/standing", group="Runs")
def standing_of(ask: Ask) -> dict[str, Any]:
    """Say whether somebody writes a run just now, and what the index remembers as its last line.

    That line is what shows that a timeline was cut. `timeline` is false where only the rest of a run is there.
    """
    project, named = ask.project, ask.path["run"]
    if is_run_id(named) and not layout.timeline(folder := project.store.folder(named)).is_file():
        if not layout.looks_like_a_run(folder):
            project.index.lose(named)
            raise RunNotFound(f"no run answers to {named!r}", hint="GET /api/runs lists them.")
        head = _told(project.index.head(named))
        return {"run": named, "timeline": False, "held": presence.is_held(folder), "head": head}
    run = run_of(project, named).id
    held = presence.is_held(project.store.folder(run))
    return {"run": run, "timeline": True, "held": held, "head": _told(project.index.head(run))}


@route("GET", "/api/heads", group="Runs", media=(NDJSON,))
def heads(ask: Ask) -> Streamed:
    """Tell of every run that is there, or that the index remembers: its last line, and whether it is there.

    One JSON object a line, `{run, head: {seq, hash}, there}`; the last one is `{"end": true}`.
    """
    return Streamed(_lines(ask.project))


@route("GET", "/api/store", group="Runs")
def about_store(ask: Ask) -> dict[str, Any]:
    """Say what form the store has, and to which project whoever asks belongs."""
    return {"format": ask.project.store.version(), "project": ask.project.name}


def _lines(project: Project) -> Iterator[bytes]:
    seen = project.index.heads()
    there = set(project.store.runs())
    runs = sorted(there.union(seen))
    for start in range(0, len(runs), _AT_ONCE):
        page = runs[start : start + _AT_ONCE]
        told = ({"run": run, "head": _told(seen.get(run)), "there": run in there} for run in page)
        yield b"".join(orjson.dumps(one) + b"\n" for one in told)
    yield b'{"end":true}\n'


def _told(head: tuple[int, str] | None) -> dict[str, Any] | None:
    return None if head is None else {"seq": head[0], "hash": head[1]}
