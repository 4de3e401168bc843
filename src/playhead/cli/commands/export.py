"""Write runs for other programs: the exact lines, one JSON document, or a table. Runs of any size are streamed."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import orjson

from playhead._api.reading import Run, load
from playhead.cli.altered import warn_if_altered
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.cli.spreadsheet import write_rows
from playhead.cli.whole_file import whole_file
from playhead.errors import UsageError
from playhead.event.envelope import FORMAT, parse
from playhead.event.resolve import has_references
from playhead.store.reader import RunReader
from playhead.views.spans import SpanView

FORMATS = ("jsonl", "json", "csv")
COLUMNS = (
    "run", "seq", "time", "elapsed_us", "kind", "span", "parent", "lane", "key", "name", "status", "data", "prev",
    "hash",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "runs", nargs="+")
    parser.add_argument("--format", choices=FORMATS, help="jsonl: the exact lines (the default); json; csv")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    parser.add_argument("--resolve", action="store_true",
                        help="in jsonl and csv too, write every value as it was; such lines do not verify")  # fmt: skip
    parser.epilog = (
        "jsonl is byte for byte the timeline, so it can be verified wherever it goes. json holds every value as\n"
        "it was. csv has one row for each event; cells that a spreadsheet would calculate begin with an apostrophe.\n\n"
        "examples:\n"
        "  playhead export @last -o run.jsonl\n"
        "  playhead export @last --format json | jq '.runs[0].events[].kind'\n"
        "  playhead export @last @last~1 --format csv -o runs.csv"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    form = args.format or ("json" if out.json and args.output is None else "jsonl")
    if out.json and args.output is None and form == "csv":
        raise UsageError("--json and --format csv both want stdout", hint="Write the CSV to a file with `-o FILE`.")
    runs = [load(reference, args.store) for reference in args.runs]
    for found, given in zip(runs, args.runs, strict=True):
        warn_if_altered(found, given, out)  # before the first byte: whoever reads may leave in the middle
    if args.output is None or args.output == "-":
        _write(runs, form, args.resolve, out.binary)
        return 0
    target = Path(args.output)
    with whole_file(target) as file:
        events = _write(runs, form, args.resolve, file)
    size = target.stat().st_size
    if out.json:
        ids = [found.id for found in runs]
        out.emit({"file": str(target), "format": form, "runs": ids, "events": events, "bytes": size})
    else:
        out.warn(f"wrote {events:,} events to {target} ({size:,} bytes)")
    return 0


def _write(runs: list[Run], form: str, resolve: bool, target: BinaryIO) -> int:
    if form == "csv":
        text = io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True)
        try:
            return write_rows(text, _rows(runs, resolve)) - 1
        finally:
            text.detach()
    return _write_document(runs, target) if form == "json" else _write_lines(runs, resolve, target)


def _write_lines(runs: list[Run], resolve: bool, target: BinaryIO) -> int:
    count = 0
    for found in runs:
        if resolve:
            lines: Iterator[bytes] = (line + b"\n" for line in _resolved(found))
        else:
            lines = found.store.lines(found.id)  # with a torn last one, if there is one: these are the exact bytes
        for line in lines:
            if line.endswith(b"\n") or found is runs[-1]:  # half a line, with another run after it, would look edited
                target.write(line)
                count += 1
    return count


def _write_document(runs: list[Run], target: BinaryIO) -> int:
    count = 0
    target.write(b'{"format":%d,"runs":[' % FORMAT)
    for number, found in enumerate(runs):
        target.write((b"," if number else b"") + b'\n{"id":%b,"events":[' % orjson.dumps(found.id))
        for seq, line in enumerate(_resolved(found)):
            target.write((b",\n" if seq else b"\n") + line)
            count += 1
        target.write(b"\n]}")
    target.write(b"\n]}\n")
    return count


def _rows(runs: list[Run], resolve: bool) -> Iterator[tuple[Any, ...]]:
    yield COLUMNS
    for found in runs:
        for event in found.events(resolve=resolve):
            data = event.data if isinstance(event.data, dict) else {}
            status = data.get("outcome") or data.get("status") or data.get("decision")
            extra = {
                "name": SpanView(event).name,
                "status": status if isinstance(status, str) else None,
                "data": msgspec.json.encode(event.data).decode(),
            }
            yield tuple(extra.get(column) if column in extra else getattr(event, column) for column in COLUMNS)


def _resolved(found: Run) -> Iterator[bytes]:
    """Yield each line with every value as it was; fields that this release does not know stay."""
    reader = RunReader(found.store, found.id)
    for line in reader.lines():
        event = parse(line)  # a line that is not one must not end up inside a document
        if has_references(line):
            yield msgspec.json.encode({**orjson.loads(line), "data": reader.resolve(event).data})
        else:
            yield line
