"""Lay two texts out beside each other: what changed, in its place, with a little of what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from playhead import _limits
from playhead.cli.output import Part, one_line
from playhead.views import text
from playhead.views.words import Piece, plain, rows, words

_CONTEXT_LINES = 2
_LETTER_CELLS_MAX = 2
_STYLES = {"removed": "red", "added": "green", "same": ""}
_WORD = re.compile(r"\s+|\S+")


def beside(left: str, right: str, width: int, *, unicode: bool) -> list[list[Part]]:
    """Return lines with one text in the left half and the other in the right one; of what is the same only a little."""
    bar, dots = ("│", "…") if unicode else ("|", "...")
    half = (width - 5) // 2
    all_rows = rows(words(left, right))
    changed = [at for at, row in enumerate(all_rows) if not row.same]
    found: list[list[Part]] = []
    shown = -1
    for at in sorted({at + near for at in changed for near in range(-_CONTEXT_LINES, _CONTEXT_LINES + 1)}):
        if not 0 <= at < len(all_rows):
            continue
        if at > shown + 1:
            found.append([(f"{dots} {text.several(at - shown - 1, 'line')} the same", "dim")])
        columns = [_folded(_near(side, half, dots), half) for side in all_rows[at]]
        for number in range(max(map(len, columns))):
            one, other = (column[number] if number < len(column) else [] for column in columns)
            found.append([*one, " " * (half - text.cells(plain(one))), (f"  {bar}  ", "dim"), *other])
        shown = at
    if shown + 1 < len(all_rows):
        found.append([(f"{dots} {text.several(len(all_rows) - shown - 1, 'line')} the same", "dim")])
    more = len(found) - _limits.DEVIATION_LINES_MAX
    if more > 0:
        found = found[: _limits.DEVIATION_LINES_MAX]
        found.append([(f"{dots} {text.several(more, 'more line')}; --json has all", "dim")])
    return found


def _near(pieces: Sequence[Piece], width: int, dots: str) -> Iterable[Piece]:
    """Yield what changed in a line, and of what is the same what is near."""
    for at, piece in enumerate(pieces):
        if piece.how != "same" or len(piece.text) <= 2 * width or len(pieces) == 1:
            yield piece
            continue
        head, tail = piece.text[:width] if at else "", piece.text[-width:] if at + 1 < len(pieces) else ""
        yield Piece("same", f"{head} {dots} ".lstrip() + tail)


def _folded(pieces: Iterable[Piece], width: int) -> list[list[Part]]:
    """Break a line where it is too wide, at a space if there is one."""
    found: list[list[Part]] = [[]]
    room = width
    for piece in pieces:
        for number, line in enumerate(piece.text.removesuffix("\n").split("\n")):
            if number:
                found.append([])
                room = width
            for word in _WORD.findall(one_line(line)):
                if room < text.cells(word) <= width or room < _LETTER_CELLS_MAX:
                    found.append([])
                    room = width
                while text.cells(word) > room:
                    letters = text.fitting(word, room)
                    found[-1].append((word[:letters], _STYLES[piece.how]))
                    found.append([])
                    word, room = word[letters:], width
                found[-1].append((word, _STYLES[piece.how]))
                room -= text.cells(word)
    return found
