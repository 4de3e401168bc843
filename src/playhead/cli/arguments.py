"""Describe the arguments that commands share, and read their forms."""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from playhead.errors import ConfigError, UsageError
from playhead.settings import Settings, is_address, without_credentials
from playhead.settings import load as load_settings
from playhead.store import layout

if TYPE_CHECKING:
    from playhead.store.remote.address import Address

_FOLDER = "`--store DIR` names one. `playhead pack RUN --store URL -o x.cassette` brings a run of a server here."


class Parser(argparse.ArgumentParser):
    """Parse one command; what is wrong is raised, so that it is told like every other error."""

    def __init__(self, *, prog: str, description: str, **more: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **more,
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what comes after `--` is a program of the user's, where the command takes one, and is left alone."""
        given, program = list(args or ()), []
        if self.get_default("program") is not None and "--" in given:
            at = given.index("--")
            given, program = given[:at], given[at + 1 :]
        found = super().parse_args(given, namespace)
        if self.get_default("program") is not None:
            found.program = program
        return found

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` shows how it is used."
        if message.startswith("the following arguments are required:") and "RUN" in message:
            hint = f"Name a run, such as @last; `playhead ls` lists them. {hint}"
        stray = message.removeprefix("unrecognized arguments: ")
        close = self._meant(stray.split()) if stray != message else None
        raise UsageError(message, hint=hint if close is None else f"Did you mean {close}? {hint}")

    def _meant(self, stray: list[str]) -> str | None:
        """Return the option that is most like the first one that was not known."""
        first = next((word.partition("=")[0] for word in stray if word.startswith("-")), None)
        close = [] if first is None else difflib.get_close_matches(first, list(_options(self)), 1)
        return close[0] if close else None


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a parser and of its parts."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)


def add_shared(parser: argparse.ArgumentParser, *, inner: bool = False) -> None:
    """Add what every command takes; `inner` for a part of one, so that what stood before its name is kept."""
    group = parser.add_argument_group("for every command")
    off: Any = {"default": argparse.SUPPRESS} if inner else {}
    group.add_argument("--json", action="store_true", help="answer with JSON on stdout", **off)
    group.add_argument("--store", metavar="DIR|URL", **off,
                       help="the store, or the address of a server; else $PLAYHEAD_DIR, else .playhead")  # fmt: skip
    group.add_argument("--no-color", action="store_true", help="no colours (NO_COLOR does the same)", **off)


def add_run(parser: argparse.ArgumentParser, name: str = "run", *, nargs: str | None = None, help: str = "") -> None:
    """Add an argument that names a run, completed from the index."""
    from playhead.cli.completing import complete_runs

    told = help or "id, beginning of one, name (its latest run; NAME~1 the one before), @last, @last~1, or a path"
    action = parser.add_argument(name, nargs=nargs, metavar="RUN", help=told)
    setattr(action, "completer", complete_runs)  # noqa: B010 - argcomplete's own protocol, unknown to argparse


def add_ignore(parser: argparse.ArgumentParser) -> None:
    """Add the option that names fields that are not compared."""
    parser.add_argument("--ignore", metavar="PATH", action="append", default=[],
                        help="a field that is not compared, such as /output/time, * for any; repeatable")  # fmt: skip


def store_place(store: str | None) -> Path | Address:
    """Return where the store is that was named, or the one in force: an absolute path, or the address of a server."""
    named = load_settings().dir if store is None else store
    if is_address(named):
        from playhead.store.remote.address import read_address

        return read_address(named)
    return store_root(store)


def store_root(store: str | None) -> Path:
    """Return the absolute path of the store that was named, or of the one in force; it must be a folder."""
    if store and is_address(store):
        raise UsageError(f"{without_credentials(store)} is a server, and this needs a folder", hint=_FOLDER)
    return Path(store).expanduser().absolute() if store else load_settings().store_root()


def recording_root(store: str | None) -> Path:
    """Return the folder of the store in which what is made here is kept: of a server's run, the one of this folder."""
    place = store_place(store)
    if isinstance(place, Path):
        return place
    return load_settings().store_folder() or Path(Settings().dir).absolute()


def store_option(store: str | None) -> str:
    """Return what a command needs besides to look in the same store."""
    return "" if store is None else f" --store {shlex.quote(store)}"


def insist_on_a_folder(command: str, store: str | None) -> None:
    """Raise where a command cannot do its work on the runs of a server."""
    try:
        place = store_place(store)
    except ConfigError:
        return  # which the command says itself
    if not isinstance(place, Path):
        told = f"`playhead {command}` needs a folder, and {place} is a server"
        raise UsageError(told, hint=_FOLDER)


def insist_on_a_store(named: str) -> None:
    """Raise where what is named is no store. An empty folder may become one."""
    if is_address(named):
        return  # it says so itself, when it is asked
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise UsageError(f"there is no store at {named}", hint="`--store DIR` names the folder of a store.")
    if not layout.is_store(folder) and next(folder.iterdir(), None) is not None:
        inside = folder / Settings().dir
        there = (
            f"There is one in it: --store {inside}"
            if layout.is_store(inside)
            else "`--store DIR` names the folder of one."
        )
        raise UsageError(f"{named} is not a store", hint=there)
