"""Note what passes through the agent's end of a pipe to a process."""

from __future__ import annotations

import io
import sys
import warnings
from typing import TYPE_CHECKING, Any

from playhead.capture import callers
from playhead.capture.processes.call import Flow

if TYPE_CHECKING:
    from playhead.capture.processes.played import Stream

# Whoever asks for a number and does not read from it but through what answers in a replay.
_BY_US = ("asyncio.", "playhead.capture.processes", "subprocess", "uvloop")
_BUFFER_BYTES_MAX = 8 * 1024 * 1024  # of what a file system may ask for, from Python 3.14 on


class Pipe(io.FileIO):
    """The raw file below `Popen.stdin`, `stdout` and `stderr`: the same as ever, and it tells."""

    flow: Flow

    def readinto(self, buffer: Any, /) -> int | None:
        if (stream := self._said()) is not None:
            data = stream.read(len(memoryview(buffer).cast("B")))
            memoryview(buffer).cast("B")[: len(data)] = data
            count: int | None = len(data)
        else:
            count = _readinto(self, buffer)
        if count:
            view = buffer if type(buffer) is memoryview else memoryview(buffer).cast("B")
            self.flow.took(view[:count].tobytes() if count < len(view) else view.tobytes())
        elif count == 0 and len(buffer):
            self.flow.ended(seen=True)
        return count

    def read(self, size: int | None = -1, /) -> Any:
        if (stream := self._said()) is not None:
            data = stream.read_all() if size is None or size < 0 else stream.read(size) if size else b""
        else:
            data = _read(self, size)
        if data:
            self.flow.took(data)
        if data is not None and (size is None or size < 0 or (size and not data)):
            self.flow.ended(seen=True)
        return data

    def readall(self) -> Any:
        data = _readall(self) if (stream := self._said()) is None else stream.read_all()
        if data:
            self.flow.took(data)
        if data is not None:
            self.flow.ended(seen=True)
        return data

    # By name: what is still buffered is written at the very end, when modules are gone.
    def write(self, data: Any, /, *, _write: Any = io.FileIO.write) -> Any:
        told, flow = self.flow.told, self.flow
        try:
            count = _write(self, data) if told is None or self.closed else told.taken(memoryview(data).nbytes)
        except BrokenPipeError:
            flow.refused(memoryview(data).nbytes)
            raise
        if count:
            flow.took(memoryview(data).cast("B")[:count].tobytes())
        return count

    def fileno(self) -> int:
        number = _fileno(self)
        module = sys._getframe(1).f_globals.get("__name__")
        if not isinstance(module, str) or callers.sort_of(module) == callers.AGENT:
            self.flow.handed = True  # it may be read from beside us
        if (stream := self.flow.stream) is not None and not (isinstance(module, str) and module.startswith(_BY_US)):
            stream.spill()
        return number

    def _said(self) -> Stream | None:
        """Return what answers in place of the pipe, in a replay."""
        stream = self.flow.stream
        return None if stream is None or stream.spilled or self.closed or not self.readable() else stream

    def __repr__(self) -> str:
        return _repr(self).replace("<FileIO ", "<_io.FileIO ", 1)  # Python 3.13 shows the name of the class

    def close(self, *, _close: Any = io.FileIO.close) -> None:
        try:
            _close(self)
        finally:
            self.flow.ended()


_readinto, _read, _readall = io.FileIO.readinto, io.FileIO.read, io.FileIO.readall
_fileno, _repr = io.FileIO.fileno, io.FileIO.__repr__
Pipe.__module__, Pipe.__qualname__, Pipe.__name__ = "_io", "FileIO", "FileIO"  # as which it shows itself


def opened(flow: Flow, number: int, mode: str, buffering: int) -> Any:
    """Do as `io.open` does with a descriptor in a binary mode."""
    raw = Pipe.__new__(Pipe)
    raw.flow = flow
    raw.__init__(number, mode)  # type: ignore[misc]  # only now: where it fails, it is closed
    if buffering == 0:
        return raw
    if buffering == 1:
        text = "line buffering (buffering=1) isn't supported in binary mode, the default buffer size will be used"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    size = _default_size(raw) if buffering < 0 or buffering == 1 else buffering
    return io.BufferedWriter(raw, size) if mode == "wb" else io.BufferedReader(raw, size)


def _default_size(raw: Any) -> int:
    size: int = raw._blksize
    return size if sys.version_info < (3, 14) else max(min(size, _BUFFER_BYTES_MAX), io.DEFAULT_BUFFER_SIZE)
