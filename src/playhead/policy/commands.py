"""Say whether a pattern of a policy means a command, and what a command starts by itself.

A command is brought into one form first: the program that is really meant by its first word, and the rest as typed.
What is forbidden is forbidden inside others too, as far as can be seen: behind `env`, in the text of `sh -c`. What is
allowed is the command itself.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from playhead import _limits
from playhead.policy import paths, texts

_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"})
# Programs that start what their arguments say.
_BEFORE = frozenset({"builtin", "busybox", "chroot", "chrt", "command", "doas", "exec", "flock", "ionice", "nice"})
_BEFORE |= {"nohup", "nsenter", "parallel", "pkexec", "prlimit", "runuser", "script", "setpriv", "setsid", "stdbuf"}
_BEFORE |= {"strace", "su", "sudo", "systemd-run", "taskset", "time", "timeout", "toybox", "unshare", "watch", "xargs"}
_WITH_TEXT = frozenset({"flock", "runuser", "script", "su"})  # which start a shell for what follows -c
_FRESH = frozenset({"doas", "pkexec", "runuser", "su", "sudo", "systemd-run"})  # with other variables than they have
_RUNNERS = frozenset({"conda", "hatch", "mamba", "pdm", "pipenv", "pixi", "poetry", "rye", "uv"})  # by `uv run`
_MULTIPLE = frozenset({"busybox", "coreutils", "toybox"})  # one file that is many programs, each by its name
_GRAMMAR = frozenset({"!", "coproc", "do", "elif", "else", "if", "noglob", "then", "until", "while", "{", "}"})
_BETWEEN = re.compile(r"[;&|()<>\n]+")
_REDIRECTED = re.compile(r"(.*?)(?:&?[<>]+[&|]?)")  # what stands between before it; a file follows
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_EXPORTS = frozenset({"declare", "export", "local", "readonly", "typeset"})
_SHELL_TEXT = re.compile(r"[-+][a-z]*c[a-z]*")
_PYTHON = re.compile(r"(python|pypy)[0-9.]*[wt]?(\.exe)?", re.IGNORECASE)
_ATTACHES = frozenset({"PYTHONPATH", "PLAYHEAD_ATTACH", "PYTHONHOME"})  # variables by which a Python loads Playhead
_SHEBANG_BYTES_MAX = 512


class Command(NamedTuple):
    """One of the commands that a command starts."""

    argv: list[str]
    bare: str = ""  # what has taken from its environment what a Python needs to load Playhead


def command_of(argv: Sequence[str], cwd: str | None = None) -> str:
    """Return a command as it would be typed, with the program that is really meant by its first word."""
    if not argv:
        return ""
    return shlex.join([program_of(argv[0], cwd), *argv[1:]])


def words_of(command: str) -> list[str]:
    """Return the words of a command; all of it as one where its quotes do not match."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def program_of(name: str, cwd: str | None = None, search: str | None = None) -> str:
    """Return the path of the program that a word starts; the word itself where there is none."""
    if "/" in name:
        return os.path.normpath(os.path.join(cwd or os.getcwd(), name))
    return shutil.which(name, path=search or None) or name


def fits_command(pattern: str, command: str, *, root: str = "", search: str = "", forbids: bool = False) -> bool:
    """Say whether a pattern means a command. Its first word is a program, or a path in a folder; `*` is any text.

    `git` is git with any arguments, `git push *` only with those. What is allowed is the program of the search path,
    and not a script of that name elsewhere; what is forbidden is a program of that name wherever it is.
    """
    program, blank, rest = pattern.strip().partition(" ")
    words = words_of(command)
    if not words or not program:
        return False
    started = inside(words) if forbids else [Command(words)]
    if forbids and len(started) >= _limits.POLICY_COMMANDS_MAX:
        return True  # at more nobody has looked
    for inner in started:
        if program != "*" and not _is_program(program, inner.argv[0], root, search, forbids):
            continue
        typed = shlex.join(inner.argv[1:])
        if not blank or any(
            texts.fits_text(rest.strip(), one, any_case=False) for one in (typed, f"{typed} ")[: 1 + forbids]
        ):
            return True
    return False


