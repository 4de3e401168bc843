"""Start a recorded program again, attached to its tape, as it was started then."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from playhead.capture import enforcing, written
from playhead.capture.launch import launch, open_run
from playhead.capture.program import Again
from playhead.event.plain import restore
from playhead.policy.rules import find
from playhead.replay import overlay
from playhead.replay.blocked import Blocked
from playhead.replay.course import Course
from playhead.replay.folders import folders
from playhead.replay.lookup import VARIABLES
from playhead.replay.namespace import enter, isolation
from playhead.replay.places import Places
from playhead.replay.plan import Plan
from playhead.replay.starting import entry
from playhead.replay.tape import Tape
from playhead.replay.values import as_text
from playhead.settings import Settings
from playhead.store.files import FileStore

if TYPE_CHECKING:
    from playhead.replay.models.asker import Asker

# What the system itself needs to start a program here, whatever was recorded.
_APART = ("PLAYHEAD_", "LD_")
_OURS = frozenset({"PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "VIRTUAL_ENV"})


@dataclass(frozen=True)
class Ran:
    """What came of a program that was started again."""

    run: str
    exit_code: int
    isolation: str
    folder: str  # that it was started in
    blocked: list[dict[str, Any]]
    places: Places
    asked: Any = None  # where whoever debugs it wants to go next


def _rules(tape: Tape, course: Course, settings: Settings) -> enforcing.Given:
    """Return the policy of a replay: that of the run itself; of one that leaves its tape what holds here, if any."""
    kept = enforcing.kept(tape.reader.store, tape.reader.id)
    if course.needs_network and find(Path.cwd(), settings.policy) is not None:
        return enforcing.OF_FOLDER
    return kept


def relaunch(
    tape: Tape,
    store: FileStore,
    settings: Settings,
    *,
    argv: Sequence[str] | None = None,
    on_deviation: str = "raise",
    speed: float = 0.0,
    course: Course | None = None,
    asker: Asker | None = None,
    folder: str | None = None,
) -> Ran:
    """Start the recorded command again, or `argv` in its place, answered from the tape; its run goes to the store.

    A `course` says what is not: where the tape ends, and what the world answers from there. An `asker` puts its
    questions to models.
    """
    command, executable, there = entry(tape, argv)
    folder = folder or there
    reader, course = tape.reader, course or Course()
    recording = open_run(store, settings, _rules(tape, course, settings))
    scratch = Path(tempfile.mkdtemp(prefix="playhead-replay-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        if asker is not None:
            from playhead.replay.models.serving import served  # here: most replays ask nobody

            course = msgspec.structs.replace(course, models=stack.enter_context(served(asker, scratch)))
        variables = _variables(tape)
        zone = _zone(tape) if variables.get("TZ") is None else None
        plan = Plan(
            root=str(getattr(reader.store, "root", "")),
            run=reader.id,
            head=tape.head[0],
            scratch=str(scratch),
            store=str(store.root),
            folder=folder or os.getcwd(),
            zone=zone or "",
            on_deviation=on_deviation,
            speed=speed,
            course=course,
        )
        plan.write(scratch / "plan.json")
        here = folders(tape.started and reader.resolve(tape.started), plan.folder)
        kept_by = "hooks" if course.needs_network else isolation()
        again = Again(
            origin={"run": reader.id, "mode": course.mode, "at": course.origin_at(tape.head[0]), **course.told},
            plan=str(scratch / "plan.json"),
            seed=_seed(tape),
            executable=executable,
            folder=folder,
            variables={**variables, **({"TZ": zone} if zone else {})},
            terminals=_terminals(tape),
            isolate=enter if kept_by == "namespace" else None,
            has_stdin=course.in_world,
        )
        if not course.in_world:
            written.look_elsewhere(recording, overlay.finder(scratch, here.both()), here.asked)
        launched = launch(recording, command, name=_name(tape), again=again)
        blocked = [{"what": one.what, "detail": f"{one.target} at {one.at}"} for one in Blocked(scratch).all()]
        places = Places.read(scratch)
        asked = _asked(scratch)
    return Ran(launched.run, launched.exit_code, kept_by, plan.folder, blocked, places, asked)


def _asked(scratch: Path) -> Any:
    try:
        return orjson.loads((scratch / "asked").read_bytes())
    except FileNotFoundError:
        return None


def _name(tape: Tape) -> str | None:
    assert tape.started is not None
    name = tape.started.data.get("name")
    return name if isinstance(name, str) else None


def _seed(tape: Tape) -> str:
    assert tape.started is not None
    facts = tape.reader.resolve(tape.started).data.get("environment") or {}
    return str(facts.get("hash_seed") or "")


def _terminals(tape: Tape) -> frozenset[str]:
    """Return the outputs of the program that were terminals."""
    assert tape.started is not None, "a tape without a beginning is not opened"
    entry = tape.reader.resolve(tape.started).data.get("entrypoint") or {}
    return frozenset(map(str, entry.get("terminals") or ()))


def _variables(tape: Tape) -> dict[str, str | None]:
    """Return the variables as the program found them; those that start a program here stay ours."""
    found: dict[str, str | None] = {}
    for lane in tape.lanes():
        for number in range(tape.packs(lane)):
            for one in tape.reads(lane, number):
                if one.of == VARIABLES and isinstance(one.value, dict):
                    name = next((name for name in one.value if name), "")
                    value = restore(one.value.get(name))
                    plain = value is None or (isinstance(value, str) and not value.startswith("[redacted:"))
                    if (
                        name not in ("*", "")
                        and name not in _OURS
                        and not name.startswith(_APART)
                        and plain
                        and tape.pack_seq(lane, number) < tape.changed.get(name, sys.maxsize)
                    ):
                        found.setdefault(name, value)
    return {**_changed(tape), **found, "PYTHONHASHSEED": None}


def _changed(tape: Tape) -> dict[str, str | None]:
    """Return variables that cannot have been what they are here: the program set them to just that, or removed them."""
    found: dict[str, str | None] = {}
    for effect in tape.effects():
        name, detail = effect["target"], effect.get("detail") or {}
        if effect["what"] != "environment.changed" or name in _OURS or name in found or name.startswith(_APART):
            continue
        here, given = os.environ.get(name), as_text((detail.get("set") or {}).get(name))
        if detail.get("removed") and here is None:
            found[name] = ""
        elif here is not None and (here == given or str(given).startswith("[redacted:")):
            found[name] = None
    return found


def _zone(tape: Tape) -> str | None:
    """Return the time zone of the recorded program: its name, or what is known of it otherwise."""
    assert tape.started is not None
    facts = (tape.reader.resolve(tape.started).data.get("environment") or {}).get("timezone") or {}
    zone, names, offset = facts.get("zone"), facts.get("names"), facts.get("offset_s")
    if isinstance(zone, str):
        return zone
    if not (isinstance(names, list) and len(set(names)) == 1 and isinstance(offset, int) and offset % 3600 == 0):
        return None
    return f"<{names[0]}>{-offset / 3600:g}"
