"""Note what `subprocess.Popen` does, and so everything that is built on it: run, check_output, os.popen, asyncio, trio.

The methods of the class are patched, so that it does not matter who has imported it before, and by which name.
"""

from __future__ import annotations

import functools
import io
import sys
import threading
import time
import weakref
from types import ModuleType
from typing import Any

from playhead.capture import answering, children, guard
from playhead.capture.patches import Patches
from playhead.capture.processes import answered
from playhead.capture.processes.call import Flow, ProcessCall, begin
from playhead.capture.processes.pipes import opened
from playhead.capture.processes.question import by_hand, given_file, inherited, piped, question

MODULES = ("subprocess",)

_KNOWN = ("_communicate", "_check_timeout", "_wait", "_internal_poll", "send_signal")  # and so relied on

_calls: dict[int, tuple[ProcessCall, weakref.ref[Any]]] = {}  # by the identity of the Popen object
_starting = threading.local()


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the module; raises where it is not as we know it."""
    kind = module.Popen
    missing = [name for name in ("__init__", *_KNOWN) if name not in kind.__dict__]
    if missing or module.io is not io or not hasattr(module, "_fork_exec"):
        raise TypeError(f"subprocess.Popen is another one: {', '.join(missing) or 'it opens its pipes elsewhere'}")
    patches.replace(module, "io", _Io)
    patches.replace(kind, "__init__", _init)
    patches.replace(kind, "_communicate", _communicate)
    patches.replace(kind, "_check_timeout", _check_timeout)
    patches.replace(kind, "_wait", _wait)
    patches.replace(kind, "_internal_poll", _internal_poll)
    patches.replace(kind, "send_signal", _send_signal)


def call_of(process: Any) -> ProcessCall | None:
    """Return the call of a Popen object that is recorded."""
    found = _calls.get(id(process))
    return None if found is None else found[0]


class _Io:
    """What subprocess has for `io`: opens the pipes of a process that is recorded so that they tell."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def open(self, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
        """Open a file as `io.open` does."""
        call, names = getattr(_starting, "now", None) or (None, [])
        if call is None or args or options or type(file) is not int or not names:
            return self._original.open(file, mode, buffering, *args, **options)
        return opened(call.flow(names.pop(0)), file, mode, buffering)


def _init(original: Any) -> Any:
    names = original.__code__.co_varnames[1 : original.__code__.co_argcount]

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        given = {**dict(zip(names, args, strict=False)), **options}
        argv = given.get("args")
        once = hasattr(argv, "__next__")
        if once:  # it can be read but once
            given["args"] = list(argv)  # type: ignore[arg-type]
            args, options = (), given
        call = begin(sys._getframe().f_back, functools.partial(_described, given)) if "args" in given else None
        if call is None and answering.player is None:
            original(self, *args, **options)
        elif call is None:
            _start_unrecorded(functools.partial(original, self, *args, **options), sys._getframe().f_back, argv)
        else:
            _start(call, original, self, args, options, piped(given))
        if once:
            self.args = argv
        if call is not None:
            _started(self, call)

    return __init__


def _start_unrecorded(start: Any, frame: Any, argv: Any) -> None:
    """Start what is not recorded, in a replay: the recorder's own, and nothing else."""
    from playhead.capture.processes import instead  # here: a program that is recorded does not need it

    instead.unrecorded(frame, argv)
    with instead.starting(None):
        start()


def _described(given: dict[str, Any], call: ProcessCall) -> dict[str, Any]:
    call.unseen, call.inherited = by_hand(given), inherited(given)
    return {**question(given["args"], given), **given_file(call.recording, given)}


def _start(call: ProcessCall, original: Any, process: Any, args: Any, options: Any, pipes: list[str]) -> None:
    before = getattr(_starting, "now", None), children.starting.at
    _starting.now, children.starting.at = (call, pipes), (call.recording.id, call.span)
    try:
        if answering.player is None:
            original(process, *args, **options)
        else:
            from playhead.capture.processes import instead  # here: a program that is recorded does not need it

            with instead.starting(call.played):
                original(process, *args, **options)
    except BaseException as error:
        call.failed(error)
        raise
    finally:
        _starting.now, children.starting.at = before


def _started(process: Any, call: ProcessCall) -> None:
    key = id(process)

    def gone(_: Any) -> None:
        _calls.pop(key, None)
        call.left()

    _calls[key] = call, weakref.ref(process, gone)
    call.started(process.pid)


def _communicate(original: Any) -> Any:
    @functools.wraps(original)
    def communicate(self: Any, input: Any, endtime: Any, orig_timeout: Any) -> Any:
        call = call_of(self)
        if call is None or call.talking:
            return original(self, input, endtime, orig_timeout)
        talk = _Talk(call, self)
        _talks[id(self)] = talk
        try:
            if call.played is not None:
                return answered.communicate(self, call.played, input, endtime, orig_timeout)
            return original(self, input, endtime, orig_timeout)
        except BaseException as error:
            if type(error).__name__ == "TimeoutExpired":
                talk.timed_out(orig_timeout)
            raise
        finally:
            del _talks[id(self)]
            talk.end()

    return communicate