def _is_program(pattern: str, word: str, root: str, search: str, forbids: bool) -> bool:
    program = program_of(word, None, search)
    if "/" in pattern:
        places = {program, os.path.realpath(program)} if forbids else {os.path.realpath(program)}
        return any(paths.fits_path(pattern, place, root or os.getcwd(), any_case=forbids) for place in places)
    if forbids:
        names = {os.path.basename(program), os.path.basename(os.path.realpath(program))}
        return any(fnmatch.fnmatchcase(name, pattern) for name in names) or _is_same_file(program, pattern, search)
    if "*" in pattern or "?" in pattern:
        folder, name = os.path.split(program)
        folders = (search or os.environ.get("PATH") or os.defpath).split(os.pathsep)
        return fnmatch.fnmatchcase(name, pattern) and os.path.realpath(folder) in map(os.path.realpath, folders)
    found = shutil.which(pattern, path=search or None)
    return program == pattern if found is None else _place(program) == _place(found)


def _place(program: str) -> tuple[str, str]:
    """Return folder and name of a program: /bin may be a link, and a link of another name be another program."""
    folder, name = os.path.split(program)
    return os.path.realpath(folder), name


def _is_same_file(program: str, pattern: str, search: str) -> bool:
    found = shutil.which(pattern, path=search or None)
    if found is None:
        return False
    real = os.path.realpath(found)
    return os.path.realpath(program) == real and os.path.basename(real) not in _MULTIPLE


# What a command starts.


def inside(argv: Sequence[str]) -> list[Command]:
    """Return a command and those that it starts, as far as can be seen: behind `env` and `sudo`, in a shell's text."""
    found: list[Command] = []
    waiting = [Command(list(argv))] if argv else []
    while waiting and len(found) < _limits.POLICY_COMMANDS_MAX:
        one = waiting.pop(0)
        found.append(one)
        waiting += [inner for inner in _started_by(one) if inner.argv]
    return found


def _started_by(command: Command) -> Iterator[Command]:
    argv, bare = command
    name = os.path.basename(argv[0])
    if name in _FRESH:
        bare = bare or name
    if name == "env":
        yield from _behind_env(argv[1:], bare)
    elif name in _SHELLS:
        at = next((at for at, word in enumerate(argv) if at and _SHELL_TEXT.fullmatch(word)), None)
        if at is not None:
            text = next((word for word in argv[at + 1 :] if not word.startswith(("-", "+"))), "")
            yield from _in_text(text, bare)
    elif name in ("eval", "trap") or (len(argv) == 1 and " " in argv[0]):
        yield from _in_text(" ".join(argv[len(argv) > 1 :]), bare)
    elif name in _BEFORE:
        if name in _WITH_TEXT and "-c" in argv:
            yield from _in_text(" ".join(argv[argv.index("-c") + 1 :][:1]), bare)
        yield from _first_program(argv[1:], bare)
    elif name in _RUNNERS and "run" in argv:
        yield from _first_program(argv[argv.index("run") + 1 :], bare)
    elif "record" in argv and (name == "playhead" or argv[1:3] == ["-m", "playhead"]):
        rest = argv[argv.index("record") + 1 :]
        yield from [Command(rest[rest.index("--") + 1 :], bare)] if "--" in rest else _first_program(rest, bare)
    elif name == "find":
        for at, word in enumerate(argv):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                yield Command(argv[at + 1 :], bare)


def _first_program(words: list[str], bare: str) -> Iterator[Command]:
    """Yield what starts at the first word that is a program: before it are options and their values."""
    for at, word in enumerate(words):
        if not word.startswith("-") and os.access(program_of(word), os.X_OK) and not os.path.isdir(word):
            yield Command(words[at:], bare)
            return


def _behind_env(words: list[str], bare: str) -> Iterator[Command]:
    at = 0
    while at < len(words):
        word = words[at]
        assigned = _ASSIGNED.fullmatch(word)
        if word in ("-i", "-", "--ignore-environment"):
            bare = bare or "env"
        elif word in ("-u", "--unset", "-C", "--chdir"):
            at += 1
            bare = bare or _taken(words[at : at + 1])
        elif word in ("-S", "--split-string"):
            yield from _behind_env(words_of(" ".join(words[at + 1 : at + 2])) + words[at + 2 :], bare)
            return
        elif word.startswith(("-S", "--split-string=")):
            text = word.removeprefix("--split-string=").removeprefix("-S")
            yield from _behind_env(words_of(text) + words[at + 1 :], bare)
            return
        elif word.startswith("-"):
            bare = bare or _taken([word.removeprefix("--unset=").removeprefix("-u")])
        elif assigned is not None:
            bare = bare or _replaced([word])
        else:
            yield Command(words[at:], bare)
            return
        at += 1


