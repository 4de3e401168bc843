"""Note what trio reads from processes and writes to them: it starts them with Popen, and makes the pipes itself."""

from __future__ import annotations

import functools
import weakref
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.capture.patches import Patches
from playhead.capture.processes.call import Flow
from playhead.capture.processes.popen import call_of

MODULES = ("trio._subprocess", "trio._unix_pipes")

if TYPE_CHECKING:
    from playhead.capture.processes.played import Played

_flows: weakref.WeakKeyDictionary[Any, Flow] = weakref.WeakKeyDictionary()  # by the stream that the agent holds


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the module."""
    if module.__name__ == "trio._subprocess":
        patches.replace(module.Process, "__init__", _init)
        patches.replace(module.Process, "wait", _wait)
    else:
        patches.replace(module.FdStream, "send_all", _send_all)
        patches.replace(module.FdStream, "receive_some", _receive_some)
        patches.replace(module.FdStream, "close", _close)


def _init(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, popen: Any, stdin: Any, stdout: Any, stderr: Any) -> None:
        original(self, popen, stdin, stdout, stderr)
        if (call := call_of(popen)) is not None:
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                if stream is not None:
                    flow = _flows[stream] = call.flow(name)
                    weakref.finalize(stream, flow.ended).atexit = False
            if stdout is not None and stderr is None:
                call.unseen.discard("stderr")  # it goes into the same pipe

    return __init__


def _send_all(original: Any) -> Any:
    @functools.wraps(original)
    async def send_all(self: Any, data: Any) -> None:
        if (flow := _flows.get(self)) is not None:
            if flow.told is not None:
                await _tell(self, flow, bytes(data))
                return
            flow.took(bytes(data))
        await original(self, data)

    return send_all


def _receive_some(original: Any) -> Any:
    @functools.wraps(original)
    async def receive_some(self: Any, max_bytes: int | None = None) -> bytes:
        flow = _flows.get(self)
        if flow is not None and flow.stream is not None and not _is_closed(self):
            await flow.call.wait_for(flow.stream.next_at())
            data: bytes = flow.stream.take(max_bytes)
        else:
            data = await original(self, max_bytes)
        if flow is not None:
            if data:
                flow.took(bytes(data))
            else:
                flow.ended(seen=True)
        return data

    return receive_some


async def _tell(stream: Any, flow: Flow, data: bytes) -> None:
    """Write to a process in a replay: it is looked at and goes nowhere."""
    import trio

    await trio.lowlevel.checkpoint()
    if _is_closed(stream):
        raise trio.ClosedResourceError("file was already closed")
    assert flow.told is not None
    try:
        count = flow.told.taken(len(data))
    except BrokenPipeError as error:
        flow.refused(len(data))
        raise trio.BrokenResourceError from error
    flow.took(data[:count])


def _is_closed(stream: Any) -> bool:
    return bool(stream._fd_holder.closed)


async def _signals_sent(played: Played) -> None:
    """Return when the program has sent the signals that it sent before the process ended: trio has its own time."""
    import trio

    with trio.move_on_after(played.owes()) as patience:
        while played.owes():
            event = trio.Event()
            played.sent = event.set
            await event.wait()
    if patience.cancelled_caught:
        played.sent = None


def _wait(original: Any) -> Any:
    @functools.wraps(original)
    async def wait(self: Any) -> Any:
        call = call_of(self._proc)
        if call is None or call.played is None:
            return await original(self)
        async with self._wait_lock:
            if self.poll() is None:
                await _signals_sent(call.played)
                if call.played.exit_at is not None:
                    await call.wait_for(call.played.exit_at)
                self._proc.wait()
        return self._proc.returncode

    return wait


def _close(original: Any) -> Any:
    @functools.wraps(original)
    def close(self: Any) -> None:
        original(self)
        if (flow := _flows.get(self)) is not None:
            flow.ended()

    return close
