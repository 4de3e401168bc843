"""Replay a program up to an event, and open Python's debugger there, in the agent's own frame."""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playhead import settings as settings_module
from playhead._api.fetching import load_here
from playhead._api.reading import Run
from playhead.cli import live_options
from playhead.cli.arguments import add_run
from playhead.cli.moment_text import show_moment
from playhead.cli.output import Output, one_line
from playhead.errors import PlayheadError, UsageError
from playhead.event.kinds import CLOSING
from playhead.replay.ahead import Place, places
from playhead.replay.course import Course, Stop
from playhead.replay.events_by_name import event_of
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.relaunch import relaunch
from playhead.replay.tape import Tape
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views.spans import SpanView

FIRST_ERROR, DEVIATION = "first-error", "deviation"
_NOT_AGAINST = ("execution_incomplete", "not_captured", "self_replay_differs")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument("--at", default=FIRST_ERROR, metavar="SEQ",
                        help="an event, its name, first-error (the default), or deviation")  # fmt: skip
    live_options.add_waive(parser)
    parser.usage = "playhead debug RUN [--at SEQ|first-error|deviation] [options] [-- PROGRAM [ARGUMENTS]]"
    parser.epilog = (
        "The program is replayed exactly, nothing live, and stops when it comes to the event. There is Python's own\n"
        "debugger (pdb) with all that it can do, and these besides:\n"
        "  state          prompt, context and messages at this event\n"
        "  back, forward  go to the event before or after: the program is replayed up to it\n"
        "  goto SEQ       go to an event\n"
        "  event          say at which event this is\n"
        "  quit           end\n"
        "What is evaluated there is not recorded, and meets no network and no disk.\n\n"
        "examples:\n"
        "  playhead debug @last\n"
        "  playhead debug @last --at 17\n"
        "  playhead debug @last --at deviation -- python agent.py"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Debug."""
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL.")
    if out.json:
        raise UsageError(
            "a debugger is for people: it has no --json", hint="`playhead show RUN --at SEQ --json` has the state."
        )
    recorded = load_here(args.run, args.store)
    reader = RunReader(recorded.store, recorded.id)
    waive = [*(reason for named in args.waive for reason in named.split(",")), *_NOT_AGAINST]
    refuse_unless_ready(exact_readiness(reader), reader.id, waive)
    stops = list(places(reader))
    if not stops:
        raise UsageError(f"{reader.id} has no event that its code caused", hint="`playhead show RUN` lists its events.")
    at = _first(args.at, reader, stops, out)
    with tempfile.TemporaryDirectory(prefix="playhead-debug-") as folder:
        return _session(args, recorded, stops, at, FileStore(Path(folder)), out)


def _session(
    args: argparse.Namespace, recorded: Run, stops: list[Place], at: int | None, store: FileStore, out: Output
) -> int:
    """Go from event to event, as whoever sits there wants."""
    tape = Tape(RunReader(recorded.store, recorded.id))
    reads, writes = os.dup(0), os.dup(1)
    for number in (reads, writes):
        os.set_inheritable(number, True)
    others = _beside(at, 0, at, stops)
    while True:
        stop = Stop(
            at=at,
            reads=reads,
            writes=writes,
            header=_header(recorded, at),
            state=_state(recorded, at),
            last=tape.head[0],
        )
        course = Course(mode="exact", debug=stop)
        ran = relaunch(tape, store, settings_module.load(), argv=args.program or None, course=course)
        if ran.asked is None:
            came = "nothing differs from the tape" if at is None else f"it did not come to event {at}"
            out.warn(f"playhead: the program ended (exit code {ran.exit_code}): {came}")
            return 3 if at is not None else 0
        if "unseen" in ran.asked:
            out.warn(f"playhead: none of the program's own code leads to event {at}")
            at = next(others, None)
            if at is None:
                return 3
            continue
        if "goto" not in ran.asked:
            out.warn(f"playhead: the program went on to its end (exit code {ran.exit_code})")
            return 0
        to = ran.asked["goto"]
        if to is None:
            return 0
        before = ran.asked.get("from", at)
        at = _next(to, before, stops, out)
        others = _beside(at, to, before, stops)


def _first(given: str, reader: RunReader, stops: list[Place], out: Output) -> int | None:
    """Return the event to begin at; None for the first difference."""
    if given == DEVIATION:
        return None
    if given == FIRST_ERROR:
        found = _first_error(reader, stops)
        if found is None:
            last = stops[-1].seq
            out.warn(f"playhead: no error was recorded; this is the last event, {last}")
            return last
        return found
    at, head = event_of(reader, given), Tape(reader).head[0]
    if at > head:
        raise UsageError(f"{reader.id} has no event {given}", hint=f"Its events are 0 to {head}.")
    return _near(at, stops, out)


def _first_error(reader: RunReader, stops: list[Place]) -> int | None:
    known = {place.seq for place in stops}
    for event in reader.resolved():
        failed = "error" in (event.data.get("status"), event.data.get("outcome"))
        if event.seq in known and failed:
            return event.seq
        if event.kind == "run.finished" and failed:
            return stops[-1].seq  # its own code failed, after this
    return None


def _near(seq: int, stops: list[Place], out: Output) -> int:
    """Return the event at which the program can be stopped: that one, or the last before it."""
    found = max((place.seq for place in stops if place.seq <= seq), default=stops[0].seq)
    if found != seq:
        out.warn(f"playhead: the program's own code does not cause event {seq}; this is event {found}")
    return found


def _next(to: str | int, at: int | None, stops: list[Place], out: Output) -> int | None:
    seqs = [place.seq for place in stops]
    if isinstance(to, int):
        return _near(to, stops, out)
    if at is None:
        out.warn("playhead: this is the first difference; `goto SEQ` goes to an event")
        return None
    where = seqs.index(at) + (1 if to == "forward" else -1)
    if not 0 <= where < len(seqs):
        out.warn(f"playhead: there is no event {'after' if to == 'forward' else 'before'} this one")
        return at
    return seqs[where]


def _beside(at: int | None, to: str | int, before: int | None, stops: list[Place]) -> Iterator[int]:
    """Yield where to stop in place of an event at which none of the program's own code is there, one after the other.

    Whoever goes forward or back goes on so, and else stays where he was; elsewhere it is the last event before it.
    """
    earlier = [place.seq for place in reversed(stops) if at is not None and place.seq < at]
    later = [place.seq for place in stops if at is not None and place.seq > at]
    yield from later if to == "forward" else earlier
    if isinstance(to, str) and before is not None:
        yield before
    yield from later


def _header(recorded: Run, at: int | None) -> str:
    """Say at which event the program stops, as `show` lists it."""
    if at is None:
        return ""
    reader = RunReader(recorded.store, recorded.id)
    event = about = reader.event(at)
    if event.kind in CLOSING:
        about = next(one for one in reader.events() if one.span == event.span)
    name = one_line(SpanView(reader.resolve(about)).name)
    lane = "" if event.lane == "0" else f", lane {event.lane}"
    return f"\nevent {at} of {recorded.id}: {event.kind} {name}{lane}\n"


def _state(recorded: Run, at: int | None) -> str:
    if at is None:
        return "which event this is nobody knows: it is not on the tape"
    told = io.StringIO()
    try:
        show_moment(recorded, at, None, Output(json=False, color=False, stdout=told, terminal=False), recorded.id)
    except PlayheadError as problem:
        return str(problem)
    return told.getvalue()