def _taken(names: Iterable[str]) -> str:
    return "" if _ATTACHES.isdisjoint(names) else "env"


def _replaced(words: Iterable[str]) -> str:
    """Return `env` where a word gives a variable another value: `PYTHONPATH=x`, and not `PYTHONPATH=x:$PYTHONPATH`."""
    assigned = [found for word in words if (found := _ASSIGNED.fullmatch(word)) is not None]
    return _taken(name for name, value in map(re.Match.groups, assigned) if not re.search(rf"\${{?{name}\b", value))


def _in_text(text: str, bare: str) -> Iterator[Command]:
    """Yield the commands in the text of a shell."""
    for outer, quoted in _SUBSTITUTED.findall(text):
        yield from _in_text(outer or quoted, bare)
    for words in _statements(text):
        taken = bare
        while words and (words[0] in _GRAMMAR or _ASSIGNED.fullmatch(words[0])):
            taken, words = taken or _replaced(words[:1]), words[1:]
        if not words:
            bare = taken  # what is assigned alone is so from here on
        if words[:1] == ["function"]:
            words = [word for word in words[2:] if word != "{"]
        if words:
            if words[0] == "unset":
                bare = bare or _taken(words)
            elif words[0] in _EXPORTS:
                bare = bare or _replaced(words)
            yield Command(words, taken)


def _statements(text: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(text.replace("\\\n", "").replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # its quotes do not match: rather too many than too few
        words = re.findall(r"[;&|()<>]+|[^\s;&|()<>'\"]+", text)
    statement: list[str] = []
    is_file = False
    for word in words:
        if not _BETWEEN.fullmatch(word):
            if not is_file:
                statement.append(word)
            is_file = False
            continue
        redirected = _REDIRECTED.fullmatch(word)
        is_file = redirected is not None
        if redirected is not None and not redirected[1]:
            if statement[-1:] and statement[-1].isdecimal():
                statement.pop()  # the number of what is redirected
            continue
        yield statement
        statement = []
    yield statement


# Pythons that do not load Playhead.


def unheld(argv: Sequence[str]) -> tuple[str, str] | None:
    """Return the Python of a command that will not load Playhead, and by which option or program; else None."""
    for command in inside(argv):
        for one in (command, *_interpreters(command)):
            if not _is_python(one.argv[0]):
                continue
            if one.bare:
                return one.argv[0], one.bare
            option = _isolating(one.argv[1:])
            if option is not None:
                return one.argv[0], option
    return None


def is_python(argv: Sequence[str]) -> bool:
    """Say whether a Python is started, as far as can be seen."""
    commands = [one for command in inside(argv) for one in (command, *_interpreters(command))]
    return any(_is_python(one.argv[0]) for one in commands)


def _is_python(word: str) -> bool:
    program = program_of(word)
    return any(_PYTHON.fullmatch(os.path.basename(name)) for name in (program, os.path.realpath(program)))


def _interpreters(command: Command) -> list[Command]:
    """Return what the first line of a script says that runs it."""
    program = program_of(command.argv[0])
    try:
        with open(program, "rb") as file:
            first = file.read(_SHEBANG_BYTES_MAX).partition(b"\n")[0]
    except OSError:
        return []
    words = os.fsdecode(first.removeprefix(b"#!")).split() if first.startswith(b"#!") else []
    return inside([*words, program, *command.argv[1:]])[:2] if words and not command.bare else []


def _isolating(arguments: Sequence[str]) -> str | None:
    """Return the option by which a Python looks at no variables, or runs no `sitecustomize`; None without."""
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            return None
        if argument.startswith("--"):
            if argument == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for place, letter in enumerate(argument[1:], 2):
            if letter in "IES":
                return f"-{letter}"
            if letter in "cmVh?":
                return None
            if letter in "WX":
                if not argument[place:]:
                    next(rest, None)
                break
    return None


@functools.lru_cache(maxsize=1024)
def names_option(pattern: str, option: str) -> bool:
    """Say whether a pattern names an option of a Python, or the program that takes its variables: then it was meant."""
    if not option.startswith("-"):
        return option in map(os.path.basename, pattern.split())
    return any(
        word == option or (re.fullmatch(r"-[A-Za-z]+", word) is not None and option[1:] in word[1:])
        for word in pattern.split()
    )
