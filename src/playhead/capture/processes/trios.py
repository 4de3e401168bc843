"""Note what trio reads from processes and writes to them: it starts them with Popen, and makes the pipes itself."""

from __future__ import annotations

import functools
import weakref
from types import ModuleType
from typing import Any

from playhead.capture.patches import Patches
from playhead.capture.processes.call import Flow
from playhead.capture.processes.popen import call_of

MODULES = ("trio._subprocess", "trio._unix_pipes")

_flows: weakref.WeakKeyDictionary[Any, Flow] = weakref.WeakKeyDictionary()  # by the stream that the agent holds


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the module."""
    if module.__name__ == "trio._subprocess":
        patches.replace(module.Process, "__init__", _init)
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
            flow.took(bytes(data))
        await original(self, data)

    return send_all


def _receive_some(original: Any) -> Any:
    @functools.wraps(original)
    async def receive_some(self: Any, max_bytes: int | None = None) -> bytes:
        data: bytes = await original(self, max_bytes)
        if (flow := _flows.get(self)) is not None:
            if data:
                flow.took(bytes(data))
            else:
                flow.ended()
        return data

    return receive_some


def _close(original: Any) -> Any:
    @functools.wraps(original)
    def close(self: Any) -> None:
        original(self)
        if (flow := _flows.get(self)) is not None:
            flow.ended()

    return close
