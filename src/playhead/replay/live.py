"""Answer from the tape what is on it, and let the world answer the rest, in its own time: never an exact replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from playhead.capture import answering, timers
from playhead.replay.player import Player
from playhead.replay.tape import Call, Tape

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


class LivePlayer(Player):
    """What answers while a cassette is added to. Only calls are answered; clocks, files and waiting are the world's."""

    asks_world = True

    def __init__(
        self, tape: Tape, *, on_deviation: str = "live", speed: float = 0.0, folder: str | None = None
    ) -> None:
        super().__init__(tape, on_deviation=on_deviation, speed=speed, folder=folder)
        self.order.closed = True  # nobody waits for a turn: how long the world takes is not on record
        self.live = 0  # calls that the world has answered

    def begin(self) -> None:
        """Answer from now on."""
        answering.player = self

    def end(self) -> None:
        """Answer nothing any more."""
        answering.player = None
        answering.hang_up()

    def report(self) -> None:
        """Say nothing: what is recorded now is a recording, and no replay of one."""

    def _deviate(
        self, recording: Recording, kind: str, span: str, lane: str, key: str, *, nearest: bool | None = None
    ) -> None:
        with self._lock:
            self.live += 1

    def _unanswered(self, recording: Recording, call: Call, span: str) -> None:
        with self._lock:
            self.live += 1

    def call_at(self, at_us: int, loop: Any, function: Callable[[], None]) -> None:
        """Have it called at once."""
        loop.call_soon_threadsafe(function)

    def variable(self, of: str, by: str, lane: str, name: str) -> tuple[bool, str | None]:
        """Know of no variable."""
        return False, None

    def beginning(self, lane: str) -> None:
        """Let work begin when it does."""

    def was_done(self, lane: str) -> bool:
        """Know nothing of it."""
        return False

    def ending(self, lane: str) -> None:
        """Let threads end when they do."""

    def expect(self, lane: str, is_over: Callable[[], bool]) -> None:
        """Expect nothing of other processes."""

    def came(self, lane: str, settle: Callable[[], object]) -> bool:
        """Let it be settled at once."""
        return False

    def looped(self, of: str, by: str, lane: str) -> float | None:
        """Know of no clock."""
        return None

    def set_timer(
        self, loop: Any, when: float, callback: Any, args: Any, lane: str, number: int, context: Any = None
    ) -> Any:
        """Set a timer as it was asked for."""
        return timers.set_plainly(loop, when, callback, *args, context=context)

    def waited(self, of: str, by: str, lane: str) -> list[Any] | None:
        """Know of no wait."""
        return None

    def handed(self, of: str, by: str, lane: str) -> bool | None:
        """Know of no queue."""
        return None

    def writing(self, lane: str, number: int) -> None:
        """Let it be written at once."""

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        """Know of no file."""
        return None

    def identity(self, path: str) -> tuple[int, int] | None:
        """Know of no file."""
        return None
