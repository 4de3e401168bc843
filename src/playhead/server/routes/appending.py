"""Take in lines that were sealed elsewhere: they are checked, and become part of a run here as they are."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from playhead._api.receiving.sealed import append_sealed
from playhead.server.answering import NDJSON, Answer, answered
from playhead.server.asking import Ask
from playhead.server.routes.events import Seq
from playhead.server.routing import Query, route


class AppendQuery(Query):
    """Where the lines begin."""

    start: Annotated[Seq | None, msgspec.Meta()] = None  # seq of the first; the lines say so themselves


@route("POST", "/api/runs/{run}/lines", scope="ingest", group="Appending", query=AppendQuery, takes=(NDJSON,),
       runs="writing", answers={200: {"run": "run_…", "events": 7, "head": "…"}, 201: None})  # fmt: skip
def append_lines(ask: Ask) -> Answer:
    """Append sealed lines to a run, as they are: `{run, events, head, added}` says how far the run is now.

    Each line must follow the one before it, from the head that the run has here, or from 0 for a new run. What is here
    already is passed over, so the same can be sent again. Where other lines stand in their place the answer is 409
    with both heads, and where lines are missing in between 416 with the number of those that are here. 201 says that
    the run is new here. A run that the server seals itself, from spans, takes no lines (409).
    """
    found = append_sealed(ask.project.store, ask.path["run"], ask.body, ask.query.start)
    ask.project.note(found.run)
    document: dict[str, Any] = {"run": found.run, "events": found.events, "head": found.head, "added": found.added}
    return answered(document, status=201 if found.created else 200)


@route("PUT", "/api/blobs/{digest}", scope="ingest", group="Appending", takes=("application/octet-stream",),
       runs="writing", answers={201: {"digest": "…"}})  # fmt: skip
def put_blob(ask: Ask) -> Answer:
    """Keep bytes under their digest, before the lines that name them are sent."""
    from playhead._api.receiving.sealed import keep_blob

    return answered({"digest": keep_blob(ask.project.store, ask.path["digest"], ask.body)}, status=201)


@route("PUT", "/api/runs/{run}/artifacts/{name:path}", scope="ingest", group="Appending",
       takes=("application/octet-stream",), runs="writing", answers={201: {"name": "patch.diff"}})  # fmt: skip
def put_artifact(ask: Ask) -> Answer:
    """Keep the bytes of an artifact that a line of the run names, before that line is sent."""
    from playhead._api.receiving.sealed import keep_artifact

    return answered({"name": keep_artifact(ask.project.store, ask.path["run"], ask.path["name"], ask.body)}, status=201)


@route("PUT", "/api/runs/{run}/files/{name}", scope="ingest", group="Appending",
       takes=("application/json", "application/octet-stream"), runs="writing", answers={201: None})  # fmt: skip
def put_file(ask: Ask) -> Answer:
    """Keep `context_pack.json` or `policy_snapshot.json` of a run, as its events name it, after its lines were sent."""
    from playhead._api.receiving.sealed import keep_file

    return answered({"name": keep_file(ask.project.store, ask.path["run"], ask.path["name"], ask.body)}, status=201)
