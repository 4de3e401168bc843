"""Run a program with recording on: `playhead record -- CMD`.

The program keeps what it would have without us: its stdin, its open files, its process group, terminals where we have
terminals, its signals and its exit code. Its output passes through unchanged and at once; the record comes second.
An agent inside it adopts the run (capture/record.py), and what the agent answers becomes the answer of the run.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead._ids import is_run_id
from playhead.capture import children, enforcing, environment, guard, orphans, scope
from playhead.capture.ambient import AMBIENT_VARIABLE, RUN_VARIABLE
from playhead.capture.attachment import Attachment, Heard
from playhead.capture.naming import is_python, program_name
from playhead.capture.opening import open_recording, policy_around, withdraw
from playhead.capture.program import OUTPUTS, Again, Program, failure, is_terminal, noticed_signals
from playhead.capture.recording import Recording
from playhead.capture.request import Envelope
from playhead.capture.telling import Ear
from playhead.errors import PlayheadError
from playhead.event import envelope, kinds
from playhead.event.plain import as_marks, describe_error
from playhead.policy.rules import Rules
from playhead.settings import Settings, handed_on
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # what a shell answers

NOT_ATTACHED = "python_not_attached"  # the gap that a Python leaves

_NO_SITE = "it ran no sitecustomize (-I, -E or -S, or a PYTHONPATH set on the way), or could not reach the store"


@dataclass
class Launched:
    """How a program ended, and where its record lies."""

    run: str
    path: Path
    exit_code: int  # what the shell should see: 128 + n for a program killed by signal n
    returncode: int  # what the record says: -n for that
    lost: int
    problem: str | None = None  # why the program could not be started
    not_attached: list[dict[str, Any]] = field(default_factory=list)  # Pythons that could not be recorded from inside
    warnings: list[str] = field(default_factory=list)


def open_run(store: FileStore, settings: Settings, rules: enforcing.Given = enforcing.OF_FOLDER) -> Recording:
    """Open a run for `launch`; PlayheadError where nothing can be recorded here."""
    _fill_closed_descriptors()
    outer = policy_here(settings) if rules == enforcing.OF_FOLDER else None
    return open_recording(store, settings, rules=rules if outer is None else outer)


def policy_here(settings: Settings) -> Rules | None:
    """Return the policy that is enforced in the run that we were started in ourselves."""
    return policy_around(_origin(), settings)


def launch(
    recording: Recording,
    argv: Sequence[str],
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    again: Again | None = None,
) -> Launched:
    """Run a program to its end and record it. Must be called in the main thread of a process that does nothing else."""
    called = name or program_name(argv)
    with noticed_signals() as wake:  # to the very end: whoever tells us to stop still gets a run that says how it ended
        return _recorded(recording, called, list(argv), dict(tags or {}), wake, again)


def _recorded(
    recording: Recording, name: str, argv: list[str], tags: dict[str, str], wake: socket.socket, again: Again | None
) -> Launched:
    folder = environment.working_folder() if again is None or again.folder is None else again.folder
    started = kinds.RunStarted(
        name=name,
        input=Envelope(name, {"argv": argv}).as_dict(),
        entrypoint={"argv": argv, "cwd": folder, "executable": shutil.which(argv[0]), **_terminals(again)},
        origin=_origin() if again is None else again.origin,
        tags=tags,
        ambient=recording.settings.ambient,
    )
    seed = _choose_seed(recording) if again is None or not again.seed else _keep_seed(again.seed)
    try:
        recording.start(started)
    except Exception:
        withdraw(recording)
        raise
    span = recording.emit(kinds.ProcessStarted(argv=argv, cwd=folder), parent=recording.root_span)
    ear = Ear()
    program = Program(recording, span, ear)
    told = _told(recording)
    hidden = ",".join(name for name in told if name not in os.environ)
    plan = "" if again is None else again.plan
    policy = enforcing.policy_of(recording)
    held = policy is not None and policy.mode == "enforce"
    attachment = Attachment(ear.handed, handed_on(recording.settings), seed, hidden, _path(recording), plan, held=held)
    around = dict(os.environ) if again is None else _as_recorded(again.variables)
    try:
        variables = {**around, **told, RUN_VARIABLE: recording.id, **attachment.variables(around)}
        program.start(argv, variables, again)
    except OSError as problem:
        attachment.hear()
        return _not_started(recording, span, argv, problem)
    try:
        code = program.serve(wake)
    finally:
        heard = attachment.hear()
    return _finish(recording, code, span, argv, program.warnings, heard)


def _terminals(again: Again | None) -> dict[str, list[str]]:
    """Say which outputs of the program are terminals, where one is: it may act on that, and buffers otherwise."""
    found = [name for name in OUTPUTS if is_terminal(name, again)]
    return {"terminals": found} if found else {}


def _choose_seed(recording: Recording) -> str:
    """Fix the order of sets for the program, and for those it starts, unless somebody has."""
    if not recording.settings.ambient or children.SEED in os.environ:
        return ""
    environment.hash_seed = str(int.from_bytes(os.urandom(4), "little") or 1)
    return environment.hash_seed


def _keep_seed(seed: str) -> str:
    environment.hash_seed = seed
    return seed


def _as_recorded(variables: Mapping[str, str | None]) -> dict[str, str]:
    """Return our environment as a program would have it whose variables were recorded."""
    around = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    return {name: value for name, value in around.items() if variables.get(name, value) is not None}


def run_plainly(argv: Sequence[str]) -> int:
    """Become the program, with nothing recorded; returns only where it cannot be started, with the exit code for it."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, and what is ignored would stay so
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))
    except OSError as problem:
        os.write(2, f"playhead: {_complaint(argv, problem)}\n".encode(errors="replace"))
        return _start_code(argv, problem)


