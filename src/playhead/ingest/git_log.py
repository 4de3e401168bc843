"""Read commits from what `git log` prints: all of them, with their files and notes, from one process."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from playhead.errors import BadImport
from playhead.event.kinds import GitCommitted

NOTES = "refs/notes/playhead"
TRAILER = "Playhead-Run"

_FIELDS = ("%H", "%P", "%an", "%aI", "%cn", "%cI", "%N", "%B")
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COUNTS = re.compile(r"(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)
# Anywhere in the message, and not only in its last lines: whoever squashes commits moves their trailers up.
_NAMED = re.compile(rf"^[ \t]*{TRAILER}:[ \t]*(run_[0-9a-hjkmnp-tv-z]{{26}})[ \t\r]*$", re.MULTILINE | re.IGNORECASE)


class Change(msgspec.Struct, omit_defaults=True):
    """What a commit did to one file, compared with its first parent."""

    path: str
    status: str  # as git has it: A, M, D, R, C, T
    added: int | None = None  # lines; None of a binary, and where the clone does not have the content
    removed: int | None = None
    before: str | None = None  # its name until then, where it was renamed or copied


class Commit(msgspec.Struct):
    """One commit."""

    sha: str
    parents: list[str]
    author: str
    authored: str | None
    committer: str
    committed: str | None
    message: str
    note: str  # of `refs/notes/playhead`
    changes: list[Change]
    shallow: bool = False

    def cut_off(self) -> None:
        """Take back what git says of the commit at which a shallow clone ends: that it is the first, and added all."""
        self.shallow, self.parents, self.changes = True, [], []

    def lines(self) -> tuple[int | None, int | None]:
        """Return how many lines it added and removed in all; None where that is known of no file."""
        counted = [change for change in self.changes if change.added is not None]
        if self.shallow or (self.changes and not counted):
            return None, None
        return sum(change.added or 0 for change in counted), sum(change.removed or 0 for change in counted)

    @property
    def subject(self) -> str:
        """Return the first line of the message."""
        return self.message.partition("\n")[0]

    @property
    def runs(self) -> dict[str, str]:
        """Return the runs that the commit itself names, each with how: in its message, or in a note."""
        notes = dict.fromkeys(_NAMED.findall(self.note), "note")
        return notes | dict.fromkeys(_NAMED.findall(self.message), "trailer")

    def event(self, link: str) -> GitCommitted:
        """Return the event that says in a run that this commit belongs to it."""
        return GitCommitted(
            commit=self.sha,
            files=[change.path for change in self.changes],
            message=self.message,
            author=self.author,
            authored=self.authored,
            parents=self.parents,
            committer=self.committer,
            committed=self.committed,
            changes=msgspec.to_builtins(self.changes),
            link=link,
            shallow=self.shallow,
        )


def arguments(revisions: str, commits_max: int, *, contents: bool = True) -> list[str]:
    """Return the arguments of git that make it print what `read` reads, the newest commits first.

    Without `contents` it looks into no file: it counts no lines, and a rename is a file less and a file more.
    """
    form = "--format=tformat:" + "%x00".join(_FIELDS)
    looks = ["--numstat", "--find-renames"] if contents else ["--no-renames"]
    flags = [
        "-z", "--raw", *looks, "--diff-merges=first-parent", "--root", "--no-ext-diff",
        "--no-textconv", "--no-color", "--no-relative", "--no-show-signature", "--encoding=UTF-8",
        "--ignore-submodules=untracked", f"--notes={NOTES}", "-O/dev/null",
    ]  # fmt: skip
    return ["log", *flags, form, f"--max-count={commits_max}", "--end-of-options", revisions, "--"]


def read(answer: bytes) -> list[Commit]:
    """Read what git printed; bytes that are not UTF-8 become lone surrogates, which are marked where they are kept."""
    parts = iter(answer.decode("utf-8", "surrogateescape").split("\0"))
    found: list[Commit] = []
    by_path: dict[str, Change] = {}
    try:
        for part in parts:
            entry = part.removeprefix("\n")
            if _COMMIT_ID.fullmatch(entry):
                found.append(_commit(entry, [next(parts) for _ in _FIELDS[1:]]))
                by_path = {}
            elif entry.startswith(":"):
                change = _change(entry, parts)
                by_path[change.path] = change
                found[-1].changes.append(change)
            elif entry:
                _count(entry, parts, by_path)
    except (StopIteration, LookupError, ValueError):
        raise BadImport("git printed something that is no list of commits") from None
    return found


def _commit(sha: str, fields: list[str]) -> Commit:
    parents, author, authored, committer, committed, note, message = fields
    # Of a commit without a time git prints what it was asked for.
    times = [None if time.startswith("%") else time for time in (authored, committed)]
    return Commit(sha, parents.split(), author, times[0], committer, times[1], message.rstrip("\n"), note.strip(), [])


def _change(entry: str, parts: Iterator[str]) -> Change:
    """Read `:100644 100644 1234567 89abcde R100` and the one or two names that follow."""
    status = entry.split(" ")[4]
    before = next(parts) if status[0] in "RC" else None
    return Change(next(parts), status[0], before=before)


def _count(entry: str, parts: Iterator[str], by_path: dict[str, Change]) -> None:
    """Read the lines of one file, `1<tab>2<tab>name`; of one that was renamed both names follow."""
    counted = _COUNTS.fullmatch(entry)
    if counted is None:
        raise ValueError(entry)
    added, removed, path = counted.groups()
    if not path:
        next(parts)
        path = next(parts)
    if added != "-":
        change = by_path[path]
        change.added, change.removed = int(added), int(removed)
