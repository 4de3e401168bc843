"""Make cassettes, hand them out, take them in, and feed them through the way that live traffic goes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from playhead import _limits
from playhead._api.packing import pack_run
from playhead._api.receiving.sealed import check_free
from playhead._clock import utc_text
from playhead._ids import is_run_id, new_run_id
from playhead.errors import PlayheadError, UsageError
from playhead.server import paging
from playhead.server.answering import Answer, Streamed, answered
from playhead.server.asking import Ask
from playhead.server.finding import run_of
from playhead.server.routes.runs import Limit, Text
from playhead.server.routing import Body, Query, route
from playhead.store.cassettes import form
from playhead.store.cassettes.reading import Cassette
from playhead.store.registry.cassettes import StoredCassette

ZIP = "application/vnd.playhead.cassette"
_TAKES = (ZIP, "application/zip", "application/x-ndjson", "application/octet-stream")
_UNFINISHED = '`"unfinished": true` keeps what there is; POST /api/runs/{run}/finish ends a run that came from outside.'
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=_limits.NAME_CHARACTERS_MAX)]


class CassetteBody(Body):
    """Of which run, and what it is called."""

    run_id: Text  # the run, by any of its names
    name: Name | None = None  # else that of the run
    unfinished: bool = False  # also of a run without an end


@route("POST", "/api/cassettes", scope="ingest", group="Cassettes", body=CassetteBody, runs="writing",
       answers={201: {"id": "cas_…", "run_id": "run_…"}})  # fmt: skip
def make_cassette(ask: Ask) -> Answer:
    """Make a cassette of a run: an immutable snapshot, pinned to the head that the run has now.

    The run is verified first. What is kept lies in the database of the server, which itself refuses any change to it,
    and its digest is checked before it is used. A run of spans whose root has ended is ended by this, without waiting
    until it is quiet. A run without an end is refused with 422, unless `unfinished` says otherwise. The answer is as
    that of GET /api/cassettes/{id}.
    """
    body: CassetteBody = ask.json()
    run = run_of(ask.project, body.run_id)
    if not body.unfinished:
        ask.project.intake.end_if_over(run.id)
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        path = Path(folder) / f"{run.id}{form.ZIP}"
        try:
            pack_run(run, path, unfinished=body.unfinished)
        except UsageError as problem:
            if isinstance(problem.detail, dict) and "unfinished" in problem.detail:
                problem.hint = _UNFINISHED
            raise
        kept = ask.project.shelf.add(path, name=body.name or run.name or run.id, by=_by(ask))
    document = told(kept)
    return answered(document, status=201, headers={"location": f"/api/cassettes/{document['id']}"})


class CassettesQuery(Query):
    """How many at once."""

    limit: Limit = _limits.LIST_RUNS_DEFAULT  # cassettes in one page
    cursor: Text | None = None  # the `next` of the page before


@route("GET", "/api/cassettes", group="Cassettes", query=CassettesQuery)
def list_cassettes(ask: Ask) -> dict[str, Any]:
    """List cassettes, newest first: `{cassettes, next}`, each as GET /api/cassettes/{id} has it."""
    question = [ask.project.name, "cassettes"]
    found, last = ask.project.shelf.list(ask.query.limit, paging.after(ask.query.cursor, question))
    return {"cassettes": [told(one) for one in found], "next": None if last is None else paging.cursor(last, question)}


@route("GET", "/api/cassettes/{id}", group="Cassettes")
def one_cassette(ask: Ask) -> dict[str, Any]:
    """Say what is known of a cassette.

    `{id, name, run_id, external_id, form, runs, events, bytes, digest, head, created, by}`: `digest` is the SHA-256 of
    the file, `head` the `seq` and `hash` that the run had, `runs` counts it and its child runs, `by` is a key.
    """
    return told(ask.project.shelf.get(ask.path["id"]))


@route("GET", "/api/cassettes/{id}/download", group="Cassettes", media=(ZIP, "application/x-ndjson"))
def download_cassette(ask: Ask) -> Streamed:
    """Return a cassette as a file, which `playhead verify`, `replay` and `unpack` read. Its digest is checked first."""
    kept = ask.project.shelf.get(ask.path["id"])
    folder = tempfile.TemporaryDirectory(prefix="playhead-")
    path = Path(folder.name) / f"download{kept.form}"
    try:
        ask.project.shelf.extract(kept.id, path)
    except BaseException:
        folder.cleanup()
        raise
    headers = {
        "content-disposition": f'attachment; filename="{kept.run}{kept.form}"',
        "content-length": str(kept.bytes),
        "etag": f'"{kept.digest}"',
    }
    return Streamed(
        _pieces(folder, path), media="application/x-ndjson" if kept.form == form.LINES else ZIP, headers=headers
    )


def _pieces(folder: tempfile.TemporaryDirectory[str], path: Path) -> Iterator[bytes]:
    with folder, path.open("rb") as file:
        while piece := file.read(_limits.READ_CHUNK_BYTES):
            yield piece


class UploadQuery(Query):
    """What it is called."""

    name: Name | None = None  # else the id of its run


@route("POST", "/api/cassettes/upload", scope="ingest", group="Cassettes", query=UploadQuery, takes=_TAKES,
       runs="writing", answers={201: {"id": "cas_…", "run_id": "run_…"}})  # fmt: skip
def upload_cassette(ask: Ask) -> Answer:
    """Take in a cassette that was made elsewhere, after all of it was checked: a zip, or lines."""
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        zipped = ask.body[:2] == b"PK"
        path = Path(folder) / f"uploaded{form.ZIP if zipped else form.LINES}"
        path.write_bytes(ask.body)
        try:
            cassette = Cassette(path)
            cassette.check()
            kept = ask.project.shelf.add(path, name=ask.query.name or cassette.header.run, by=_by(ask))
        except PlayheadError as problem:  # where it lies meanwhile is nobody's business
            problem.message = problem.message.replace(f"{folder}{os.sep}", "")
            raise
    return answered(told(kept), status=201)


class ReplayBody(Body):
    """Under which id it is fed in."""

    # else one is made
    new_run_id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.:-]{1,128}$(?!\n)")] | None = None


@route("POST", "/api/cassettes/{id}/replay", scope="ingest", group="Cassettes", body=ReplayBody, runs="writing",
       answers={202: {"job_id": "job_…", "status": "queued"}})  # fmt: skip
def replay_cassette(ask: Ask) -> Answer:
    """Feed a cassette through the way that live traffic goes, under a new run id: nothing is executed.

    That is a job: GET /api/jobs/{id} says how far it is. It shows that record and pipeline are sound; it runs no code
    of the agent, and is never called exact. An id that a run has already is answered with 409.
    """
    body: ReplayBody = ask.json()
    kept = ask.project.shelf.get(ask.path["id"])
    target = body.new_run_id or new_run_id()
    check_free(ask.project.store, ask.project.index, target)
    # The id of the run is settled now, so that a second attempt finds what the first one left.
    args = {"cassette": kept.id, "run": target, "as": target if is_run_id(target) else new_run_id()}
    job = ask.project.jobs.add(ask.project.name, "reingest", args, target_run=target)
    document = {"job_id": job.id, "status": job.status, "run_id": target}
    return answered(document, status=202, headers={"location": f"/api/jobs/{job.id}"})


def told(kept: StoredCassette) -> dict[str, Any]:
    """Return what is told of a cassette."""
    return {
        "id": kept.id, "name": kept.name, "run_id": kept.run, "external_id": kept.external_id, "form": kept.form,
        "runs": kept.runs, "events": kept.events, "bytes": kept.bytes, "digest": kept.digest,
        "head": {"seq": kept.head_seq, "hash": kept.head_hash}, "created": utc_text(kept.created_us), "by": kept.by,
    }  # fmt: skip


def _by(ask: Ask) -> str | None:
    return None if ask.caller.key is None else ask.caller.key.id
