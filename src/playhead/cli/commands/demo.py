"""Record a small real agent without an API key, look at it, play it back, verify it, tamper with it, and replay it."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from playhead import settings
from playhead._api.reading import Run, load
from playhead._api.stores import open_folder
from playhead.capture.ambient import RUN_VARIABLE
from playhead.cli.commands import show, verify
from playhead.cli.output import Output
from playhead.cli.silence import swallowed
from playhead.errors import PlayheadError, StoreError, UsageError
from playhead.ledger.verify import Verification
from playhead.replay.playback import PlaybackResult
from playhead.store import layout
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views import text

if TYPE_CHECKING:
    from playhead.replay.exact import Replayed


class Flip(NamedTuple):
    """One byte that was changed in a copy of a timeline."""

    line: int
    was: int
    became: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "The agent is real: the openai client, four steps, tools, a patch. The model is a script on this machine,\n"
        "so it needs no key and nothing leaves. The run stays in the store; the tampered copy does not.\n\n"
        "example:\n"
        "  playhead demo && playhead show @last"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if sys.platform == "win32":
        raise UsageError("the demo records a run, which is not done on Windows", hint="Use WSL.")
    if importlib.util.find_spec("openai") is None:
        raise UsageError("the demo uses the openai client, which is not installed", hint="pip install openai")
    if settings.load().disabled:
        raise UsageError("PLAYHEAD_DISABLED is set, so there is nothing to show", hint="Unset it and try again.")
    store = open_folder(args.store)
    _title(out, "1. Record", "an agent fixes a login bug; its model is a script on 127.0.0.1")
    began = time.monotonic()
    recorded = _record(store)
    _say(
        out,
        f"recorded {recorded.id} in {text.duration((time.monotonic() - began) * 1_000_000)}; the model is shut down",
    )

    _title(out, "2. Look", "playhead show @last")
    if not out.json:
        show.run(_ask(run=recorded.id, store=str(store.root), **_PLAIN_SHOW), out)

    _title(out, "3. Play back", "playhead replay @last: the answer again, with no agent, no model and no tool")
    result = recorded.playback(plain=True)
    _say_result(out, result)

    _title(out, "4. Verify", "playhead verify @last")
    checked = recorded.verify(deep=True)
    if not out.json:
        verify.run(_ask(runs=[recorded.id], all=False, deep=True, store=str(store.root)), out)

    _title(out, "5. Tamper", "one byte of a copy, outside the store")
    flip, caught = _tamper(recorded, store, out)
    replayed = _replay(recorded, store, out)
    if out.json:
        out.emit({**_document(recorded, result, checked, flip, caught), "replay": replayed.as_dict()})
    else:
        _say_next(out, args.store)
    sound = verify.exit_code([checked]) == 0 and caught.integrity.verdict == "broken"
    return 0 if sound and replayed.faithful else 1


def _record(store: FileStore) -> Run:
    from playhead.testing.demo_agent import demo_script
    from playhead.testing.provider import ScriptedProvider

    before = set(store.runs())
    # Strict: a demonstration that records nothing should say so.
    surroundings = _environment(PLAYHEAD_DIR=str(store.root), PLAYHEAD_STRICT="1", **{RUN_VARIABLE: None})
    with surroundings, ScriptedProvider(demo_script()) as provider:
        _launch(store, provider.base_url)
    for id in sorted(set(store.runs()) - before, reverse=True):  # another run may have begun meanwhile
        found = Run(store, id)
        with contextlib.suppress(PlayheadError):
            if found.name == "fix-login" and found.readiness().replayable:
                return found
    raise StoreError(f"the demo left no complete run in {store.root}")


def _launch(store: FileStore, base_url: str) -> None:
    """Record the agent as `playhead record` does, so that everything is on the tape that it asks."""
    from playhead.capture.launch import launch, open_run

    recording = open_run(store, settings.load())
    with swallowed():
        launch(recording, [sys.executable, "-m", "playhead.testing.demo_agent", base_url])


def _replay(recorded: Run, store: FileStore, out: Output) -> Replayed:
    """Run the agent's own code again, with nobody there to answer but the tape."""
    from playhead.cli.replay_text import lines
    from playhead.replay.exact import replay_program

    _title(
        out, "6. Replay", "playhead replay @last --mode exact: the agent's own code again, every answer from the tape"
    )
    began = time.monotonic()
    with swallowed():
        found = replay_program(RunReader(store, recorded.id), store, settings.load())
    for line in lines(found.as_dict())[1:]:
        _say(out, line.strip())
    _say(out, f"took {text.duration((time.monotonic() - began) * 1_000_000)}")
    return found


