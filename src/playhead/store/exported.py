"""Read timelines from a file that `playhead export` wrote: the lines of one run, or of several, one after the other."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playhead.errors import MissingContent, RunNotFound, UsageError
from playhead.event import envelope
from playhead.store.files import OneRun, read_lines

# The first two lines of what `export --format json` writes.
_DOCUMENT = re.compile(rb'\{"format":\d+,"runs":\[\n\{"id":"[^"\\]*","events":\[\n')


class Part(NamedTuple):
    """Where one run stands in a file."""

    run: str
    start: int  # its first byte
    end: int
    line: int  # the lines before it


class ExportedRun(OneRun):
    """Read one run of an exported file. Blobs are looked for beside the file; artifacts do not come with a timeline."""

    def __init__(self, path: Path, part: Part, blobs_from: Path | None = None) -> None:
        super().__init__(path.parent, part.run, blobs_from=blobs_from)
        self.path = path
        self.part = part

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        at = self.part.start + start
        for line in read_lines(self.path, at):
            if at >= self.part.end:
                return
            at += len(line)
            yield line

    def is_held(self, run: str) -> bool:
        """Say no: it is a copy."""
        return False

    def file(self, run: str, name: str) -> bytes:
        try:
            return super().file(run, name)
        except MissingContent:
            raise MissingContent(
                f"{name} does not come with the exported timeline {self.path}",
                hint="The store that it was exported from has it.",
            ) from None


def parts(path: Path) -> list[Part]:
    """Say which runs a file holds.

    Several, only where each begins with its event 0 and none comes again after another: of a file in which lines of
    another run stand between, all lines are taken for those of the first run, and `verify` says what is wrong.
    UsageError where it is a document that `export` wrote for other programs.
    """
    if _DOCUMENT.fullmatch(b"".join(itertools.islice(read_lines(path), 2))):
        raise UsageError(
            f"{path} was exported as JSON, every value as it was: without the sealed lines it cannot be verified",
            hint="`playhead export RUN -o run.jsonl` writes the exact lines, which can.",
        )
    found: list[Part] = []
    seen: set[str] = set()
    begins = None  # the bytes that every line of the run at hand begins with
    at = number = 0
    whole = True
    for line in read_lines(path):
        # A line that cannot be read belongs to the run it stands in.
        if (begins is None or not line.startswith(begins)) and (run := envelope.run_of(line)) is not None:
            begins = line[: line.index(b'",') + 2]
            if not found or run != found[-1].run:
                whole = whole and envelope.seq_of(line) == 0 and run not in seen
                seen.add(run)
                found.append(Part(run, at, at, number))
        at, number = at + len(line), number + 1
    if not found:
        raise RunNotFound(f"{path} is not a timeline", hint="`playhead export` writes one.")
    if len(found) < 2 or not whole or found[0].start:
        return [Part(found[0].run, 0, at, 0)]
    ends = [part.start for part in found[1:]] + [at]
    return [part._replace(end=end) for part, end in zip(found, ends, strict=True)]
