"""Attach this process to a run, so that all of it is recorded without a line of its code knowing.

Called once, by attach/sitecustomize.py, before the program begins. Which run a process belongs to: the first Python
below `playhead record`, and every other one that no Python started (a shell script may start several), records into
the run of the launcher; each of them in a lane of its own. One that a recorded Python starts is a program of the
agent's: a run of its own, a child of the other, which begins with its first event, since most helpers have nothing to
record. A process that becomes another program (`exec`) stays in its run. A process of `multiprocessing` is a part of
its parent: it writes the parent's run, in the lane that it is told (lanes_processes.py).
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead import _launched
from playhead._ids import is_run_id
from playhead.capture import (
    children,
    clients,
    effects,
    environment,
    hashing,
    hooks,
    lanes,
    reads,
    scope,
    telling,
    variables,
)
from playhead.capture.children import Handed
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches

if TYPE_CHECKING:
    from playhead.settings import Settings

_TOLD = "playhead"  # where lanes_processes.py tells, among what multiprocessing tells a child
RUN_VARIABLE = "PLAYHEAD_RUN"  # set by `playhead record`: the run that the started program belongs to
_UNHELD = 120  # the exit code of a Python that cannot be held to a policy
_INTERRUPTED = -2  # as an exit code: Python ends itself with SIGINT
AMBIENT_VARIABLE = "PLAYHEAD_AMBIENT"  # the setting; "0" is set by `playhead record` where it shall not be


def attach(folder: str, handed: list[str]) -> None:
    """Record this process from now on until it ends; raises where that cannot be."""
    given = Handed.read(folder, handed)
    named = os.environ.pop(RUN_VARIABLE, "")
    _launched.variables = {name: os.environ.pop(name) for name in given.hidden.split(",") if name in os.environ}
    telling.connect(given.ear)
    environment.hash_seed = given.seed or None
    if given.rules:
        from playhead import settings

        settings.inherit(given.rules)
    run = named if is_run_id(named) else given.run_of_process(os.getpid())
    if _is_part("spawn") or _is_part("forkserver"):
        _Spawned(given).watch()
        children.pass_on(given.by(given.parent, 0))
    elif run is not None:
        _join(run, given.report)
        children.pass_on(given.by(run, os.getpid()))
    elif given.parent:
        _wait_for_events(given)
        children.pass_on(given.by(given.parent, 0))


def _settings() -> Settings:
    from playhead import settings

    found = settings.load()
    if found.disabled:
        raise Refused("recording is switched off for this program (PLAYHEAD_DISABLED)")
    return found


class Refused(Exception):
    """Say why this process is not recorded, though it could be."""


def _join(run: str, report: str) -> None:
    """Record into the run of the launcher, and say who does."""
    from playhead.capture.record import join_run
    from playhead.event.envelope import kind_of
    from playhead.store.files import FileStore

    settings = _settings()
    if settings.ambient:
        reads.install()
    store = FileStore(settings.store_root())
    if any(kind_of(line) == "run.finished" for line in store.lines(run)):
        raise Refused("its run has ended")  # a process that a shell left behind
    recording = join_run(store, settings, run)
    before = 0

    def count(encoded: bytes, seq: int, root: str) -> bytes:
        nonlocal before
        lines = recording.store.lines(run)
        before = sum(b'"attached":{' in line and kind_of(line) == "note.added" for line in lines)
        return encoded

    facts = environment.facts()
    said = {**facts, "argv": list(sys.orig_argv)}
    text = f"attached to Python {facts['python']['version']}, {facts['python']['executable']}"
    fields = {"text": text, "data": {"attached": said}}
    recording.emit_fields("note.added", fields, parent="0", sealing=count)
    process = scope.Ambient(lambda: recording, lane=scope.Lane(str(before), recording.tap))
    process.leaving = functools.partial(_leave, recording, report)
    _speak(process)
    process.scope()  # it is open already
    at_exit(process.leaving)


def at_exit(function: Callable[..., None], *given: Any) -> None:
    """Have something called after all that the program does at its exit, the last lines of its log too."""
    atexit.register(function, *given)
    atexit.unregister(logging.shutdown)  # since we have loaded it, it would come after
    atexit.register(logging.shutdown)


def _speak(process: scope.Ambient) -> None:
    """Let the whole process speak in a lane."""
    hashing.install()
    scope.set_ambient(process)
    hooks.process(process.lane)


def _leave(recording: Any, report: str) -> None:
    """Let go of the run at the end of the interpreter; the launcher finishes it.

    Nothing is imported here: to run any code from text makes Python forget that it ends because of Ctrl-C.
    """
    if recording.closed:
        return
    recording.told_late = True  # what daemon threads do from now on is lost with or without us
    try:
        recording.leave()
    finally:
        # Both only now: what was read last was written, and redacted, just before.
        counts = ("redacted", recording.redacted), ("lost", recording.ledger.pending_losses)
        _tell(report, "".join(f"{what}\t{name}\t{count}\n" for what, of in counts for name, count in of.items()))


def _tell(report: str, text: str) -> None:
    if not text:
        return
    try:
        with open(report, "a") as file:
            file.write(text)
    except OSError:
        pass  # the launcher is gone, and nobody counts any more


def _or_none(given: Handed, opening: Callable[[], Any]) -> Any:
    """Return what was opened; None where that cannot be, and the launcher is told why.

    Where a policy is enforced the process ends: nobody would ask it.
    """
    try:
        return opening()
    except Exception as problem:
        why = " ".join(str(getattr(problem, "message", problem)).split())
        if given.held or not isinstance(problem, Refused):
            _tell(given.report, "\t".join(("not attached", sys.version.split()[0], sys.executable, why)) + "\n")
        if given.held:
            told = f"playhead: a policy is enforced that this Python cannot be held to, so it does not run: {why}\n"
            os.write(2, told.encode(errors="replace"))
            os._exit(_UNHELD)
        return None


def _wait_for_events(given: Handed) -> None:
    """Be ready to open a run of our own, below the one that this process was started from.

    Until then as little as possible is imported: most programs that a program starts have nothing to record.
    """
    origin: dict[str, Any] = {"run": given.parent, "mode": "child", "pid": os.getpid()}
    if given.at:
        origin["at"] = int(given.at)

    def opening() -> Any:
        recording = _or_none(given, lambda: _open_child(origin))
        if recording is not None:
            if tap is not None:
                reads.hand_over(tap, recording)
            children.pass_on(given.by(recording.id, 0))
            from playhead.capture.spans import outcome

            finishing.append(functools.partial(_finish, recording, outcome))
        return recording

    tap, finishing = None, list[Callable[[], None]]()
    wanted = {**_launched.variables, **os.environ}.get(AMBIENT_VARIABLE)
    if wanted != "0":  # settings are not read: most programs have nothing to record
        reads.install()
        tap = reads.open_tap()
        hooks.watch_exit()
    process = scope.Ambient(opening, lane=scope.Lane(tap=tap), origin=origin)
    _speak(process)
    at_exit(_end, process, finishing)
    lanes.install()
    clients.install()
    effects.install()  # what either sees first opens the run
    variables.tell_all()  # what it writes is recorded in any case


def _end(process: scope.Ambient, finishing: list[Callable[[], None]]) -> None:
    """End the run of a program, now that it ends; of one that has done nothing but read, it is opened for that."""
    tap = process.lane.tap
    # Loading what that needs may make Python forget that it ends because of Ctrl-C.
    if process.recording is None and tap is not None and tap.waiting() and not _is_interrupted():
        process.scope()
    for finish in finishing:
        finish()


def _is_interrupted() -> bool:
    return isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)


class _Spawned:
    """Wait to be told by multiprocessing that this process is a part of the one that started it."""

    def __init__(self, given: Handed) -> None:
        self._given = given
        self._patches = Patches()

    def watch(self) -> None:
        """Begin to wait."""
        AfterImport({"multiprocessing.spawn": self._patch}).install()

    def _patch(self, module: ModuleType) -> None:
        self._patches.replace(module, "prepare", self._prepare)

    def _prepare(self, original: Any) -> Any:
        @functools.wraps(original)
        def prepare(data: dict[str, Any]) -> None:
            told = data.pop(_TOLD, None)
            if told is not None:
                self._belong(told)
            elif not _is_part("forkserver"):
                _wait_for_events(self._given)
            original(data)

        return prepare

    def _belong(self, told: dict[str, str]) -> None:
        """Record into the run of the parent from now on."""
        given = self._given.by(told["run"], os.getpid())
        children.pass_on(given)
        recording = _or_none(given, lambda: _join_told(told))
        if recording is None:
            return
        lane = scope.Lane(told["lane"], recording.tap)
        process = scope.Ambient(lambda: recording, lane=lane, span=told["span"] or None)
        process.leaving = functools.partial(_leave, recording, given.report)
        _speak(process)
        process.scope()  # it is open already
        at_exit(process.leaving)
        variables.tell_all()


def _join_told(told: dict[str, str]) -> Any:
    from playhead.capture import handing

    if _settings().ambient:
        reads.install()
    recording = handing.join(told)
    if recording is None:
        raise Refused("its run has ended")
    return recording


def _is_part(module: str) -> bool:
    """Say whether this interpreter was started by a part of multiprocessing."""
    return any(part.startswith(f"from multiprocessing.{module} import ") for part in sys.orig_argv)


def _open_child(origin: dict[str, Any]) -> Any:
    import dataclasses

    from playhead.capture import enforcing
    from playhead.capture.naming import program_name
    from playhead.capture.opening import open_recording
    from playhead.capture.request import Envelope
    from playhead.event import kinds
    from playhead.store.files import FileStore

    # The parent's run knows the code that it began with; to ask git again would start processes in the program's name.
    settings = dataclasses.replace(_settings(), git=False)
    store = FileStore(settings.store_root())
    rules = enforcing.kept(store, origin["run"])  # whatever folder it runs in, and whatever the file says by now
    recording = open_recording(store, settings, rules=enforcing.OF_FOLDER if rules is None else rules)
    argv = list(sys.orig_argv)
    name = program_name(argv)
    asked = Envelope(name, {"argv": argv}).as_dict()
    started = kinds.RunStarted(name=name, input=asked, entrypoint=environment.entrypoint(), origin=origin)
    started.ambient = reads.watched(recording)
    recording.start(started)
    return recording


def _finish(recording: Any, outcome: Callable[[BaseException | None], str]) -> None:
    """End a run of our own; what was raised and not caught is its error."""
    if recording.closed:
        return
    asked = hooks.exit_asked()
    if asked is None:
        error = getattr(sys, "last_value", None)
        code = None if error is None else _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    else:
        code, text = asked
        error = SystemExit(text or code) if code else None
    if code is not None:
        recording.metadata = {"exit_code": code}
    recording.told_late = True
    recording.finish(outcome(error), error)