@contextlib.contextmanager
def _environment(**values: str | None) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}

    def put(wanted: dict[str, str | None]) -> None:
        for name, value in wanted.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(values)
    try:
        yield
    finally:
        put(before)


def _tamper(recorded: Run, store: FileStore, out: Output) -> tuple[Flip, Verification]:
    assert recorded.path is not None, "the demo records into a file store"
    with tempfile.TemporaryDirectory(prefix="playhead-demo-") as folder:
        copy = Path(folder) / recorded.id
        shutil.copytree(recorded.path, copy)
        flip = flip_byte(layout.timeline(copy))
        _say(out, f"event {flip.line} of the copy: {chr(flip.was)!r} became {chr(flip.became)!r}")
        if not out.json:
            verify.run(_ask(runs=[str(copy)], all=False, deep=False, store=str(store.root)), out)
        return flip, load(copy, store.root).verify()


def flip_byte(timeline: Path) -> Flip:
    """Flip one bit of a letter or digit in the middle of a timeline, in place."""
    data = bytearray(timeline.read_bytes())
    at = len(data) // 2
    while not chr(data[at]).isalnum() or data[at] > 127:
        at += 1
    was, data[at] = data[at], data[at] ^ 1
    timeline.write_bytes(data)
    return Flip(data.count(b"\n", 0, at), was, data[at])


def _title(out: Output, title: str, told: str) -> None:
    if not out.json:
        out.styled("\n", (title, "bold"), "  ", (told, "dim"))


def _say(out: Output, told: str) -> None:
    if not out.json:
        out.print(f"  {told}")


def _say_result(out: Output, result: PlaybackResult) -> None:
    payload: Any = result.payload
    _say(out, f"status {result.status}, from_replay {result.from_replay}")
    for name, value in payload.items() if isinstance(payload, dict) else [("payload", payload)]:
        _say(out, f"{name}: {text.short(value, 100)}")


def _say_next(out: Output, named: str | None) -> None:
    where = f" --store {named}" if named else ""
    # `make demo` runs it from an environment that is not on the PATH.
    beside = os.path.join(os.path.dirname(sys.executable), "playhead")
    playhead = os.path.relpath(beside) if not shutil.which("playhead") and os.path.exists(beside) else "playhead"
    out.styled("\n", ("What to try next", "bold"))
    for told, command in (
        ("every run, newest first", f"{playhead} ls{where}"),
        ("how things stood at event 17", f"{playhead} show @last --at 17{where}"),
        ("ask across all runs", f'{playhead} query "SELECT name, count(*) FROM calls GROUP BY name"{where}'),
        ("record your own", f"{playhead} record -- python your_agent.py"),
    ):
        out.styled(f"  {told:<30}", (command, "cyan"))


_PLAIN_SHOW = dict.fromkeys(
    ("at", "step", "event", "raw", "reads", "source", "lane", "grep", "limit", "artifact", "output")
)


def _ask(**values: Any) -> argparse.Namespace:
    return argparse.Namespace(**values)


def _document(
    recorded: Run, result: PlaybackResult, checked: Verification, flip: Flip, caught: Verification
) -> dict[str, Any]:
    return {
        "run": recorded.id,
        "path": recorded.path,
        "playback": result.as_dict(),
        "verify": msgspec.to_builtins(checked),
        "tampered": {"line": flip.line, "verify": msgspec.to_builtins(caught)},
    }
