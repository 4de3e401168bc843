"""Follow a run while it happens, until it ends or its writer is gone."""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from playhead import _limits
from playhead._api.reading import Run, load, open_index, open_store
from playhead.cli.altered import warn_if_altered
from playhead.cli.arguments import add_run
from playhead.cli.output import Output, one_line
from playhead.cli.run_text import in_flight_text, meaning_of, print_row, status_of
from playhead.errors import UsageError
from playhead.event import envelope
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.store import presence
from playhead.store.reader import RunReader
from playhead.store.remote.reading import RemoteStore
from playhead.views import text
from playhead.views.timeline import Row, Timeline

_SEQ_WIDTH = 5
_LOOKS_UNHELD = 3  # a writer that just starts creates the timeline before it holds the run

_Entry = tuple[bytes, Row]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, nargs="?", help="the run; else the newest one that is running, else @last")
    parser.add_argument("-n", "--last", type=int, default=_limits.TAIL_EVENTS_DEFAULT, metavar="N",
                        help="begin with the last N events; 0 for none, -1 for all (%(default)s)")  # fmt: skip
    parser.add_argument("--follow", action=argparse.BooleanOptionalAction, default=True,
                        help="wait for more until the run ends (the default)")  # fmt: skip
    parser.epilog = (
        "With --json every event is written as its exact line. Exit code: 0 the run ended, 3 it crashed.\n\n"
        "examples:\n"
        "  playhead tail\n"
        "  playhead tail fix-login -n -1 --no-follow\n"
        "  playhead tail --json | jq -c 'select(.kind == \"tool.called\") | .data'"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.last < -1:
        raise UsageError("-n is a number of events, 0 for none, -1 for all")
    found = _chosen(args)
    teller = _Teller(found, out)
    recent: deque[_Entry] = deque(maxlen=None if args.last == -1 else args.last)
    follower = Follower(found)
    recent.extend(teller.take(line) for line in follower.new_lines())
    if not out.json:
        out.warn(f"{found.id}  {one_line(teller.name)}".rstrip())
    for entry in recent:
        teller.tell(entry)
    out.stdout.flush()
    while args.follow and not teller.ended and not follower.is_abandoned():
        for line in follower.new_lines():
            teller.tell(teller.take(line))
        out.stdout.flush()
    return teller.conclude(args.run or found.id)


def _chosen(args: argparse.Namespace) -> Run:
    if args.run is not None:
        return load(args.run, args.store)
    with open_index(open_store(args.store)) as index:
        running = index.list_runs(limit=1, status="running")
    return load(running[0]["id"] if running else "@last", args.store)


class Follower:
    """Read what a writer adds to a timeline."""

    def __init__(self, found: Run, sleep: Callable[[float], None] = time.sleep) -> None:
        self._run = found
        self._offset = 0
        self._sleep = sleep
        self._unheld = 0

    def new_lines(self) -> Iterator[bytes]:
        """Yield the whole lines that were added since the last time."""
        for line in self._run.store.lines(self._run.id, self._offset):
            if line[-1:] != b"\n":
                return  # torn, or just being written
            self._offset += len(line)
            self._unheld = 0
            yield line[:-1]

    def is_abandoned(self) -> bool:
        """Wait a little, and say whether no writer held the run at several looks, with nothing new to read."""
        self._unheld = 0 if presence.is_written(self._run.store, self._run.id) else self._unheld + 1
        if self._unheld >= _LOOKS_UNHELD:
            return True
        here = not isinstance(self._run.store, RemoteStore)
        self._sleep(_limits.TAIL_INTERVAL_S if here else _limits.REMOTE_TAIL_INTERVAL_S)
        return False


class _Teller:
    """Say events one by one."""

    def __init__(self, found: Run, out: Output) -> None:
        self._found = found
        self._out = out
        self._timeline = Timeline(RunReader(found.store, found.id).readable, interpret=meaning_of)
        self._lanes = False

    @property
    def name(self) -> str:
        """Return the name of the run, as far as it was read."""
        return self._timeline.summary.name

    @property
    def ended(self) -> bool:
        """Say whether run.finished is in force."""
        return self._timeline.summary.ended is not None

    def take(self, line: bytes) -> _Entry:
        """Look at the next line, and return what can be told of it later."""
        event = envelope.parse(line)
        row = self._timeline.take(event)
        self._lanes = self._lanes or event.lane != "0"
        if row is not None and event.kind in CLOSING:
            return line, replace(row, seq=event.seq, detail="")
        told = self._timeline.row_of(event)
        told.depth = 0 if row is None else row.depth
        if event.kind in OPENING_TO_CLOSING:
            told.status = "opens"
        elif event.kind == "run.finished":
            told.kind, told.detail, told.status = "run", "finished", str(self._timeline.summary.ended)
            told.error = text.error_line(self._timeline.summary.error)
        return line, told

    def tell(self, entry: _Entry) -> None:
        """Write it."""
        line, row = entry
        if self._out.json:
            self._out.write_bytes(line + b"\n")
        else:
            print_row(row, "running", self._out, lanes=self._lanes, seq_width=_SEQ_WIDTH)

    def conclude(self, given: str) -> int:
        """Say how the run stands, and return the exit code; `given` is how the user named it."""
        summary = self._timeline.finish()
        status = status_of(summary, presence.is_written(self._found.store, self._found.id))
        told = f"{self._found.id} {status}"
        if status == "crashed":
            flying = in_flight_text(summary)
            told = f"{told}: its writer is gone and it has no end" + (f"; in flight: {flying}" if flying else "")
        elif summary.ended:
            told = f"{told} after {text.duration(summary.duration_us)}, {text.several(summary.events, 'event')}"
        if not self._out.json or status == "crashed":
            self._out.warn(told)
        if status != "running":
            warn_if_altered(self._found, given, self._out)
        return 3 if status == "crashed" else 0
