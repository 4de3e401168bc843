"""Attach a program to its replay: everything that it asks is answered from the tape, and recorded as it always is."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from playhead.capture import ambient, reads, scope
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.errors import DeviationError
from playhead.replay import loops, offline, overlay, stuck
from playhead.replay.overlay.before import Before, before
from playhead.replay.plan import Plan
from playhead.replay.player import Player
from playhead.replay.raised import unwrapped
from playhead.replay.tape import Tape
from playhead.replay.where import own_frames
from playhead.store.cassettes.reading import store_at
from playhead.store.reader import RunReader

_patches = Patches()
plan: Plan | None = None  # of this process


def attach(folder: str, handed: list[str]) -> None:
    """Answer this process from the tape from now on until it ends; raises where that cannot be."""
    global plan
    plan = Plan.read(handed[7])
    if plan.course.needs_network and not _is_of_program(Path(plan.scratch)):
        ambient.attach(folder, handed)  # a program that was started in the world, past the tape: it is recorded
        return
    if plan.zone and os.environ.get("TZ") == plan.zone:
        # The system goes by it whenever it looks; the program, which had no such variable, does not see it.
        os.environ._data.pop(os.fsencode("TZ"))  # type: ignore[attr-defined]
    player = _player(plan)
    tape = player.tape
    reads.prepare()
    scratch = Path(plan.scratch)
    player.overlay = overlay.install(  # before anything is watched, which lies above it
        scratch, Path(plan.store), player.folders.both(), may_pass=plan.course.needs_network
    )
    offline.install(scratch)
    if _is_first(scratch):
        player.overlay.expect(before(player.folders.effects(tape.effects())))
        if player.folders.then:  # what it made there is not here, where the folder of then is still around
            player.overlay.expect(Before(before(tape.effects()).absent, [], [], [], {}))
    player.scratch, player.give_up = scratch, stuck.end_program
    player.places.watch()
    player.begin()
    arriving: dict[str, Callable[[ModuleType], None]] = {
        "asyncio.base_events": partial(_patch_loops, player),
        "uvloop": loops.instead_of_uvloop,
    }
    AfterImport(arriving).install()
    sys.excepthook = partial(_tell, sys.excepthook)
    threading.excepthook = partial(_tell_in_thread, threading.excepthook)
    ambient.attach(folder, handed)
    process = scope.ambient()
    if process is not None and process.recording is not None:
        player.recording = process.recording
        leaving = process.leaving
        process.leaving = partial(_leave, player, leaving)
        ambient.at_exit(process.leaving)  # before the other, which it calls


def _player(plan: Plan) -> Player:
    """Return what answers, as the plan has it."""
    course, reader = plan.course, RunReader(store_at(plan.root), plan.run)
    part: dict[str, Any] = {} if course.alone is None else {"first": course.alone.first, "lane": course.alone.lane}
    options: dict[str, Any] = {"on_deviation": plan.on_deviation, "speed": plan.speed, "folder": plan.folder}
    if course.is_exact:
        head = plan.head if course.alone is None else course.cut
        return Player(Tape(reader, head, **part), **options)
    from playhead.replay.onward import OnwardPlayer  # here: most replays never leave the tape

    whole = Tape(reader, plan.head, **part)
    tape = Tape(reader, max(course.cut, part.get("first", 0)), **part) if course.in_world else whole
    other = None if course.other is None else Tape(RunReader(store_at(course.other[0]), course.other[1]))
    options |= {"whole": None if tape is whole else whole, "other": other}
    if course.debug is None:
        return OnwardPlayer(tape, course, **options)
    from playhead.replay.debugger import DebuggingPlayer  # here: it brings the debugger with it

    return DebuggingPlayer(tape, course, stop=course.debug, **options)


def _is_of_program(scratch: Path) -> bool:
    """Say whether this is the program itself, or one of its processes of multiprocessing."""
    return not (scratch / "begun").exists() or any("multiprocessing" in word for word in sys.orig_argv)


def _is_first(scratch: Path) -> bool:
    """Say whether this is the program itself, and not a process of its own that shares the scratch folder."""
    try:
        os.close(os.open(scratch / "begun", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _leave(player: Player, leaving: object) -> None:
    """Say what became of the tape, and let go."""
    player.report()
    if callable(leaving):
        leaving()


def _tell(original: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show a deviation by itself, where task groups have hidden it in others, and shortly: the report says the rest."""
    found = unwrapped(error)
    if isinstance(found, DeviationError):
        trace, found = own_frames(found.__traceback__), DeviationError(str(found).partition("\n")[0])
    original(type(found), found, trace)


def _tell_in_thread(original: Any, told: Any) -> None:
    if told.exc_value is None:
        original(told)
    else:
        _tell(lambda *found: original(threading.ExceptHookArgs((*found, told.thread))), *told[:3])


def _patch_loops(player: Player, module: ModuleType) -> None:
    loops.patch(module, _patches, player.order)
