"""Tell what changed in the working tree and nobody was seen to do: by a program that is no Python, by a person."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from playhead.event.envelope import Event
from playhead.views import text
from playhead.views.audit.acts import Act
from playhead.views.points import words

_NAMED_MAX = 5  # files that are named in one sentence
_WRITTEN, _UNDONE, _GONE = ("files", "altered", "new"), "undone", "gone"  # lists of the note that says what changed


class Seen:
    """Know which files a run was seen to write and to delete; with a folder that got another name all that is in it."""

    def __init__(self) -> None:
        self._written: set[str] = set()
        self._deleted: set[str] = set()
        self._renamed: tuple[set[str], set[str]] = set(), set()  # what is not there any more, and what is

    def take(self, what: str, target: str, to: str) -> None:
        """Take in what was done to a file, a folder or a link; `to` is the new name of one that has another."""
        if what == "file.renamed":
            self._renamed[0].add(target)
            self._renamed[1].add(to)
        else:
            (self._deleted if what.endswith(".deleted") else self._written).add(target)

    def wrote(self, path: str) -> bool:
        """Say whether it was seen to write a file."""
        return path in self._written or not self._renamed[1].isdisjoint(_around(path))

    def deleted(self, path: str) -> bool:
        """Say whether it was seen to delete a file."""
        return path in self._deleted or not self._renamed[0].isdisjoint(_around(path))


def unseen_changes(event: Event, told: dict[str, Any], seen: Collection[Seen]) -> list[Act]:
    """Return what the note of an event says that changed, and that none of these was seen to do."""
    root = words(told.get("root")).rstrip("/")

    def named(*lists: str) -> list[str]:
        found = (told.get(name) for name in lists)
        return [words(name) for one in found if isinstance(one, list) for name in one]

    def written(name: str) -> bool:
        return any(one.wrote(f"{root}/{name}".rstrip("/")) for one in seen)

    def deleted(name: str) -> bool:
        return any(one.deleted(f"{root}/{name}".rstrip("/")) for one in seen)

    unseen = {name for name in named(*_WRITTEN) if not written(name)}
    unseen |= {name for name in named(_UNDONE) if not written(name) and not deleted(name)}
    gone = {name for name in named(_GONE) if not deleted(name)}
    changes = (("write", "low", sorted(unseen)), ("delete", "medium", sorted(gone)))
    return [_act(event, rule, severity, names) for rule, severity, names in changes if names]


def _act(event: Event, rule: str, severity: str, names: list[str]) -> Act:
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    several = f"{text.several(len(names), 'file')} of the working tree"
    detail = f"repo {rule}: {', '.join(names[:_NAMED_MAX])}{more}: {several}, by whom was not seen"
    return Act(rule=rule, what="file.changed", target=names[0], severity=severity, detail=detail, lane=event.lane,
               count=len(names), seqs=[event.seq])  # fmt: skip


def _around(path: str) -> list[str]:
    """Return a path, and the folders that it is in."""
    return [path, *(path[:at] for at, sign in enumerate(path) if sign == "/" and at)]
