"""Say which command starts a recorded program again, and refuse one that would meet the world by itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playhead.capture.naming import is_python
from playhead.errors import UsageError
from playhead.replay.tape import Tape
from playhead.store.files import FileStore

_FIRST_BYTES = 256


def entry(tape: Tape, argv: Sequence[str] | None) -> tuple[list[str], str | None, str | None]:
    """Return the command, where its first word was found, and the folder to start it in; None for the present one.

    What is recorded in a store here is started where it was; a cassette, or another command, in the present folder: it
    is the code here that is meant.
    """
    assert tape.started is not None, "a tape has a beginning"
    recorded: dict[str, Any] = tape.reader.resolve(tape.started).data.get("entrypoint") or {}
    if argv:
        words, found, folder = list(argv), None, None
    else:
        command, executable = recorded.get("argv"), recorded.get("executable")
        if not isinstance(command, list) or not command:
            raise UsageError(
                f"{tape.run} does not say how it was started",
                hint="Say it at the end of the command: `-- python agent.py`.",
            )
        words = [str(word) for word in command]
        found = executable if isinstance(executable, str) and os.access(executable, os.X_OK) else None
        if found is not None and os.sep not in words[0] and shutil.which(words[0]) != found:
            words[0] = found  # another one is called so here, and Python finds its packages by what it is called
        there = recorded.get("cwd") if type(tape.reader.store) is FileStore else None
        folder = there if isinstance(there, str) and os.path.isdir(there) else None
    interpreter = _interpreter(found or shutil.which(words[0]) or words[0])
    if interpreter and is_python(words[:1]) and not any(is_python([word]) for word in interpreter):
        words, found = [_python_behind(tape, words, interpreter[0], given=bool(argv)), *words[1:]], None
    _refuse_unless_python(words, found)
    _refuse_without_script(words, folder)
    return words, found, folder


def _interpreter(path: str) -> list[str]:
    """Return what the first line of a script says that runs it, as words; none where it is no script."""
    try:
        with open(path, "rb") as file:
            first = file.readline(_FIRST_BYTES)
    except OSError:
        return []
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    return words


def _python_behind(tape: Tape, words: list[str], interpreter: str, *, given: bool) -> str:
    """Return the Python that a script by the name of one became, given the same words: a shim, as pyenv has them.

    The script itself is not started: nothing would keep it from the world. Words that were `given` for the replay are
    others.
    """
    for event in tape.reader.resolved():
        extra = event.data.get("data") if event.kind == "note.added" else None
        facts = extra.get("attached") if isinstance(extra, dict) else None
        if isinstance(facts, dict):
            there = (facts.get("python") or {}).get("executable")
            same = given or facts.get("argv", [])[1:] == words[1:]
            if same and isinstance(there, str) and os.access(there, os.X_OK):
                return there
            break
    raise UsageError(
        f"{words[0]} is a script of {Path(interpreter).name}: nothing would keep it from the network and the disk",
        hint="Name the Python that it starts, at the end of the command: `-- /usr/bin/python3 agent.py`.",
    )


def _refuse_without_script(argv: list[str], folder: str | None) -> None:
    """Say what is missing before anything is started: a program that does not begin would be a thousand differences."""
    script = next((word for word in argv[1:] if not word.startswith("-")), None)
    options = [word for word in argv[1:] if word.startswith("-")]
    if script is None or not script.endswith(".py") or any(set("cm") & set(word[1:]) for word in options):
        return
    if not os.path.exists(os.path.join(folder or os.getcwd(), script)):
        raise UsageError(
            f"there is no {script} in {folder or os.getcwd()}",
            hint="Go to the folder of the program, or name it at the end of the command: `-- python PATH`.",
        )


def _refuse_unless_python(argv: list[str], executable: str | None) -> None:
    """Refuse to start what would meet the world: only Python code can be answered from the tape."""
    if not (is_python(argv) or (executable is not None and is_python([executable]))):
        raise UsageError(
            f"{argv[0]} is not Python: nothing would keep it from the network and the disk",
            hint="Name the Python program inside of it, at the end of the command: `-- python agent.py`.",
        )
    given = _interpreter(executable or shutil.which(argv[0]) or argv[0])[1:]
    for word in [*(one for one in given if one.startswith("-")), *argv[1:]]:
        if not word.startswith("-") or word.startswith("--") or len(word) < 2:
            break
        if set(word[1:]) & set("IES") and word[1] not in "cmWX":
            raise UsageError(
                f"with {word} Python reads no sitecustomize, and so could not be answered from the tape",
                hint="Start it without, by what stands at the end of the command: `-- python agent.py`.",
            )
        if word[1] in "cm":
            break
