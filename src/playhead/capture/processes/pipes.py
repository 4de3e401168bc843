"""Note what passes through the agent's end of a pipe to a process."""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any

from playhead.capture import callers
from playhead.capture.processes.call import Flow

_BUFFER_BYTES_MAX = 8 * 1024 * 1024  # of what a file system may ask for, from Python 3.14 on


class Pipe(io.FileIO):
    """The raw file below `Popen.stdin`, `stdout` and `stderr`: the same as ever, and it tells."""

    flow: Flow

    def readinto(self, buffer: Any, /) -> int | None:
        count: int | None = _readinto(self, buffer)
        if count:
            view = buffer if type(buffer) is memoryview else memoryview(buffer).cast("B")
            self.flow.took(view[:count].tobytes() if count < len(view) else view.tobytes())
        elif count == 0 and len(buffer):
            self.flow.ended()
        return count

    def read(self, size: int | None = -1, /) -> Any:
        data = _read(self, size)
        if data:
            self.flow.took(data)
        if data is not None and (size is None or size < 0 or (size and not data)):
            self.flow.ended()
        return data

    def readall(self) -> Any:
        data = _readall(self)
        if data:
            self.flow.took(data)
        if data is not None:
            self.flow.ended()
        return data

    # By name: what is still buffered is written at the very end, when modules are gone.
    def write(self, data: Any, /, *, _write: Any = io.FileIO.write) -> Any:
        count = _write(self, data)
        if count:
            self.flow.took(memoryview(data).cast("B")[:count].tobytes())
        return count

    def fileno(self) -> int:
        number = _fileno(self)
        module = sys._getframe(1).f_globals.get("__name__")
        if not isinstance(module, str) or callers.sort_of(module) == callers.AGENT:
            self.flow.handed = True  # it may be read from beside us
        return number

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
