"""Read the events of a run: as they were sealed, or every value as it was; and how things stood at one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import orjson

from playhead import _limits
from playhead.errors import RunNotFound, UsageError
from playhead.event.envelope import kind_of
from playhead.server.answering import NDJSON, Answer, Streamed
from playhead.server.asking import Ask
from playhead.server.finding import reader_of, run_of
from playhead.server.routes.runs import Text
from playhead.server.routing import Query, route
from playhead.store import layout
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

Seq = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class EventsQuery(Query):
    """Which events, and in which form."""

    start: Seq = 0  # the first
    limit: Annotated[int, msgspec.Meta(ge=1, le=_limits.EVENTS_PAGE_MAX)] = _limits.EVENTS_PAGE_DEFAULT  # in one page
    kind: Text | None = None  # only of this kind: model.invoked, or model for all of that noun
    resolve: bool = True  # every value as it was; else as it stands in the line, with references


@route("GET", "/api/runs/{run}/events", group="Events", query=EventsQuery, media=("application/json", NDJSON))
def list_events(ask: Ask) -> Any:
    """List the events of a run in order, a page at a time.

    With `Accept: application/x-ndjson` all of them from `start` on, as the exact lines that were sealed: save them, and
    `playhead verify` checks the chain. Else as JSON, every value as it was unless `resolve=false`: `{run, events,
    next}`, where `next` is the `start` of the next page.
    """
    query: EventsQuery = ask.query
    reader = reader_of(run_of(ask.project, ask.path["run"]))
    lines = ((seq, line) for seq, line in enumerate(reader.lines_from(query.start), query.start))
    chosen = ((seq, line) for seq, line in lines if _is_meant(line, query.kind))
    if ask.wants(NDJSON):
        return Streamed(_pieces(line for _, line in chosen), headers={"x-playhead-run": reader.id})
    page = list(itertools.islice(chosen, query.limit + 1))
    last = page[query.limit][0] if len(page) > query.limit else None
    return {"run": reader.id, "events": [_told(reader, line, query.resolve) for _, line in page[: query.limit]],
            "next": last}  # fmt: skip


@route("GET", "/api/runs/{run}/events/{seq}", group="Events")
def one_event(ask: Ask) -> dict[str, Any]:
    """Return one event in full, every value as it was: the thirteen fields of its line."""
    reader = reader_of(run_of(ask.project, ask.path["run"]))
    seq = ask.path["seq"]
    if not seq.isdecimal() or len(seq) > _limits.BACK_DIGITS_MAX:
        raise UsageError(f"not the number of an event: {seq[:40]!r}")
    return _told(reader, reader.line(int(seq)), True)


class StateQuery(Query):
    """At which event."""

    at: Text | None = None  # its number, or a name as `show --at` takes it: gpt-5#2
    step: Text | None = None  # the end of a step; NAME#2 for the second


@route("GET", "/api/runs/{run}/state", group="Events", query=StateQuery)
def state_at(ask: Ask) -> dict[str, Any]:
    """Say how things stood right after an event: the prompt in force, what was open, answered, allowed and spent.

    As `playhead show --at --json` has it.
    """
    query: StateQuery = ask.query
    run = run_of(ask.project, ask.path["run"])
    at: int | str | None = query.at
    if isinstance(at, str) and at.isdecimal():
        at = int(at[: _limits.BACK_DIGITS_MAX + 1])
    found: dict[str, Any] = run.at(at, step=query.step).as_dict()
    return found


class LinesQuery(Query):
    """From where on, and how much."""

    start: Annotated[int, msgspec.Meta(ge=0, le=2**60)] = 0  # a byte of the timeline, where a line begins
    # whole lines, of no more than so many bytes together, or one line that is longer; else all there are
    most: Annotated[int, msgspec.Meta(ge=1, le=_limits.REMOTE_PAGE_BYTES_MAX)] | None = None


@route("GET", "/api/runs/{run}/lines", group="Events", query=LinesQuery, media=(NDJSON,))
def timeline_of(ask: Ask) -> Answer | Streamed:
    """Return the timeline byte by byte as it lies in the store, from one byte on; also a last line that was cut off.

    With `most` a page of it: `X-Playhead-End` says whether it goes to the end, as `true` or `false`.
    """
    query: LinesQuery = ask.query
    run = run_of(ask.project, ask.path["run"])
    lines = run.store.lines(run.id, min(query.start, _size(ask.project.store, run.id)))
    headers = {"x-playhead-run": run.id}
    if query.most is None:
        return Streamed(_batched(lines), headers=headers)
    page: list[bytes] = []
    room, ended = query.most, "true"
    for line in lines:
        room -= len(line)
        if page and room < 0:
            ended = "false"
            break
        page.append(line)
    return Answer(b"".join(page), media=NDJSON, headers={**headers, "x-playhead-end": ended})


def _size(store: FileStore, run: str) -> int:
    try:
        return layout.timeline(store.folder(run)).stat().st_size
    except OSError:
        raise RunNotFound(f"no timeline at {layout.timeline(store.folder(run))}") from None


def _is_meant(line: bytes, kind: str | None) -> bool:
    if kind is None:
        return True
    found = kind_of(line) or ""
    return found == kind or found.partition(".")[0] == kind


def _told(reader: RunReader, line: bytes, resolve: bool) -> dict[str, Any]:
    """Return an event from the line itself: a newer Playhead may have written fields that this one does not know."""
    document: dict[str, Any] = orjson.loads(line)
    if resolve:
        document["data"] = reader.parsed(line).data
    return document


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    return _batched(line + b"\n" for line in lines)


def _batched(lines: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _limits.READ_CHUNK_BYTES // 4:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
