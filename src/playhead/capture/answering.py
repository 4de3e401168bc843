"""Ask a replay before the world: `player` answers what was recorded, where one is at work.

The parts of `capture` that stand between the agent and the world ask here. The player itself is in `replay`, which is
above us: it puts itself here when a replay begins.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


LAST_US = 2**62  # the time of what comes when nothing else can happen any more


class Answer(Protocol):
    """The recorded outcome of one call."""

    @property
    def kind(self) -> str:
        """Return the kind of the event that closed the call, such as `model.responded`."""

    @property
    def data(self) -> dict[str, Any]:
        """Return what it says, every value as it was recorded."""

    def whole(self) -> tuple[dict[str, Any], bytes] | None:
        """Return head and body of an answer over HTTP that came whole, where they are at hand; None to look at `data`.

        Then no more is to be said of it.
        """

    @property
    def span(self) -> str | None:
        """Return the span that it was recorded in."""

    @property
    def began_us(self) -> int:
        """Return when the call was recorded as opened, in microseconds since the run began."""

    @property
    def ended_us(self) -> int:
        """Return when it was recorded as closed."""


class Unasked:
    """The answer to a question to a model that has yet to be asked, in place of the program."""

    def ask(self, method: str, url: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """Ask, and wait for the answer; DeviationError where that was refused."""
        raise NotImplementedError


class Said(Protocol):
    """What an MCP server said by itself."""

    @property
    def kind(self) -> str:
        """Return `mcp.notified`, or `mcp.requested` where it asked the agent something."""

    @property
    def data(self) -> dict[str, Any]:
        """Return what it said, every value as it was recorded."""

    @property
    def at_us(self) -> int:
        """Return when, in microseconds since the run began."""


class Player(Protocol):
    """What answers in place of the world."""

    asks_world: bool  # what it has no answer to is for the world to answer
    asks_models: bool  # it has questions to models asked for the program

    def asked(
        self, recording: Recording, kind: str, span: str, lane: str, key: str | None, data: Mapping[str, Any]
    ) -> None:
        """Take in that something was recorded; with a key, a call was asked. What has no span is named by its seq."""

    def answer(self, span: str | None) -> Answer | None:
        """Hand out the answer to a call that was asked, once; None where it is not for the tape to answer.

        DeviationError where the tape has no answer to it. Where questions to models are asked for the program it may be
        one that is `Unasked`, which is no answer yet.
        """

    def is_in_world(self, lane: str | None = None) -> bool:
        """Say whether a lane, or the one that runs here, is past the tape: what it does is done."""

    def denied(self, rule: str) -> Collection[str]:
        """Return what the recorded run was denied by a rule of its policy."""

    def lets_out(self) -> bool:
        """Say whether somebody in this program may use the network now."""

    def ready(self, lane: str, asked: bytes) -> Answer | None:
        """Hand out the answer to a question to a model that is about to be recorded; None to wait until it is.

        Only where the next question of this lane on the tape was recorded with these bytes, and was answered.
        """

    def said(self, span: str | None, server: str | None) -> Sequence[Said]:
        """Hand out, once, what an MCP server said during the call that was recorded in a span; beside any, for None."""

    def cannot_answer(self, text: str) -> NoReturn:
        """Raise a DeviationError that says this, and record it."""

    def wait(self, at_us: int) -> None:
        """Return when it is the turn of something that was recorded at this time; blocks the thread."""

    async def wait_async(self, at_us: int) -> None:
        """Return when it is its turn; lets the event loop go on meanwhile."""

    def call_at(self, at_us: int, loop: Any, function: Callable[[], None]) -> None:
        """Have something called in an event loop when it is its turn; nobody waits for that."""

    def blocked(self, what: str, detail: str, program: str = "") -> None:
        """Count something that was about to be done to the world, and was not; what the recorded program did not do.

        `program` is what a library below the agent was about to start.
        """

    def variable(self, of: str, by: str, lane: str, name: str) -> tuple[bool, Any]:
        """Say whether it is known what a module was told of a variable, and what; None for one that was not set.

        The name `*` asks for a list of all names.
        """

    def beginning(self, lane: str) -> None:
        """Return when it is the turn of a thread to begin with work whose lane this is.

        That is at once, unless the work was recorded as cancelled before anybody had begun with it.
        """

    def was_done(self, lane: str) -> bool:
        """Say whether work whose lane this is was recorded as done: it could not be cancelled before it began."""

    def ending(self, lane: str) -> None:
        """Return when it is the turn of a thread to end whose lane this is."""

    async def ending_async(self, lane: str) -> None:
        """Return when it is the turn of a task to end whose lane this is."""

    def expect(self, lane: str, is_over: Callable[[], bool]) -> None:
        """Let time not pass the recorded end of work in another process before that has ended; `is_over` looks."""

    def came(self, lane: str, settle: Callable[[], object]) -> bool:
        """Take in that it has ended, and settle that when it is its turn; False where nothing is known of it."""

    def looped(self, of: str, by: str, lane: str) -> float | None:
        """Return what the clock of an event loop told; None where that is not known."""

    def set_timer(
        self, loop: Any, when: float, callback: Any, args: Any, lane: str, number: int, context: Any = None
    ) -> Any:
        """Set a timer of the agent's, by its number in its lane: it fires when it did, or never."""

    def waited(self, of: str, by: str, lane: str) -> list[Any] | None:
        """Say how a wait of a thread ended: whether it had what it waited for, and when; None for not known."""

    def looked(self, of: str, by: str, lane: str) -> tuple[bool, int | None] | None:
        """Say whether what a thread looked for had come, and when it saw that; None for not known."""

    def comes(self, of: str, lane: str, come: Callable[[float], Any], wall_us: int, timeout: float | None) -> Any:
        """Wait for what had come then, at this time since the epoch; what `come` gives back, which waits some seconds.

        Nothing, which is noted, where it does not come although nobody moves any more. `timeout` is what the program
        waits for at most, if it says that.
        """

    def handed(self, of: str, by: str, lane: str) -> bool | None:
        """Return when it is the turn of a thread to put or get something; False where that was in vain.

        What is not on the tape comes last.
        """

    def writing(self, lane: str, number: int) -> None:
        """Return when it is the turn of a thread to write to an output, by the number of that in its lane."""

    def turn(self, wall_us: int) -> None:
        """Return when it is the turn of something that was recorded at this time since the epoch; blocks the thread."""

    def differed(self, kind: str, span: str | None, path: str, recorded: Any, asked: Any) -> None:
        """Take in that a call was told or asked something else than was recorded, where a JSON pointer says.

        Raises DeviationError, unless deviations are to be noted only.
        """

    def refused(self, what: str, detail: str) -> NoReturn:
        """Note that something would have touched the world which no tape can answer, and raise DeviationError."""

    def report(self) -> None:
        """Say what became of the tape, once: this process ends."""

    def state(self, of: str, by: str, lane: str) -> dict[str, Any] | None:
        """Return the state in which a generator of random numbers was found; None for not known."""

    def printed(self, stream: str, start: int, end: int) -> bytes:
        """Return what was written to an output of the program, from one byte to another; nothing for not known."""

    def wrote(self, path: str, *, after: int | None) -> None:
        """Take in that the program writes a file itself; `after` so much that is there, where it adds to that."""

    def is_own(self, path: str) -> bool:
        """Say whether a file is as the program wrote it: nothing was answered since that might have changed it."""

    def wrote_other(self, path: str, own: bytes, recorded: bytes) -> bool:
        """Say whether what the program wrote is something else than what it read there then, and note that."""

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        """Say what a file was when the agent opened it: `content` (bytes) or `error` (`ENOENT`); None for not known.

        With an error, whether it is `written` by now by somebody else, for whom it is to stay.

        `sure` says that the program opens it now, whatever was recorded; else nobody is told that it is not known.
        """

    def identity(self, path: str) -> tuple[int, int] | None:
        """Return the number and the device that the program was told last of a file; None for not told."""


