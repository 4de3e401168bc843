"""Show a run: its timeline, its state at an event, or one event in full."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import orjson

from playhead import _limits
from playhead._api.naming_events import EventFinder
from playhead._api.reading import Run, load
from playhead._api.settling import Settled
from playhead._api.stores import is_indexed
from playhead._clock import SystemClock
from playhead.capture.naming import is_python
from playhead.cli import verdicts
from playhead.cli.altered import alteration, name_of, warn_if_altered
from playhead.cli.arguments import add_run, store_option
from playhead.cli.earlier import good_one
from playhead.cli.family import family, print_family
from playhead.cli.moment_text import print_error, show_moment
from playhead.cli.output import Output, one_line
from playhead.cli.quick_index import with_short_ids
from playhead.cli.reads_text import show_reads
from playhead.cli.run_text import (
    KILLED,
    in_flight_text,
    meaning_of,
    print_header,
    print_row,
    print_value,
    running_us,
    status_of,
    symbol,
)
from playhead.cli.started import print_started, started_by
from playhead.errors import Altered, BrokenLine, PlayheadError, UsageError
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.replay.readiness import Readiness, readiness
from playhead.store import presence
from playhead.store.price_list import price_list_of
from playhead.store.reader import RunReader
from playhead.views import text
from playhead.views.points import written
from playhead.views.summary import Summary
from playhead.views.timeline import Row, Timeline, window

_NEXT_WIDTH = len("next  ")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument("--at", metavar="SEQ", help="how things stood right after this event, by its number or name")
    parser.add_argument("--step", metavar="NAME", help="how things stood at the end of a step; NAME#2 for the second")
    parser.add_argument("--event", type=int, metavar="SEQ", help="one event in full, every value as it was")
    parser.add_argument("--artifact", metavar="NAME", help="the content of an artifact, as it is")
    parser.add_argument(
        "--output", choices=("stdout", "stderr"), help="what the program wrote there; with --at by then"
    )
    parser.add_argument("--reads", action="store_true", help="what clocks, random numbers, variables and files said")
    parser.add_argument("--source", metavar="TEXT", help="with --reads: only of sources with this in their name")
    parser.add_argument("--lane", help="with --reads: only those of this lane")
    parser.add_argument("--grep", metavar="TEXT", help="with --reads: only those that hold this, or their module does")
    parser.add_argument("--raw", action="store_true", help="the exact lines, as sealed")
    parser.add_argument("--limit", type=int, metavar="N",
                        help=f"at most so many rows, 0 for all ({_limits.SHOW_ROWS_DEFAULT}; --json: all)")  # fmt: skip
    parser.epilog = (
        "examples:\n"
        "  playhead show @last\n"
        "  playhead show fix-login --at 17        what was open, asked, answered and spent by then\n"
        "  playhead show fix-login --step plan      the same, at the end of a step\n"
        "  playhead show run_01jqk3 --event 12 --json | jq .data\n"
        "  playhead show @last --reads --source environ"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.at is not None and args.event is not None:
        raise UsageError("--at and --event are two questions", hint="Ask one after the other.")
    if args.limit is not None and args.limit < 0:
        raise UsageError("--limit is a number of rows, 0 for all")
    if not args.reads and (given := [name for name in ("source", "lane", "grep") if getattr(args, name) is not None]):
        raise UsageError(f"--{given[0]} chooses among what was read", hint="Add `--reads`.")
    if args.step is not None and (args.at is not None or args.event is not None):
        raise UsageError("--step names an event, and so does what is beside it", hint="Leave one of them out.")
    found = load(args.run, args.store)
    if args.artifact is not None:
        return _artifact(found, args, out)
    args.at = EventFinder(RunReader(found.store, found.id)).find(args.at, args.step)
    if args.output is None and not args.raw and not args.reads and args.event is None and args.at is None:
        return _timeline(found, args, out)
    altered = warn_if_altered(found, args.run, out)  # before the first byte: whoever reads may leave in the middle
    if args.output is not None:
        return _output(found, args.output, args.at, altered, out)
    if args.reads:
        return show_reads(found, args, out)
    if args.raw:
        return _raw(found, args, out)
    if args.event is not None:
        return _event(found, args.event, altered, out)
    return show_moment(found, args.at, altered, out, f"{name_of(found, args.run)}{store_option(args.store)}")


def _artifact(found: Run, args: argparse.Namespace, out: Output) -> int:
    try:
        content, altered = found.artifact(args.artifact), None
    except Altered as problem:
        # Shown all the same: who looks into a forgery needs to see it.
        content, altered = found.store.file(found.id, f"artifacts/{args.artifact}"), problem
    if altered is not None:
        out.warn(f"playhead: {altered.message}\n  `playhead verify {name_of(found, args.run)}` says more")
    in_record = altered or warn_if_altered(found, args.run, out)
    _content({"run": found.id, "artifact": args.artifact}, content, in_record, out)
    return 0 if altered is None else 1


def _content(about: dict[str, Any], content: bytes, altered: Altered | None, out: Output) -> None:
    """Write bytes as they are; as JSON a text, or `$bytes` where they are none."""
    if not out.json:
        out.write_bytes(content)
        return
    try:
        told: Any = content.decode("utf-8")
    except UnicodeDecodeError:
        told = content
    out.emit({**about, "content": told, "problem": None if altered is None else altered.as_dict()["error"]})


def _raw(found: Run, args: argparse.Namespace, out: Output) -> int:
    if args.event is not None:
        out.write_bytes(RunReader(found.store, found.id).line(args.event) + b"\n")
        return 0
    for seq, line in enumerate(found.lines()):
        if args.at is not None and seq > args.at:
            break
        out.write_bytes(line + b"\n")
    return 0


def _output(found: Run, stream: str, until: int | None, altered: Altered | None, out: Output) -> int:
    recorded, anything = False, False
    whole = bytearray()  # of JSON, which is one document
    for seq, event in enumerate(found.events()):
        if until is not None and seq > until:
            break
        recorded = recorded or event.kind == "process.started"
        if event.kind == "output.written" and event.data.get("stream") == stream:
            anything = True
            if out.json:
                whole += written(event.data)
            else:
                out.write_bytes(written(event.data))
    if out.json:
        _content({"run": found.id, "stream": stream}, bytes(whole), altered, out)
    if not anything and recorded:
        out.warn(f"playhead: the program wrote nothing to {stream}" + ("" if until is None else " by then"))
    elif not anything:
        out.warn(
            f"playhead: no output was recorded: {found.id} was not made with `playhead record`\n"
            "  `playhead record -- PROGRAM` keeps what a program writes"
        )
    return 0


def _event(found: Run, seq: int, altered: Altered | None, out: Output) -> int:
    event = found.event(seq)
    # From the line itself, since a newer Playhead may have written fields that this one does not know.
    document = {**orjson.loads(RunReader(found.store, found.id).line(seq)), "data": event.data}
    if out.json:
        out.emit(document if altered is None else {**document, "problem": altered.as_dict()["error"]})
        return 0
    out.styled((f"event {event.seq}", "bold"), f" of {found.id}: ", (one_line(event.kind), "magenta"))
    for label in ("time", "elapsed_us", "span", "parent", "lane", "key", "prev", "hash"):
        value = document[label]
        if label == "elapsed_us":
            label, value = "elapsed", text.duration(event.elapsed_us)
        if value is not None:
            out.styled("  ", (f"{label:<11}", "dim"), one_line(str(value)))
    if (other := _other_end(found, event)) is not None:
        label, apart_us = ("closed by", other.elapsed_us - event.elapsed_us) if other.seq > seq else ("opened by", 0)
        after = f", {text.duration(max(0, apart_us))} later" if other.seq > seq else ""
        out.styled("  ", (f"{label:<11}", "dim"), f"event {other.seq}, {one_line(other.kind)}{after}")
    print_value(event.data, out)
    return 0


def _other_end(found: Run, event: Event) -> Event | None:
    """Return the event that closes the span which this one opens, or the other way round."""
    if event.span is None or not (event.kind in OPENING_TO_CLOSING or event.kind in CLOSING):
        return None
    wanted = {OPENING_TO_CLOSING.get(event.kind)} | {
        opening for opening, closing in OPENING_TO_CLOSING.items() if closing == event.kind
    }
    try:
        return next((other for other in found.events() if other.span == event.span and other.kind in wanted), None)
    except PlayheadError:  # a line before the other end cannot be read
        return None


def _timeline(found: Run, args: argparse.Namespace, out: Output) -> int:
    given, limit = args.run, args.limit
    reader = RunReader(found.store, found.id)
    resolve = reader.readable
    timeline = Timeline(resolve, price_list_of(found.store), meaning_of)
    problem = _take_readable(timeline, reader)
    summary = timeline.finish()
    status = status_of(summary, presence.is_written(found.store, found.id))
    rows = list(timeline.rows())
    verified = found.verify()
    altered = alteration(verified.integrity, found, given)
    ready = readiness(reader, verified)
    compared = None if summary.origin is None else _compared(reader)
    if out.json:
        _emit(
            found, summary, status, rows, limit, problem or altered, verdicts.document(verified, ready, compared), out
        )
    else:
        if summary.events:
            now_us = SystemClock().wall_us()
            standing = verdicts.facts(verified, ready, running=status == "running", compared=compared)
            print_header(summary, status, out, resolve, now_us, standing)
            _print_rows(rows, status, summary, _limits.SHOW_ROWS_DEFAULT if limit is None else limit, out, now_us)
            print_family(family(found), found.id, out)
            if children := started_by(found):
                out.styled("\n", ("started", "bold"), ", each a run of its own")
                print_started(found, children, "show", args.store, out)
            _print_end(found, summary, status, resolve, args.store, out)
            _print_next(found, args, _next(found, name_of(found, given), summary, status, ready), out)
        else:
            out.print(f"{found.id} has no events.")
    if altered is not None:
        out.warn(f"playhead: {altered.message}\n  {altered.hint}")
    if problem is not None and not out.json:
        where = f"nothing after event {summary.events - 1}" if summary.events else "no event"
        out.warn(f"playhead: {where} can be read: {problem.message}\n  {problem.hint}")
    return 0 if problem is None else 3


def _compared(reader: RunReader) -> dict[str, Any] | None:
    from playhead.replay.judged import fidelity_of  # here: most runs are no replays

    return fidelity_of(reader)


def _take_readable(timeline: Timeline, reader: RunReader) -> PlayheadError | None:
    """Take events up to the first that cannot be read, and return what was wrong with it."""
    try:
        timeline.take_all(Settled(reader).events())
    except BrokenLine as problem:
        return problem
    return None


def _emit(
    found: Run,
    summary: Summary,
    status: str,
    rows: list[Row],
    limit: int | None,
    problem: PlayheadError | None,
    standing: dict[str, Any],
    out: Output,
) -> None:
    follow = RunReader(found.store, found.id).readable
    head, left_out, tail = window(rows, limit)
    about = {name: getattr(summary, name) for name in summary.__dataclass_fields__}
    for name in ("request", "agent", "git", "ci", "environment", "origin", "tags", "error", "output", "metadata"):
        about[name] = follow(about[name])
    about.update(id=found.id, status=status)
    out.emit(
        {
            "run": about,
            "timeline": [row.as_dict() for row in (*head, *tail)],
            "left_out": left_out,
            "problem": None if problem is None else problem.as_dict()["error"],
            "readiness": standing,
            "family": family(found),
            "children": started_by(found),
        }
    )


def _print_rows(rows: list[Row], status: str, summary: Summary, limit: int, out: Output, now_us: int) -> None:
    out.print()
    head, left_out, tail = window([row for row in rows if not row.quiet], limit)
    lanes, seq_width = len(summary.lanes) > 1, max(4, len(str(summary.events)))
    open_us = running_us(summary, status, now_us)
    for row in head:
        print_row(row, status, out, lanes=lanes, seq_width=seq_width, open_us=open_us)
    if left_out:
        out.styled((f"{'…':>{seq_width}} {text.several(left_out, 'row')} left out; --limit 0 shows all", "dim"))
    for row in tail:
        print_row(row, status, out, lanes=lanes, seq_width=seq_width, open_us=open_us)


def _print_end(found: Run, summary: Summary, status: str, resolve: Any, store: str | None, out: Output) -> None:
    out.print()
    sign, style = symbol(status, out)
    flying = f"; in flight: {in_flight_text(summary)}" if summary.in_flight else ""
    if summary.ended is not None:
        told = f" · {text.several(summary.after, 'event')} after the end" if summary.after else ""
        out.wrapped([(f"{sign} {status}", style), " "], f"after {text.duration(summary.duration_us)}{told}{flying}")
    elif status == "crashed":
        out.wrapped([(f"{sign} crashed", style), " "], f"without an end{flying}")
    else:
        out.styled((f"{sign} running", style), f"; follow it with  playhead tail {found.id}{store_option(store)}")
    print_error(resolve(summary.error), out)
    if summary.last_words:
        out.wrapped(["  "], f"stderr: … {one_line(summary.last_words)}", "red")
    if summary.output is not None:
        print_value(resolve(summary.output), out, _limits.SHOW_VALUE_CHARACTERS_MAX)


def _print_next(found: Run, args: argparse.Namespace, commands: Iterator[str], out: Output) -> None:
    out.print()
    for number, command in enumerate(commands):
        told = f"{command}{store_option(args.store)}"
        if out.terminal and text.cells(told) + _NEXT_WIDTH > out.width and is_indexed(found.store):
            told = with_short_ids(found.store.root, told)
        out.styled(("      " if number else "next  ", "dim"), told)


def _next(found: Run, name: str, summary: Summary, status: str, ready: Readiness) -> Iterator[str]:
    """Yield the commands that one may want next."""
    yield f"playhead show {name} --at SEQ"
    failed = status not in ("ok", "running") and summary.origin is None  # what replays another is compared with that
    if failed and (good := good_one(found.store, found.id, summary.name)) is not None:
        yield f"playhead diff {good} {name}"
    code = summary.output.get("exit_code") if isinstance(summary.output, dict) else None
    if (status == "crashed" or (isinstance(code, int) and code > KILLED)) and _starts_python(found):
        yield f"playhead resume {name}"
    yield f"playhead verify {name}"
    if ready.replayable:
        yield f"playhead replay {name}"
    if ready.replayable and not ready.not_captured and summary.origin is None and _starts_python(found):
        yield f"playhead replay {name} --mode exact"
    if summary.wrote_stderr and status in ("error", "crashed"):
        yield f"playhead show {name} --output stderr"


def _starts_python(found: Run) -> bool:
    """Say whether the run says how to start it again, and that is a program that could be answered from its record."""
    entry = found.event(0).data.get("entrypoint")
    argv = entry.get("argv") if isinstance(entry, dict) else None
    return isinstance(argv, list) and bool(argv) and is_python([str(word) for word in argv])
