"""Find a run by what people call it: its id, the beginning of one, a name, and how many runs before the latest."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path

from playhead import _limits
from playhead.errors import AmbiguousRun, UsageError
from playhead.store import layout
from playhead.store.index_questions import Questions

LAST = "@last"
_LOOKED_AT = 500  # runs, for names that look like one that was not found


def look_up(index: Questions, text: str) -> str | None:
    """Return the id of the run that is meant; None where there is none."""
    if text == LAST:
        return index.latest()
    name, back = _name_and_back(text)
    if text.startswith(f"{LAST}~"):
        if name != LAST or back is None:
            raise UsageError(f"not a run: {text!r}", hint="Write @last, @last~1, @last~2, …")
        return index.latest(back=back)
    if text.startswith("run_"):
        found = index.with_prefix(text, -1)
        if len(found) > 1:
            more = ", …" if found[5:] else ""
            raise AmbiguousRun(f"{text!r} is the beginning of {len(found):,} runs: {', '.join(found[:5])}{more}")
        if found:
            return found[0]
    called_so = index.by_external_id(text) or index.by_trace(text) or index.latest(name=text)
    return called_so if called_so is not None or back is None else index.latest(name=name, back=back)


def similar(index: Questions, text: str) -> str | None:
    """Say what may have been meant by what was not found; None where nothing looks like it."""
    name, back = _name_and_back(text)
    names = {str(run["name"]) for run in index.list_runs(limit=_LOOKED_AT) if run["name"]}
    if not names:
        return None
    if name == LAST:
        few = "There are not so many: " if back else ""
        return (
            f"{few}{LAST} passes over replays, forks, child runs and what was imported. `playhead ls` lists all runs."
        )
    if back is not None and name in names:
        return f"There are not so many: `playhead ls --name {shlex.quote(name)}` lists them."
    steps = "" if back is None else f"~{back}"
    close = difflib.get_close_matches(name, sorted({*names, LAST} - {name}), n=3)
    return f"Did you mean {' or '.join(f'{one}{steps}' for one in close)}?" if close else None


def runs_above(index: Questions) -> str | None:
    """Say where there are runs, where this store has none: a folder above may have a store."""
    root = index.root
    return None if not isinstance(root, Path) or index.list_runs(limit=1) else store_above(root)


def store_above(root: Path) -> str | None:
    """Say which folder above that of a store has one with runs in it, and how to name it."""
    stores = (folder / root.name for folder in root.absolute().parent.parents)
    above = next((store for store in stores if layout.runs_dir(store).is_dir()), None)
    return None if above is None else f"There are runs in {above}: add `--store {shlex.quote(str(above))}`."


def _name_and_back(text: str) -> tuple[str, int | None]:
    """Take `NAME~2` apart: the name, and how many runs before its latest; None where that is not said."""
    name, tilde, number = text.rpartition("~")
    if tilde and name and number.isdecimal() and len(number) <= _limits.BACK_DIGITS_MAX:
        return name, int(number)
    return text, None