player: Player | None = None


def is_in_world() -> bool:
    """Say whether what runs here is past the tape of a replay: what it does to the world is done."""
    return player is not None and player.is_in_world()


pretended: weakref.WeakSet[Any] = weakref.WeakSet()  # connections that lead nowhere, and know how to `hang_up`
unrecorded: Callable[[str, str], None] | None = None  # is told method and URL of requests that belong to no run
left_alone: frozenset[str] = frozenset()  # hosts, or `host:port`, that are neither recorded nor answered
_HERE = ("localhost", "127.0.0.1", "::1")  # one machine by its three names
_ANYWHERE = ("0.0.0.0", "::", "")  # what a server listens at that is reached by any of them


def hang_up() -> None:
    """End the connections that lead nowhere, when a replay ends: whoever kept one makes another."""
    while pretended:
        pretended.pop().hang_up()


def is_left_alone(url: str) -> bool:
    """Say whether a request is nobody's business: a test asks a server that it runs itself."""
    if not left_alone:
        return False
    authority = url.partition("//")[2].partition("/")[0].rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    return leaves_alone(host, port) if colon and not port.endswith("]") else leaves_alone(authority)


def leaves_alone(host: str, port: Any = None) -> bool:
    """Say the same of a host or an address, and where it is known of a port."""
    if not left_alone:
        return False
    host = host.strip("[]").lower()
    names = _HERE if host in _HERE or host in _ANYWHERE else (host,)
    if any({name, f"{name}:{port}", f"[{name}]:{port}"} & left_alone for name in names):
        return True
    if not host.replace(".", "").isdecimal() and ":" not in host:
        return False
    # What connects has looked up the name before.
    called = (one.removesuffix(f":{port}") for one in left_alone)
    return any(host in _addresses(name) for name in called if ":" not in name)


@functools.lru_cache(maxsize=64)
def _addresses(name: str) -> frozenset[str]:
    import socket  # here: a recorded program that does not need it shall not have it

    try:
        return frozenset(str(found[4][0]) for found in socket.getaddrinfo(name, None))
    except OSError:
        return frozenset()  # nobody is called so
