"""Note what uvloop's own processes say: its loop starts them in C, and tells the objects of Python that it talks to.

What comes from a process goes through one small protocol of uvloop's for each pipe, written in Python. What goes to it
is written with the stream that asyncio makes for it; with a protocol of the agent's own, to a transport in C that
cannot be seen into, which is named as a gap.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from types import ModuleType
from typing import Any

from playhead.capture import answering, children, effects
from playhead.capture.clients.unseen import tell
from playhead.capture.patches import Patches
from playhead.capture.processes.call import Flow, ProcessCall, begin
from playhead.capture.processes.question import by_hand, given_file, inherited, question

MODULES = ("uvloop", "uvloop.loop", "asyncio.subprocess", "asyncio.streams")

_PIPE = -1
_NAMES = ("stdin", "stdout", "stderr")
_CALL, _FLOW = "_playhead_call", "_playhead_flow"  # attributes of objects that asyncio and uvloop make for one process

_starting: dict[int, ProcessCall] = {}  # by the identity of the protocol, from when it is made until the process runs


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the module."""
    if module.__name__ == "uvloop":
        if answering.player is not None:
            return  # in a replay its loop is that of asyncio, which starts processes in the way of asyncio
        patches.cover(module.Loop, "subprocess_exec", _subprocess_exec)
        patches.cover(module.Loop, "subprocess_shell", _subprocess_shell)
    elif module.__name__ == "uvloop.loop":
        patches.replace(module.WriteSubprocessPipeProto, "__init__", _pipe_init)
        patches.replace(module.WriteSubprocessPipeProto, "connection_lost", _pipe_lost)
        patches.replace(module.ReadSubprocessPipeProto, "data_received", _pipe_received)
    elif module.__name__ == "asyncio.subprocess":
        patches.replace(module.Process, "wait", _wait)
        patches.replace(module.Process, "send_signal", _send_signal)
        patches.replace(module.Process, "terminate", functools.partial(_end_with, signal.SIGTERM))
        patches.replace(module.Process, "kill", functools.partial(_end_with, signal.SIGKILL))
    else:
        patches.replace(module.StreamWriter, "write", _write)
        patches.replace(module.StreamWriter, "writelines", _write_lines)


# Starting one.


def _subprocess_exec(original: Any) -> Any:
    @functools.wraps(original)
    async def subprocess_exec(self: Any, protocol_factory: Any, program: Any, *args: Any, **options: Any) -> Any:
        start = functools.partial(original, self)
        return await _started(start, protocol_factory, (program, *args), [program, *args], options)

    return subprocess_exec


def _subprocess_shell(original: Any) -> Any:
    @functools.wraps(original)
    async def subprocess_shell(self: Any, protocol_factory: Any, cmd: Any, **options: Any) -> Any:
        start = functools.partial(original, self)
        return await _started(start, protocol_factory, (cmd,), cmd, {"shell": True, **options})

    return subprocess_shell


async def _started(start: Any, factory: Any, args: tuple[Any, ...], argv: Any, options: dict[str, Any]) -> Any:
    given = {**dict.fromkeys(_NAMES, _PIPE), **options}
    if answering.player is not None:
        from playhead.capture.processes import answered_loops  # here: a program that is recorded does not need it

        return await answered_loops.start_elsewhere(start.args[0], factory, argv, given)
    call = begin(sys._getframe().f_back, functools.partial(_described, argv, given))
    shell = bool(given.get("shell"))
    file = "/bin/sh" if shell else given.get("executable") or argv[0]
    sys.audit(effects.LOOPED, file, ["sh", "-c", argv] if shell else argv, given.get("cwd"), given.get("env"))
    options = _handed_on(options, call)
    if call is None:
        return await start(factory, *args, **options)
    made: list[Any] = []

    def protocol_factory() -> Any:
        made.append(protocol := factory())
        _starting[id(protocol)] = call  # what the loop makes for its pipes follows at once
        return protocol

    try:
        transport, protocol = await start(protocol_factory, *args, **options)
    except BaseException as error:
        call.failed(error)
        raise
    finally:
        if made and _starting.get(id(made[0])) is call:
            del _starting[id(made[0])]
    _watch(call, transport, protocol, given["stdin"] == _PIPE)
    return transport, protocol


