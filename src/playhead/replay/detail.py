"""Say how something was done, beside what was done to what: where a link leads, a mode, times, variables that were set.

It is compared between things that are the same otherwise, and only where both runs know it: what is kept has grown, and
an older recording has less of it.
"""

from __future__ import annotations

import re
from typing import Any

from playhead.event.envelope import Event
from playhead.replay.values import as_text

# Of each effect, what of its detail counts. The others depend on what was there before.
_COUNTS: dict[str, tuple[str, ...]] = {
    "attribute.changed": ("name", "removed"),
    "directory.created": ("mode",),
    "file.created": ("type",),
    "file.renamed": ("to",),
    "file.written": ("mode", "length"),
    "link.created": ("to", "symbolic"),
    "mode.changed": ("mode",),
    "owner.changed": ("owner",),
    "times.changed": ("modified_ns",),  # when a file was read last is nobody's to know
}
_NEW = {("directory.created", "mode")}  # which recordings of before do not have
# Variables that say where Python and programs are, which is the machine's affair.
_OF_THE_MACHINE = frozenset({"PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "VIRTUAL_ENV"})
_INSTALLED = re.compile(r"/(?:site-packages|dist-packages|lib/python)|^/.*/python[\d.]*$")
_REDACTED = "[redacted"
_ANY = object()  # in place of a value that is not to be compared
_SIZE, _DIGEST = "the size of the file that is its stdin", "the digest of the file that is its stdin"

Detail = dict[str, Any]


def detail_of(event: Event) -> Detail:
    """Return how something was done, as far as that counts."""
    if event.kind == "process.started":
        return _given(event.data)
    if event.kind != "effect.observed":
        return {}
    what, detail = str(event.data.get("what")), event.data.get("detail")
    known = detail if isinstance(detail, dict) else {}
    if what == "environment.changed":
        return _variables(known.get("set"))
    names = (name for name in _COUNTS.get(what, ()) if name in known or (what, name) not in _NEW)
    return {name: as_text(known.get(name)) for name in names}


def _given(data: dict[str, Any]) -> Detail:
    """Return what a process was given, beside its command."""
    found = _variables(data.get("env"))
    if isinstance(file := data.get("stdin_file"), dict):
        found[_SIZE] = file.get("size")
        if "digest" in file:
            found[_DIGEST] = file["digest"]
    return found


def _variables(values: Any) -> Detail:
    """Return the values of variables; not those of secrets, nor of the machine, nor which ones were left out."""
    if not isinstance(values, dict):
        return {}
    given = {name: as_text(value) for name, value in values.items()}
    return {f"${name}": value if _counts(name, value) else _ANY for name, value in given.items() if value is not None}


def _counts(name: str, value: Any) -> bool:
    return (
        name not in _OF_THE_MACHINE
        and not name.startswith(("PLAYHEAD_", "LD_"))
        and isinstance(value, str)
        and _REDACTED not in value
        and not _INSTALLED.search(value)
    )


def changed(recorded: Detail, replayed: Detail) -> list[tuple[str, Any, Any]]:
    """Return what differs of what both know: its name, what it was, and what it is; None for a variable not given."""
    found = []
    for name in sorted({*recorded, *replayed}):
        if name.startswith("$") or (name in recorded and name in replayed):
            was, now = recorded.get(name), replayed.get(name)
            if was != now and was is not _ANY and now is not _ANY:
                found.append((name, was, now))
    return found


def left_out(recorded: Detail) -> str:
    """Say what of how something was done is not compared; nothing where all is."""
    if _SIZE in recorded and _DIGEST not in recorded:
        return f"a file that is the stdin of a process: {recorded[_SIZE]} bytes are too many"
    return ""