def _finish(
    recording: Recording, code: int, span: str | None, argv: Sequence[str], warnings: list[str], heard: Heard
) -> Launched:
    error = None if code == 0 else failure(code)
    status: kinds.Status = "ok" if code == 0 else "error"
    for reason, count in heard.lost.items():
        recording.lose(reason, count)
    recording.emit(
        kinds.ProcessExited(status=status, exit_code=code, error=error), span=span, parent=recording.root_span
    )
    attached, answer = _look_back(recording)
    if not attached and not heard.not_attached and is_python(argv):
        heard.not_attached.append({"executable": argv[0], "why": _NO_SITE})
    if attached:
        orphans.name_unwritten(recording, code)
    for missed in heard.not_attached:
        recording.emit(kinds.GapNoted(reason=NOT_ATTACHED, count=0, detail=missed), parent=span)
    recording.output = {"exit_code": code} if answer is None else answer.get("output")
    recording.metadata = {**((answer or {}).get("metadata") or {}), "exit_code": code}
    told = (answer or {}).get("redacted") or {}  # a program that was killed has only told what its agent redacted
    for rule in {*told, *heard.redacted}:
        count = max(told.get(rule, 0), heard.redacted.get(rule, 0))
        recording.redacted[rule] = recording.redacted.get(rule, 0) + count
    recording.finish(status, (answer or {}).get("error") or error if code else None)
    orphans.conclude(recording)
    launched = _launched(recording, code, warnings=warnings)
    launched.not_attached = heard.not_attached
    return launched


def _not_started(recording: Recording, span: str | None, argv: Sequence[str], problem: OSError) -> Launched:
    code = _start_code(argv, problem)
    error = {**describe_error(problem), "message": _complaint(argv, problem)}
    error.pop("frames", None)  # ours, and of no interest
    recording.emit(kinds.ProcessExited(status="error", error=error), span=span, parent=recording.root_span)
    recording.output = recording.metadata = {"exit_code": code}
    recording.finish("error", error)
    return _launched(recording, code, problem=error["message"])


def _launched(recording: Recording, code: int, *, problem: str | None = None, warnings: Sequence[str] = ()) -> Launched:
    return Launched(
        run=recording.id,
        path=_path(recording),
        exit_code=code if code >= 0 else 128 - code,
        returncode=code,
        lost=recording.lost,
        problem=problem,
        warnings=list(warnings),
    )


def _look_back(recording: Recording) -> tuple[bool, dict[str, Any] | None]:
    """Say whether a Python was attached, and what the agent that adopted this run answered.

    The answer is None where no agent adopted it, or where that one did not end.
    """
    reader = RunReader(recording.store, recording.id)
    attached, span = False, None
    try:
        for line in reader.lines():
            if not attached and b'"attached":{' in line:
                attached = envelope.kind_of(line) == "note.added"
            kind = envelope.kind_of(line) if b'"adopts":true' in line else None
            if kind not in ("step.started", "step.finished"):
                continue
            event = envelope.parse(line)
            if kind == "step.started" and span is None and event.data.get("adopts") is True:
                span = event.span
            elif kind == "step.finished" and span is not None and event.span == span:
                return attached, {name: as_marks(value) for name, value in reader.resolve(event).data.items()}
    except (PlayheadError, OSError) as problem:
        guard.absorb(problem, recording, "the answer of the agent")
    return attached, None


def _complaint(argv: Sequence[str], problem: OSError) -> str:
    return f"cannot run {argv[0]}: {problem.strerror or problem}"


def _start_code(argv: Sequence[str], problem: OSError) -> int:
    # A script whose interpreter is missing is there and cannot be executed.
    missing = isinstance(problem, FileNotFoundError) and shutil.which(argv[0]) is None
    return NOT_FOUND if missing else NOT_EXECUTABLE


def _origin() -> dict[str, Any] | None:
    """Say which run this one was started from, where the launcher itself belongs to one."""
    process, named = scope.ambient(), os.environ.get(RUN_VARIABLE, "")
    if process is not None:
        return process.source()
    return {"run": named, "mode": "child"} if is_run_id(named) else None


def _told(recording: Recording) -> dict[str, str]:
    """Return the settings that hold in the program, also for an agent in it that uses Playhead and is not attached."""
    settings = {"PLAYHEAD_DIR": str(_path(recording).parent.parent)}
    if recording.strict:
        settings["PLAYHEAD_STRICT"] = "1"
    if not recording.settings.ambient:
        settings[AMBIENT_VARIABLE] = "0"
    return settings


def _path(recording: Recording) -> Path:
    assert recording.path is not None, "a file store has a path for each run"
    return recording.path


def _fill_closed_descriptors() -> None:
    """Keep a file of the store from becoming stdin, stdout or stderr where we were started without one of them."""
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # gets the lowest free number, which is this one