def _described(argv: Any, given: dict[str, Any], call: ProcessCall) -> dict[str, Any]:
    call.unseen, call.inherited = by_hand(given), inherited(given)
    return {**question(argv, given), **given_file(call.recording, given)}


def _handed_on(options: dict[str, Any], call: ProcessCall | None) -> dict[str, Any]:
    """Return the options with an environment by which a Python attaches, where one that is started shall."""
    env = options.get("env")
    if not children.passing_on() or not (env is None or isinstance(env, dict)):
        return options
    before = children.starting.at
    children.starting.at = None if call is None else (call.recording.id, call.span)
    try:
        return {**options, "env": dict(children.completed(dict(os.environ) if env is None else env))}
    finally:
        children.starting.at = before


def _watch(call: ProcessCall, transport: Any, protocol: Any, piped: bool) -> None:
    call.started(transport.get_pid())
    streams = sys.modules.get("asyncio.subprocess")
    if streams is not None and isinstance(protocol, streams.SubprocessStreamProtocol):
        setattr(protocol, _CALL, call)
        if (writer := protocol.stdin) is not None and (flow := call.flows.get("stdin")) is not None:
            setattr(writer, _FLOW, flow)
    elif piped:
        tell("process", lambda: f"stdin of {call.program}, written to a transport of uvloop's")
    # Of those that wait it is the first, so it is told before any of them goes on.
    transport._wait().add_done_callback(functools.partial(_exited, call))
    if (code := transport.get_returncode()) is not None:
        call.exited(code)


def _exited(call: ProcessCall, waiter: Any) -> None:
    if not waiter.cancelled():
        call.exited(waiter.result())


# What passes through the pipes.


def _pipe_init(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, proc: Any, fd: int) -> None:
        original(self, proc, fd)
        if (call := _starting.get(id(proc.get_protocol()))) is not None:
            setattr(self, _FLOW, call.flow(_NAMES[fd]))

    return __init__


def _pipe_received(original: Any) -> Any:
    @functools.wraps(original)
    def data_received(self: Any, data: bytes) -> None:
        if (flow := _flow(self)) is not None:
            flow.took(bytes(data))
        original(self, data)

    return data_received


def _pipe_lost(original: Any) -> Any:
    @functools.wraps(original)
    def connection_lost(self: Any, exc: Any) -> None:
        original(self, exc)
        if (flow := _flow(self)) is not None:
            flow.ended(seen=exc is None)

    return connection_lost


def _write(original: Any) -> Any:
    @functools.wraps(original)
    def write(self: Any, data: Any) -> None:
        flow = _flow(self)
        goes = flow is not None and not self.is_closing()
        if not goes or flow is None or flow.told is None:
            original(self, data)
        if flow is not None and goes and len(data):
            flow.took(bytes(data))

    return write


def _write_lines(original: Any) -> Any:
    @functools.wraps(original)
    def writelines(self: Any, data: Any) -> None:
        flow = _flow(self)
        if flow is None:
            original(self, data)
            return
        goes, data = not self.is_closing(), list(data)  # it may be one that can be read but once
        if not goes or flow.told is None:
            original(self, data)
        if goes and (joined := b"".join(data)):
            flow.took(joined)

    return writelines


def _flow(owner: Any) -> Flow | None:
    found: Flow | None = owner.__dict__.get(_FLOW)
    return found


# What the agent asks of it.


def _wait(original: Any) -> Any:
    @functools.wraps(original)
    async def wait(self: Any) -> Any:
        code = await original(self)
        if (call := _call(self)) is not None:
            call.exited(code)  # where it had ended before, nobody was waited for
        return code

    return wait


def _send_signal(original: Any) -> Any:
    @functools.wraps(original)
    def send_signal(self: Any, signal: int) -> None:
        original(self, signal)
        if (call := _call(self)) is not None:
            call.signalled(signal)

    return send_signal


def _end_with(number: int, original: Any) -> Any:
    @functools.wraps(original)
    def end(self: Any) -> None:
        original(self)
        if (call := _call(self)) is not None:
            call.signalled(number)

    return end


def _call(process: Any) -> ProcessCall | None:
    found: ProcessCall | None = getattr(process._protocol, _CALL, None)
    return found
