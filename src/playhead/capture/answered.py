"""Hand back what a tool did when it was recorded, in place of its body."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

from playhead.capture import printing
from playhead.capture.processes import inherited
from playhead.event import kinds
from playhead.event.plain import as_marks
from playhead.event.rebuilt import Loaded, Rebuilder

if TYPE_CHECKING:
    from playhead.capture.answering import Answer, Player
    from playhead.capture.scope import Lane

_CLASSES = Loaded()


class Outcome:
    """What one call of a tool came to."""

    def __init__(self, player: Player, answer: Answer, lane: Lane) -> None:
        self._player, self._answer, self._lane = player, answer, lane
        self._data = answer.data
        self._printed = list(self._data.get("printed") or ())
        self.given = False  # it was handed out
        # What a framework expects in place of what was recorded of it, or how it is to come to it by itself.
        self.made: Callable[[Any], Any] = lambda output: output
        self.through: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None

    @property
    def handled(self) -> bool:
        """Say whether the framework made its output of an error."""
        return bool(self._data.get("handled"))

    def closing(self) -> kinds.Payload:
        """Return what is recorded of it now: the same."""
        data = self._data
        return kinds.ToolReturned(
            status=data["status"],
            output=as_marks(data.get("output")),
            error=as_marks(data.get("error")),
            chunks=data.get("chunks"),
            handled=self.handled,
            waited=bool(data.get("waited")),
            spawned=data.get("spawned"),
            timers=data.get("timers"),
            printed=data.get("printed"),
        )

    # For those who call a function.

    def instead_of(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the function gave back, or raise what it raised, at its turn."""
        self._player.wait(self._answer.began_us)  # threads begin their calls in the order of the recording too
        if self.through is None:
            return self.made(self.result())
        try:
            result = self.through(function, args, kwargs)
        except Exception:  # of the framework's own, before it came to the tool
            self._take_turn()
            raise
        self._take_turn()
        return result

    async def instead_of_async(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do the same for a coroutine."""
        self._player.wait(self._answer.began_us)
        if self.through is None:
            return self.made(await self.result_async())
        try:
            result = await self.through(function, args, kwargs)
        except Exception:
            await self._take_turn_async()
            raise
        await self._take_turn_async()
        return result

    def result(self, *, raising: bool = False) -> Any:
        """Return or raise what is recorded, when it is its turn; an error that a framework handled only if asked to."""
        self._take_turn()
        return self._given(raising)

    async def result_async(self, *, raising: bool = False) -> Any:
        """Do the same in an event loop."""
        await self._take_turn_async()
        return self._given(raising)

    def _take_turn(self) -> None:
        if not self.given:
            while self._printed:
                self._player.wait(self._answer.began_us + self._printed[0][0])
                self._print_next()
            self._player.wait(self._answer.ended_us)
            self.given = True

    async def _take_turn_async(self) -> None:
        if self.given:
            return
        if not (self._data.get("waited") or "chunks" in self._data):
            self._take_turn()  # nobody else went on in this loop meanwhile
            return
        try:
            while self._printed:
                await self._player.wait_async(self._answer.began_us + self._printed[0][0])
                self._print_next()
            await self._player.wait_async(self._answer.ended_us)
        except BaseException:  # cancelled: what it still said then
            while self._printed:
                self._print_next()
            raise
        self.given = True

    def _print_next(self) -> None:
        """Print what the tool printed next."""
        _, _, stream, text = self._printed.pop(0)
        if isinstance(text, str):
            printing.say(stream, text)
        else:
            inherited.say(stream, text, self._player.printed)

    def leave(self) -> None:
        """Let the lane go on as if the tool had run in it, however it was left."""
        self._lane.skip(self._data.get("spawned") or 0, self._data.get("timers") or 0)

    def _given(self, raising: bool) -> Any:
        error = self._data.get("error")
        if error is not None and (raising or not self.handled):
            raise self._error(error)
        return self._value(self._data.get("output"))

    # For those who take one item after the other.

    def generated(self) -> Generator[Any, Any, Any]:
        """Yield what was yielded, and end as it ended."""
        items, returned = self._items()
        self._player.wait(self._answer.began_us)
        for number, item in enumerate(items):
            self._print_before(number)
            yield item
        self._take_turn()
        self._end()
        return returned

    async def generated_async(self) -> AsyncGenerator[Any, Any]:
        """Do the same in an event loop."""
        for number, item in enumerate(self._items()[0]):
            self._print_before(number)
            yield item
        await self._take_turn_async()
        self._end()

    def _print_before(self, number: int) -> None:
        while self._printed and self._printed[0][1] <= number:
            self._print_next()

    def _items(self) -> tuple[list[Any], Any]:
        output = self._data.get("output")
        if isinstance(output, dict) and output.keys() == {"yielded", "returned"}:
            return self._value(output["yielded"]), self._value(output["returned"])
        return self._value(output) or [], None

    def _end(self) -> None:
        error = self._data.get("error")
        if error is None:
            return
        if error.get("type") == "GeneratorExit":
            self._player.cannot_answer(
                f"a generator was left after {self._data.get('chunks')} items when it was recorded,"
                " and is asked for more: there are no others"
            )
        raise self._error(error)

    # Values.

    def _value(self, plain: Any) -> Any:
        rebuilder = Rebuilder(_CLASSES)
        value = rebuilder.value(plain)
        if rebuilder.missing:
            self._player.cannot_answer(
                f"a tool gave back an object of {rebuilder.missing[0]}, and the program has not loaded that class: a"
                " replay does not run the tool, so import its module outside of it"
            )
        return value

    def _error(self, described: dict[str, Any]) -> BaseException:
        return Rebuilder(_CLASSES).error(described)
