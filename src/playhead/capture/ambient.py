"""Attach this process to a run, so that all of it is recorded without a line of its code knowing.

Called once, by attach/sitecustomize.py, before the program begins. Which run a process belongs to: the first Python
below `playhead record`, and every other one that no Python started (a shell script may start several), records into
the run of the launcher; each of them in a lane of its own. One that a recorded Python starts is a program of the
agent's: a run of its own, a child of the other, which begins with its first event, since most helpers have nothing to
record. A process that becomes another program (`exec`) stays in its run.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Any

from playhead._ids import is_run_id
from playhead.capture import children, clients, effects, hooks, lanes, reads, scope, telling, variables
from playhead.capture.children import Handed

if TYPE_CHECKING:
    from playhead.settings import Settings

RUN_VARIABLE = "PLAYHEAD_RUN"  # set by `playhead record`: the run that the started program belongs to
AMBIENT_VARIABLE = "PLAYHEAD_AMBIENT"  # the setting; "0" is set by `playhead record` where it shall not be


def attach(folder: str, handed: list[str]) -> None:
    """Record this process from now on until it ends; raises where that cannot be."""
    given = Handed.read(folder, handed)
    named = os.environ.pop(RUN_VARIABLE, "")
    telling.connect(given.ear)
    if given.rules:
        from playhead import settings

        settings.inherit(given.rules)
    run = named if is_run_id(named) else given.run_of_process(os.getpid())
    if run is not None:
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
    from playhead.capture import environment
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
    _speak(process)
    process.scope()  # it is open already
    atexit.register(_leave, recording, report)


def _speak(process: scope.Ambient) -> None:
    """Let the whole process speak in a lane."""
    scope.set_ambient(process)
    hooks.process(process.lane)


def _leave(recording: Any, report: str) -> None:
    """Let go of the run at the end of the interpreter; the launcher finishes it.

    Nothing is imported here: to run any code from text makes Python forget that it ends because of Ctrl-C.
    """
    if recording.closed:
        return
    if recording.redacted:
        _tell(report, "".join(f"redacted\t{rule}\t{count}\n" for rule, count in recording.redacted.items()))
    recording.told_late = True  # what daemon threads do from now on is lost with or without us
    try:
        recording.leave()
    finally:
        lost = recording.ledger.pending_losses
        _tell(report, "".join(f"lost\t{reason}\t{count}\n" for reason, count in lost.items()))


def _tell(report: str, text: str) -> None:
    if not text:
        return
    try:
        with open(report, "a") as file:
            file.write(text)
    except OSError:
        pass  # the launcher is gone, and nobody counts any more


def _wait_for_events(given: Handed) -> None:
    """Be ready to open a run of our own, below the one that this process was started from.

    Until then as little as possible is imported: most programs that a program starts have nothing to record.
    """
    origin: dict[str, Any] = {"run": given.parent, "mode": "child"}
    if given.at:
        origin["at"] = int(given.at)

    def opening() -> Any:
        try:
            recording = _open_child(origin)
        except Refused:
            return None
        except Exception as problem:
            facts = (
                sys.version.split()[0],
                sys.executable,
                " ".join(str(getattr(problem, "message", problem)).split()),
            )
            _tell(given.report, "\t".join(("not attached", *facts)) + "\n")
            return None
        if tap is not None:
            reads.hand_over(tap, recording)
        children.pass_on(given.by(recording.id, 0))
        atexit.register(_finish, recording)
        return recording

    tap = None
    if os.environ.get(AMBIENT_VARIABLE) != "0":  # settings are not read: most programs have nothing to record
        reads.install()
        tap = reads.open_tap()
    _speak(scope.Ambient(opening, lane=scope.Lane(tap=tap), origin=origin))
    lanes.install()
    clients.install()
    effects.install()  # what either sees first opens the run
    variables.tell_all()  # what it writes is recorded in any case


def _open_child(origin: dict[str, Any]) -> Any:
    import dataclasses

    from playhead.capture import environment
    from playhead.capture.naming import program_name
    from playhead.capture.opening import open_recording
    from playhead.capture.request import Envelope
    from playhead.event import kinds
    from playhead.store.files import FileStore

    # The parent's run knows the code that it began with; to ask git again would start processes in the program's name.
    settings = dataclasses.replace(_settings(), git=False)
    recording = open_recording(FileStore(settings.store_root()), settings)
    argv = list(sys.orig_argv)
    name = program_name(argv)
    asked = Envelope(name, {"argv": argv}).as_dict()
    recording.start(kinds.RunStarted(name=name, input=asked, entrypoint=environment.entrypoint(), origin=origin))
    return recording


def _finish(recording: Any) -> None:
    """End a run of our own; what was raised and not caught is its error."""
    if recording.closed:
        return
    error = getattr(sys, "last_value", None)
    recording.told_late = True
    recording.finish("ok" if error is None else "error", error)
