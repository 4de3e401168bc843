"""Note what asyncio reads from processes and writes to them: by the descriptors of the pipes, past the files.

The processes themselves are started with Popen (popen.py). A loop that starts them itself is uvloop (uvloops.py).
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead.capture import answering
from playhead.capture.patches import Patches
from playhead.capture.processes.pipes import Pipe
from playhead.capture.processes.popen import call_of

MODULES = ("asyncio.base_subprocess", "asyncio.unix_events")


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the module."""
    if module.__name__ == "asyncio.base_subprocess":
        kind = module.BaseSubprocessTransport
        patches.replace(kind, "_pipe_data_received", _received)
        patches.replace(kind, "_pipe_connection_lost", _lost)
        patches.replace(kind, "_process_exited", _exited)
        patches.replace(kind, "send_signal", _send_signal)
    else:
        patches.replace(module._UnixWritePipeTransport, "write", _write)
        patches.replace(module._UnixSelectorEventLoop, "_make_subprocess_transport", _make_transport)


def _received(original: Any) -> Any:
    @functools.wraps(original)
    def pipe_data_received(self: Any, fd: int, data: bytes) -> None:
        if (call := call_of(self._proc)) is not None:
            flow = call.flows.get("stdout" if fd == 1 else "stderr")
            if flow is not None:
                flow.took(bytes(data))
        original(self, fd, data)

    return pipe_data_received


def _lost(original: Any) -> Any:
    @functools.wraps(original)
    def pipe_connection_lost(self: Any, fd: int, exc: Any) -> None:
        if fd and exc is None and (call := call_of(self._proc)) is not None:
            flow = call.flows.get("stdout" if fd == 1 else "stderr")
            if flow is not None:
                flow.ended(seen=True)
        original(self, fd, exc)

    return pipe_connection_lost


def _make_transport(original: Any) -> Any:
    @functools.wraps(original)
    def make_subprocess_transport(self: Any, *args: Any, **options: Any) -> Any:
        if answering.player is None:
            return original(self, *args, **options)
        from playhead.capture.processes import answered_loops  # here: a program that is recorded does not need it

        return answered_loops.make_transport(self, *args, **options)

    return make_subprocess_transport


def _exited(original: Any) -> Any:
    @functools.wraps(original)
    def process_exited(self: Any, returncode: int) -> None:
        call = call_of(self._proc)
        original(self, returncode)
        if call is not None:
            call.exited(returncode)

    return process_exited


def _send_signal(original: Any) -> Any:
    @functools.wraps(original)
    def send_signal(self: Any, signal: int) -> None:
        process = self._proc
        call = call_of(process)
        sent = None if call is None else len(call.signals)
        original(self, signal)
        # Until Python 3.13 it is Popen that sends it, and tells.
        if call is not None and sent == len(call.signals) and process.returncode is None:
            call.signalled(signal)

    return send_signal


def _write(original: Any) -> Any:
    @functools.wraps(original)
    def write(self: Any, data: Any) -> None:
        pipe, open_for_more = self._pipe, not (self._conn_lost or self._closing)
        if not (open_for_more and isinstance(pipe, Pipe) and pipe.flow.told is not None):
            original(self, data)
        if open_for_more and isinstance(pipe, Pipe) and len(data):
            pipe.flow.took(bytes(data))

    return write
