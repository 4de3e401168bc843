"""Answer processes that are started from an event loop of asyncio or uvloop, in a replay.

There the loop reads from pipes and is told of ends by the system. Here what was recorded is handed to the transport of
asyncio, piece by piece, each when it is its turn; without a task, which the program could see among its own.
"""

from __future__ import annotations

import _thread
import asyncio.unix_events
import os
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from playhead.capture import lanes
from playhead.capture.processes.played import Played
from playhead.capture.processes.popen import call_of

_FLOW = "_playhead_flow"  # as in uvloops.py
_NO_TEXT = ("universal_newlines", "text", "encoding", "errors")  # which a loop does not know
_FDS = {"stdout": 1, "stderr": 2}


async def make_transport(loop: Any, protocol: Any, args: Any, shell: bool, *rest: Any, **more: Any) -> Any:
    """Do as `_make_subprocess_transport` does."""
    waiter = loop.create_future()
    kind: Any = asyncio.unix_events  # whose class for this is not told to type checkers
    transport = kind._UnixSubprocessTransport(loop, protocol, args, shell, *rest, waiter=waiter, **more)
    call = call_of(transport._proc)
    try:
        await waiter
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        transport.close()
        raise
    if call is None or call.played is None:
        _watch(loop, transport)  # it runs: a mode of replay has it so
    else:
        writer = getattr(protocol, "stdin", None)
        if (flow := call.flows.get("stdin")) is not None and writer is not None and not _is_pythons(writer):
            setattr(writer, _FLOW, flow)  # what is written to a transport of C is seen above it
        Stepping(loop, _say(transport, call.played)).step()
    return transport


def _is_pythons(writer: Any) -> bool:
    return type(writer.transport).__module__ == "asyncio.unix_events"


def _watch(loop: Any, transport: Any) -> None:
    """Tell a transport when its process has ended."""

    def wait() -> None:
        _, status = os.waitpid(transport.get_pid(), 0)
        loop.call_soon_threadsafe(transport._process_exited, os.waitstatus_to_exitcode(status))

    before, lanes.local.quiet = lanes.local.quiet, True  # it is no thread of the program's
    try:
        _thread.start_new_thread(wait, ())
    finally:
        lanes.local.quiet = before


async def start_elsewhere(loop: Any, factory: Any, argv: Any, given: dict[str, Any]) -> Any:
    """Do as `subprocess_exec` and `subprocess_shell` of uvloop do, whose own processes are started in C."""
    protocol = factory()
    options = {name: value for name, value in given.items() if name not in _NO_TEXT}
    streams = [options.pop(name) for name in ("stdin", "stdout", "stderr")]
    shell = bool(options.pop("shell", False))
    bufsize = options.pop("bufsize", 0)
    transport = await make_transport(loop, protocol, argv, shell, *streams, bufsize, **options)
    return transport, protocol


async def _say(transport: Any, played: Played) -> None:
    """Hand a transport everything that the process said, and its end, in the recorded order."""
    steps: list[tuple[int, int, Callable[[], None]]] = []
    for name, fd in _FDS.items():
        if fd in transport._pipes:
            for at, piece in played.streams[name].steps():
                steps.append((at, fd, _told(transport, fd, piece)))
    if played.exit_at is not None:
        steps.append((played.exit_at, 3, lambda: _exit(transport, played)))
    for at, _, do in sorted(steps, key=lambda step: step[:2]):
        await played.player.wait_async(at)
        do()


def _told(transport: Any, fd: int, piece: bytes | None) -> Callable[[], None]:
    def tell() -> None:
        pipe = transport._pipes.get(fd)
        if pipe is None or pipe.disconnected or pipe.pipe.is_closing():
            return  # the program has closed it
        if piece is None:
            pipe.pipe.close()
        else:
            pipe.data_received(piece)

    return tell


def _exit(transport: Any, played: Played) -> None:
    if transport._returncode is None and transport._proc is not None:
        played.reaped = True
        if played.stdin.end is not None:
            played.stdin.end.close()
        transport._process_exited(played.exited(waits=False))


class Stepping:
    """Run a coroutine on a loop without a task for it."""

    def __init__(self, loop: Any, coroutine: Coroutine[Any, Any, None]) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._context: Context = copy_context()

    def step(self, done: Any = None) -> None:
        """Go on, as far as it can."""
        try:
            waited = self._context.run(self._coroutine.send, None)
        except StopIteration:
            return
        if waited is None:
            self._loop.call_soon(self.step)
        else:
            waited._asyncio_future_blocking = False  # as a task does
            waited.add_done_callback(self.step)
