"""Take in once more what a run took in: its spans and logs as they came, through the way that live traffic goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from playhead._api.receiving.open_run import OpenRun
from playhead._api.receiving.reading_back import ReadingBack
from playhead._api.receiving.standing import Standing
from playhead._clock import parse_utc
from playhead._version import __version__
from playhead.capture.gate import Gate
from playhead.errors import BadCassette
from playhead.event.kinds import RunStarted
from playhead.ingest.otlp.spans import LogRecord, Span
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

# What reading lines raises that are sound, and that no server of ours has written.
_NOT_OURS = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
_AT_ONCE = 100  # spans, as an exporter sends them


def is_received(reader: RunReader) -> bool:
    """Say whether a run was taken in as spans and logs."""
    return isinstance(reader.first().data.get("received"), dict)


def take_again(
    reader: RunReader,
    store: FileStore,
    gate: Gate,
    run: str,
    *,
    origin: dict[str, Any],
    external_id: str,
    going_on: Callable[[int, int], bool],
) -> int | None:
    """Make a new run of what another one took in; return how many spans there were, None where it was called off."""
    first = reader.first()
    base_us = parse_utc(first.time) - first.elapsed_us
    standing = Standing()
    with _read_as_ours(reader):
        standing.take_all(reader.lines(), reader.readable)
    total = len(standing.spans)
    new = OpenRun(store, run, gate, create=True)
    try:
        new.begin(_started(first.data, origin, external_id), base_us)
        for number, (spans, logs) in enumerate(_pages(reader, standing, base_us)):
            if not going_on(number * _AT_ONCE, total):
                return None
            new.take(spans, logs)
        for status, error in _ends(reader):
            new.finish(status, error)
        new.sync()
    finally:
        new.close()
    return total


def _pages(reader: RunReader, standing: Standing, base_us: int) -> Iterator[tuple[list[Span], list[LogRecord]]]:
    """Yield spans and logs as they came, some at a time, and at last the logs that belong to none of them."""
    back = ReadingBack(reader.store, reader.id, standing, base_us)
    with _read_as_ours(reader):
        ids = sorted(standing.spans, key=lambda id: standing.spans[id].opened)
    for start in range(0, len(ids), _AT_ONCE):
        page = ids[start : start + _AT_ONCE]
        with _read_as_ours(reader):
            spans, logs = [back.span(id) for id in page], [log for id in page for log in back.logs(id)]
        yield spans, logs
    with _read_as_ours(reader):
        loose = back.loose_logs()
    yield [], loose


@contextmanager
def _read_as_ours(reader: RunReader) -> Iterator[None]:
    """Say of what cannot be read that somebody else has written it."""
    try:
        yield
    except _NOT_OURS as problem:
        raise BadCassette(
            f"what {reader.id} says of its spans is not as a server writes it ({type(problem).__name__})",
            hint="Somebody else made these lines. `playhead show` and `diff` read them as they are.",
        ) from None


def _started(data: dict[str, Any], origin: dict[str, Any], external_id: str) -> RunStarted:
    names = {field.name for field in msgspec.structs.fields(RunStarted)}
    kept = {name: value for name, value in data.items() if name in names}
    kept |= {"origin": origin, "external_id": external_id, "sdk": {"name": "playhead", "version": __version__}}
    return RunStarted(**kept)


def _ends(reader: RunReader) -> Iterator[tuple[Any, Any]]:
    """Yield how the run ended, where it has: as the last of its ends says."""
    last = None
    for event in reader.resolved():
        if event.kind in ("run.finished", "run.reopened"):
            last = event
    if last is not None and last.kind == "run.finished":
        yield last.data.get("status"), last.data.get("error")
