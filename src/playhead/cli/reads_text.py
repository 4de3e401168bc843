"""Write what the lanes of a run read, one line for each read."""

from __future__ import annotations

import argparse
import itertools
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from playhead import _limits
from playhead._api.reading import Run
from playhead.cli.output import Output, one_line
from playhead.views import text
from playhead.views.reads import LaneRead, is_asked_for, reads_of, said

_VALUE_WIDTH_MIN = 24  # however long the names beside it are


def show_reads(found: Run, args: argparse.Namespace, out: Output) -> int:
    """Write the reads that were asked for, as JSON all of them."""
    chosen = (
        read for read in _among(found, args) if is_asked_for(read, source=args.source, lane=args.lane, grep=args.grep)
    )
    limit = (None if out.json else _limits.SHOW_ROWS_DEFAULT) if args.limit is None else args.limit or None
    if out.json:
        shown = itertools.islice(chosen, limit)
        out.emit([{**read._asdict(), "value": _marked(read.value)} for read in shown])
        return 0
    number = 0
    for number, read in enumerate(chosen, 1):
        if limit is not None and number > limit:
            out.styled(("… and more; --limit 0 shows all", "dim"))
            break
        _print(read, out)
    if not number:
        _explain(found, args, out)
    return 0


def _among(found: Run, args: argparse.Namespace) -> Iterator[LaneRead]:
    if args.event is not None:
        return reads_of([found.event(args.event)])
    return itertools.takewhile(lambda read: args.at is None or read.seq <= args.at, found.reads())


def _print(read: LaneRead, out: Output) -> None:
    """Write one read in one line; where it is too long, of the value only the beginning."""
    where = f"{read.seq:>4} {text.cut(read.lane, 7):<7} "
    source = one_line(f"{read.via} ({read.of})" if read.via else read.of)
    by = f"  ← {one_line(read.by)}" if read.by else ""
    if out.terminal and text.cells(f"{where}{source} → {by}") + _VALUE_WIDTH_MIN > out.width:
        by, source = "", one_line(read.of)  # the value says more
    room = max(_VALUE_WIDTH_MIN, out.width - text.cells(f"{where}{source} → {by}"))
    value = text.cut(one_line(said(read, room)), room)
    out.styled((where, "dim"), f"{source} → {value}", (by, "dim"))


def _explain(found: Run, args: argparse.Namespace, out: Output) -> None:
    """Say why there is nothing to see."""
    if args.event is not None and (kind := found.event(args.event).kind) != "ambient.read":
        out.warn(f"playhead: event {args.event} is {kind} and holds no reads; those are in `ambient.read`")
    elif next(found.reads(), None) is not None:
        out.warn("playhead: none of what was read is like that; without a filter --reads lists all of it")
    elif next(found.events()).data.get("ambient") is True:
        out.warn(f"playhead: {found.id} holds no reads: they were watched, and its program asked for nothing")
    else:
        out.warn(
            f"playhead: {found.id} holds no reads\n"
            "  `playhead record` keeps them, and `playhead.install()` at the beginning of a program"
        )


def _marked(value: Any) -> Any:
    return {"$bytes": b64encode(value).decode()} if isinstance(value, bytes) else value
