"""Do for a Popen object what its own methods do, where a recorded process answers in a replay.

The methods of `subprocess` do their work with the numbers of pipes and processes. Here there is neither: what was read
in one go is handed out in one go, and a wait whose time was over then is over now.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.capture.processes.played import GaveUp, Played


def communicate(process: Any, played: Played, input: Any, endtime: Any, orig_timeout: Any) -> Any:
    """Do as `Popen._communicate` does."""
    if process.stdin and not process._communication_started:
        _leave_to(process.stdin.flush)
        if not input:
            _leave_to(process.stdin.close)
    outputs = {name: file for name in ("stdout", "stderr") if (file := getattr(process, name))}
    if not process._communication_started:
        process._fileobj2output = {file: [] for file in outputs.values()}
    read: dict[str, list[bytes]] = {name: process._fileobj2output[file] for name, file in outputs.items()}
    process._save_input(input)
    gave_up = None if endtime is None or played.waited(orig_timeout) else played.gives_up(orig_timeout)
    if process._input and process.stdin and not process.stdin.closed:
        _write(process, played, gave_up)
    for name, file in outputs.items():
        if not file.closed and (gave_up is None or gave_up.at is not None):
            read[name] += [piece for _, piece in played.streams[name].pieces(gave_up and gave_up.at)]
    if gave_up is not None:
        if gave_up.at is not None:
            played.player.wait(gave_up.at)
        process._check_timeout(endtime, orig_timeout, read.get("stdout"), read.get("stderr"), True)
    for name, file in outputs.items():
        if not file.closed:
            played.streams[name].finish()
            file.close()
    process.wait(timeout=process._remaining_time(endtime))
    return tuple(_joined(process, outputs.get(name), read.get(name)) for name in ("stdout", "stderr"))


def _leave_to(method: Any) -> None:
    try:
        method()
    except BrokenPipeError:
        pass  # which communicate does not tell


def _write(process: Any, played: Played, gave_up: GaveUp | None) -> None:
    left = memoryview(process._input).nbytes - process._input_offset
    count = played.stdin.room(left, None if gave_up is None else gave_up.at or 0)
    process._input_offset += count
    if gave_up is None:
        if left - count != (played.stdin.unwritten or 0):
            played.stdin.longer(left - count)
        _leave_to(process.stdin.close)


def _joined(process: Any, file: Any, pieces: list[bytes] | None) -> Any:
    if pieces is None:
        return None
    whole = b"".join(pieces)
    return process._translate_newlines(whole, file.encoding, file.errors) if process.text_mode else whole


def wait(process: Any, played: Played, timeout: float | None) -> Any:
    """Do as `Popen._wait` does."""
    if process.returncode is None:
        gave_up = None if timeout is None else played.gives_up(timeout)
        if gave_up is not None:
            if gave_up.at is not None:
                played.player.wait(gave_up.at)
            raise sys.modules["subprocess"].TimeoutExpired(process.args, gave_up.seconds)
        process.returncode = played.exited()
        played.reaped = True
    return process.returncode


def poll(process: Any, played: Played, *, collected: bool) -> Any:
    """Do as `Popen._internal_poll` does; `collected` says that nobody holds the process any more."""
    if process.returncode is None and played.gives_up() is None:
        process.returncode = played.exited(waits=not collected)
        played.reaped = True
    return process.returncode


def send_signal(process: Any, played: Played, number: Any) -> Any:
    """Do as `Popen.send_signal` does, but to nobody."""
    process.poll()
    if process.returncode is None:
        sys.audit("os.kill", process.pid, number)  # what listens is told
        played.signalled(number)
