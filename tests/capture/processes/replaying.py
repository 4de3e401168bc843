"""Record a program with the launcher, and run it again where nothing can be started and a tape answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.capture.launching import clean_environment, launched

from playhead.event.plain import restore
from playhead.store.files import FileStore

_DRIVER = """
import sys
from tests.capture.processes.replaying import run_again
run_again(sys.argv[1], sys.argv[2], sys.argv[3])
"""
_PROGRAM = "1"  # the span of the program itself, which the launcher has started
_TESTS = Path(__file__).parents[3]


class Deviation(BaseException):
    """The program asked or said something else."""


@dataclass
class _Answer:
    kind: str
    data: dict[str, Any]
    began_us: int
    ended_us: int


class Tape:
    """A small player: it answers processes by key and occurrence, and keeps what else it is told."""

    def lets_out(self) -> bool:
        return False

    def is_in_world(self, lane: str | None = None) -> bool:
        return False

    def __init__(self, store: str) -> None:
        from playhead._api.reading import Run

        files = FileStore(Path(store))
        opened: dict[Any, Any] = {}
        self.answers: dict[str, list[_Answer]] = {}
        for event in Run(files, first_of(files)).events():
            if event.kind == "process.started":
                opened[event.span] = event
            elif event.kind == "process.exited" and event.span != _PROGRAM:
                asked = opened[event.span]
                answer = _Answer(event.kind, event.data, asked.elapsed_us, event.elapsed_us)
                self.answers.setdefault(asked.key or "", []).append(answer)
        self.again, self.run = store + "-again", ""
        self.told: dict[str, list[Any]] = {"differed": [], "blocked": [], "refused": []}

    def asked(self, *_: Any) -> None:
        """Take it in."""

    def answer(self, span: str | None) -> _Answer:
        """Find the question in the run that is being recorded."""
        from playhead._api.reading import Run

        run = Run(FileStore(Path(self.again)), self.run)
        key = next(event.key for event in run.events() if event.span == span and event.kind == "process.started")
        left = self.answers.get(key or "")
        if not left:
            raise Deviation("not on the tape")
        return left.pop(0)

    def wait(self, at_us: int) -> None:
        """Return at once."""

    def differed(self, kind: str, span: str | None, path: str, recorded: Any, asked: Any) -> None:
        """Keep it and raise."""
        self.told["differed"].append([kind, path, str(recorded), str(asked)])
        raise Deviation(path)

    def blocked(self, what: str, detail: str, program: str = "") -> None:
        """Keep it."""
        self.told["blocked"].append([what, detail])

    def refused(self, what: str, detail: str) -> Any:
        """Keep it and raise."""
        self.told["refused"].append([what, detail])
        raise Deviation(detail)

    def file(self, *_: Any) -> None:
        """Know of no files."""

    ending = looped = waited = turn = file

    def variable(self, *_: Any) -> tuple[bool, None]:
        """Know of no variables."""
        return False, None


def first_of(files: FileStore) -> str:
    """Return the run of the program itself: Pythons that it started have later ones."""
    return min(files.runs())


def run_again(store: str, script: str, report: str) -> None:
    """Run a program in this process while a tape answers; write down what was told."""
    import resource

    import playhead
    from playhead.capture import answering, hooks
    from playhead.capture.processes import instead

    tape, main = Tape(store), types.ModuleType("__main__")
    main.__file__, sys.modules["__main__"] = script, main
    outcome = "ended"
    with playhead.record("again", store=store + "-again") as recording:
        tape.run = recording.id
        hooks.prepare(_raise)
        instead.install()
        answering.player = tape  # type: ignore[assignment]
        try:
            exec(compile(Path(script).read_text(), script, "exec"), vars(main))
        except Deviation as deviation:
            outcome = f"deviated: {deviation}"
        except SystemExit as exit:
            outcome = f"exit {exit.code}"
        finally:
            answering.player = None
            instead.uninstall()
            hooks.put_back()
    sys.stdout.flush()
    try:
        os.waitpid(-1, os.WNOHANG)
        started = True
    except ChildProcessError:
        started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0
    left = sum(map(len, tape.answers.values()))
    Path(report).write_text(json.dumps({**tape.told, "outcome": outcome, "started": started, "unused": left}))


def _raise(problem: Exception) -> None:
    raise problem


@dataclass
class Again:
    """What came of recording a program and running it again."""

    recorded: bytes
    replayed: bytes
    errors: bytes
    told: dict[str, Any] = field(default_factory=dict)
    store: Path = Path()

    def processes(self) -> tuple[list[Any], list[Any]]:
        """Return the processes of both runs, as pairs of what was asked and what came."""
        return _processes(self.store), _processes(Path(f"{self.store}-again"))


def _processes(store: Path) -> list[Any]:
    from playhead._api.reading import Run

    files = FileStore(store)
    opened: dict[Any, Any] = {}
    out = []
    for event in Run(files, first_of(files)).events():
        if event.kind == "process.started":
            opened[event.span] = event
        elif event.kind == "process.exited" and (store.name.endswith("-again") or event.span != _PROGRAM):
            out.append((opened[event.span].data, {name: restore(value) for name, value in event.data.items()}))
    return out


def again(
    folder: Path,
    code: str,
    *,
    changed: str | None = None,
    env: Mapping[str, str] | None = None,
    replayed: Mapping[str, str] | None = None,
    **options: Any,
) -> Again:
    """Record a program, and replay it on a PATH without any programs, or a changed program in its place."""
    script, store, report = folder / "agent.py", folder / "store", folder / "report.json"
    script.write_text(code)
    status, out, err = launched(store, [sys.executable, str(script)], env=env, **options)
    assert status == 0, err.decode()
    script.write_text(code if changed is None else changed)
    empty = folder / "empty"
    empty.mkdir()
    variables = clean_environment(
        **{
            **(env or {}),
            **(replayed or {}),
            "PATH": str(empty),
            "PYTHONPATH": os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")]),
        }
    )
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(store), str(script), str(report)],
        env=variables, capture_output=True, timeout=60, **options,
    )  # fmt: skip
    assert report.exists(), done.stderr.decode()
    return Again(out, done.stdout, done.stderr, json.loads(report.read_text()), store)
