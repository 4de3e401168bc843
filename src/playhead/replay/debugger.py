"""Stop a replayed program at an event, and open Python's debugger in the agent's own frame at that moment."""

from __future__ import annotations

import contextlib
import io
import os
import pdb
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import orjson

from playhead.capture import scope
from playhead.replay.course import Stop
from playhead.replay.onward import OnwardPlayer
from playhead.replay.where import is_own

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

ASKED = "asked"  # the file in the scratch folder that says where to go next
_SETTLES_S = 0.05  # in which what the program has printed comes to the terminal


class DebuggingPlayer(OnwardPlayer):
    """What answers while a program is replayed up to an event, at which somebody looks around."""

    def __init__(self, *args: Any, stop: Stop, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stop: Stop = stop
        self.at: int | None = None  # the event that the program has come to
        self._stopped = False

    def reached(self, seq: int, kind: str, lane: str) -> None:
        """Stop, if this is the event."""
        self.at = seq
        if seq == self.stop.at:
            self._look_around()

    def differs(self, recording: Recording | None, found: dict[str, Any]) -> None:
        """Stop at the first difference, if that is wanted."""
        super().differs(recording, found)
        if self.stop.at_deviation:
            self.stop_told(f"{found['text']}\n")
            self._look_around()

    def stop_told(self, text: str) -> None:
        """Say something where the debugger speaks."""
        with contextlib.suppress(OSError):
            os.write(self.stop.writes, text.encode())

    def _look_around(self) -> None:
        frame = _agents_frame(sys._getframe(1))
        if self._stopped:
            return
        assert self.scratch is not None, "a program that is replayed has one"
        if frame is None:  # somebody else calls it, as a pool does that was handed a tool
            (self.scratch / ASKED).write_bytes(orjson.dumps({"unseen": self.at}))
            return
        self._stopped = True
        (self.scratch / ASKED).write_bytes(orjson.dumps({"went_on": True}))
        debugger = Debugger(self)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        select.select([], [], [], _SETTLES_S)
        self.stop_told(self.stop.header)
        debugger.look(frame)


def _agents_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the agent's own code that led here."""
    while frame is not None and not is_own(frame):
        frame = frame.f_back
    return frame


class _Typed(io.TextIOBase):
    """What is typed, line by line: not a byte more, since another process may read on."""

    def __init__(self, number: int) -> None:
        self._number = number

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Return the next line; nothing at the end."""
        line = bytearray()
        while not line.endswith(b"\n") and (byte := os.read(self._number, 1)):
            line += byte
        return line.decode("utf-8", "replace")


class Debugger(pdb.Pdb):
    """Python's debugger, with the events of the tape to go to."""

    def __init__(self, player: DebuggingPlayer) -> None:
        stop = player.stop
        reads: Any = _Typed(stop.reads)
        writes = os.fdopen(os.dup(stop.writes), "w", encoding="utf-8", errors="replace")
        super().__init__(stdin=reads, stdout=writes, nosigint=True, readrc=False, skip=["playhead.*"])
        self._player = player
        self.prompt = f"(playhead {'deviation' if stop.at is None else stop.at}) "

    def look(self, frame: FrameType) -> None:
        """Open it at a frame, now; go on as it was told to."""
        self.reset()
        self.interaction(frame, None)
        if self.quitting:
            self._go(None)
        if self.breaks or self.stopframe is not None or self.stoplineno != -1:
            self.botframe = frame
            at: FrameType | None = frame
            while at is not None:
                at.f_trace = self.trace_dispatch
                self.botframe = at
                at = at.f_back
            sys.settrace(self.trace_dispatch)

    def interaction(self, frame: Any, traceback: Any) -> None:
        """Speak with whoever sits there; meanwhile nothing in the program goes on, and nothing is recorded."""
        if self._player.stop.at is not None:
            self.prompt = f"(playhead {self._player.at}) "
        with self._standing_still():
            super().interaction(frame, traceback)

    @contextlib.contextmanager
    def _standing_still(self) -> Iterator[None]:
        order, process = self._player.order, scope.ambient()
        held, order.held = order.held, True
        muted, current = scope.muted.set(True), scope.current.set(None)
        scope.set_ambient(None)
        try:
            yield
        finally:
            scope.set_ambient(process)
            scope.current.reset(current)
            scope.muted.reset(muted)
            order.held = held

    def _go(self, to: Any) -> NoReturn:
        """End this program, and say where to go."""
        player = self._player
        assert player.scratch is not None, "a program that is replayed has one"
        (Path(player.scratch) / ASKED).write_bytes(orjson.dumps({"goto": to, "from": player.at}))
        self.stdout.flush()
        os._exit(0)

    # What can be said besides.

    def do_back(self, _: str) -> None:
        """back

        Go to the event before this one: the program is replayed up to it.
        """
        self._go("back")

    def do_forward(self, _: str) -> None:
        """forward

        Go to the event after this one.
        """
        self._go("forward")

    def do_goto(self, argument: str) -> None:
        """goto SEQ

        Go to an event.
        """
        if not argument.strip().isdecimal():
            self.error("goto needs the number of an event")
        elif int(argument) > self._player.stop.last:
            self.error(f"there is no event {argument.strip()}: the last is {self._player.stop.last}")
        else:
            self._go(int(argument))

    def do_state(self, _: str) -> None:
        """state

        Show how things stood at this event: prompt, context, messages, what was open and spent.
        """
        self.message(self._player.stop.state.rstrip("\n"))

    def do_event(self, _: str) -> None:
        """event

        Say at which event this is.
        """
        here, stop = self._player.at, self._player.stop
        self.message(stop.header.rstrip("\n") if here == stop.at else f"event {here}, or after it")

    def do_quit(self, arg: str) -> bool | None:
        """q(uit)

        End.
        """
        return self._go(None)

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> bool | None:
        """EOF

        End.
        """
        self.message("")
        return self._go(None)

    def do_run(self, arg: str) -> bool | None:
        """run

        Not here: `goto` and `back` start the program again.
        """
        self.error("`goto` and `back` start the program again")
        return None

    do_restart = do_run