class _Talk:
    """What one `communicate` reads and writes, past the pipes: by their descriptors, into lists of its own."""

    def __init__(self, call: ProcessCall, process: Any) -> None:
        self._call = call
        self._process = process
        self._polls = call.polls
        self._begun = time.monotonic_ns()
        outputs: dict[Any, list[bytes]] = getattr(process, "_fileobj2output", {})
        self._before = {name: len(outputs.get(getattr(process, name), ())) for name in ("stdout", "stderr")}
        self._written = getattr(process, "_input_offset", 0)
        self.looks: list[tuple[int, int, int]] = []  # when it woke up, and how many pieces it had read by then
        self.over = False
        call.talking = True

    def timed_out(self, seconds: float) -> None:
        """Take in that it was left because the time was over."""
        self.over = True
        if self._polls == self._call.polls:  # else it was `wait`, inside of it, that said so
            self._call.asked(seconds)

    def end(self) -> None:
        """Tell what was read and written."""
        call, self._call.talking = self._call, False
        try:
            self._tell(call)
        except Exception as problem:
            guard.absorb(problem, call.recording, "the output of a process", inside=True)
        call.settle()
        if (flow := call.flows.get("stdin")) is not None and flow.told is not None and not flow.open:
            flow.told.closed()

    def _tell(self, call: ProcessCall) -> None:
        process = self._process
        given = isinstance(process._input, (bytes, bytearray, memoryview))  # else it was a mistake, and raised
        if (flow := call.flows.get("stdin")) is not None and given and process._input:
            written = memoryview(process._input).cast("B")[self._written : process._input_offset]
            if written:
                whole = type(process._input) is bytes and len(written) == len(process._input)
                flow.took(process._input if whole else written.tobytes(), self._begun)
            if not self.over and (left := memoryview(process._input).nbytes - process._input_offset):
                flow.refused(left)
        for place, name in enumerate(("stdout", "stderr"), 1):
            if (flow := call.flows.get(name)) is not None:
                file = getattr(process, name)
                self._tell_of(flow, process._fileobj2output[file], self._before[name], place)
                if file.closed:  # which is done here when its end was read
                    flow.ended(seen=True)

    def _tell_of(self, flow: Flow, pieces: list[bytes], told: int, place: int) -> None:
        """Tell of the pieces of one stream; what was there at a look had been read right after the look before."""
        at = self._begun
        for look in self.looks:
            for piece in pieces[told : look[place]]:
                if piece:
                    flow.took(piece, at)
            told, at = max(told, look[place]), look[0]
        for piece in pieces[told:]:
            if piece:
                flow.took(piece, at)


_talks: dict[int, _Talk] = {}


def _check_timeout(original: Any) -> Any:
    @functools.wraps(original)
    def check_timeout(
        self: Any, endtime: Any, orig_timeout: Any, stdout: Any, stderr: Any, *rest: Any, **more: Any
    ) -> Any:
        if (talk := _talks.get(id(self))) is not None:
            talk.looks.append((time.monotonic_ns(), len(stdout or ()), len(stderr or ())))
        return original(self, endtime, orig_timeout, stdout, stderr, *rest, **more)

    return check_timeout


def _wait(original: Any) -> Any:
    @functools.wraps(original)
    def wait(self: Any, timeout: Any) -> Any:
        if (call := call_of(self)) is None:
            return original(self, timeout)
        try:
            played = call.played
            code = original(self, timeout) if played is None else answered.wait(self, played, timeout)
        except Exception:
            call.asked(timeout)  # the time was over
            raise
        call.exited(code)
        return code

    return wait


def _internal_poll(original: Any) -> Any:
    calls, poll = _calls, answered.poll  # called by `__del__` too, when the names of modules may be gone

    @functools.wraps(original)
    def internal_poll(self: Any, *args: Any, **options: Any) -> Any:
        found = calls.get(id(self))
        if found is not None and (played := found[0].played) is not None:
            code = poll(self, played, collected=bool(args or options))
        else:
            code = original(self, *args, **options)
        if found is not None:
            if code is None:
                found[0].asked()
            else:
                found[0].exited(code)
        return code

    return internal_poll


def _send_signal(original: Any) -> Any:
    @functools.wraps(original)
    def send_signal(self: Any, sig: Any) -> Any:
        call = call_of(self)
        if call is not None and call.played is not None:
            done: Any = answered.send_signal(self, call.played, sig)
        else:
            done = original(self, sig)
        if call is not None and self.returncode is None:
            call.signalled(sig)
        return done

    return send_signal
