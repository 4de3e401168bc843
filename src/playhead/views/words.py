"""Show what changed in a text, word by word: `… the year is [-2025-] {+2026+} …`.

`words` is the difference as data, and loses nothing: what is the same and what was removed make the left text, what is
the same and what was added the right one. `hunks` makes lines of it that can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from playhead import _limits
from playhead.views import text as views_text
from playhead.views.alignment import aligned

Part = str | tuple[str, str]  # text, or text with a style, as the command line writes them

# Ideographs and kana, which no spaces stand between: each is a word of its own.
_CJK = r"\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_CJK += r"\U00020000-\U0003ffff"
_LETTER = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]|\s+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_PATCH = re.compile(r"(diff --git |--- |Index: |From [0-9a-f]{40} |@@ -)")
_CONTEXT_LINES = 3
_CONTEXT_WORDS = 6
_CONTEXT_CHARACTERS_MAX = 48
_PIECE_CHARACTERS_MIN = 12
_PIECE_CHARACTERS_MAX = 90  # of one removed or added piece that is shown; of a longer one the ends are
_GLUE_CHARACTERS_MAX = 16  # of what stays the same between two changes, and reads better as changed with them
_GLUE_LETTERS_MAX = 2  # of those that are words
_SAME_WITHIN_MIN = 12  # characters that two words begin or end with: of such long ones the rest changed
# What a terminal would act on, or a reader would not see.
_INVISIBLE = (*range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F),
              *range(0x2066, 0x206A), 0xFEFF)  # fmt: skip
_ESCAPES = {
    **{code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _INVISIBLE},
    **{code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)},  # halves of letters, which no terminal can write
    9: "\\t",
    10: "⏎",
}


class Piece(NamedTuple):
    """A piece of a text that changed."""

    how: Literal["same", "removed", "added"]
    text: str


def words(left: str, right: str) -> list[Piece]:
    """Return how one text becomes the other. A removed piece stands before the added one that replaces it."""
    found: list[Piece] = []
    for block in _blocks(left, right, _LINE):
        if block[0]:
            _append(found, "same", block[1])
            continue
        for same, before, after in _blocks(block[1], block[2], _WORD):
            for same_within, removed, added in [(True, before, after)] if same else _within(before, after):
                if same_within:
                    _append(found, "same", removed)
                else:
                    _append(found, "removed", removed)
                    _append(found, "added", added)
    return _glued(found)


class Row(NamedTuple):
    """A line of two texts that stand beside each other, or several of which not one is the same."""

    left: list[Piece]
    right: list[Piece]

    @property
    def same(self) -> bool:
        """Say whether nothing in it changed."""
        return all(piece.how == "same" for piece in (*self.left, *self.right))


def rows(pieces: Iterable[Piece]) -> list[Row]:
    """Return two texts beside each other: what is the same in both stands in one row."""
    found = [Row([], [])]
    for piece in pieces:
        sides = [side for side, other in zip(found[-1], ("added", "removed"), strict=True) if piece.how != other]
        if piece.how != "same":
            sides[0].append(piece)
            continue
        if any(found[-1]) and all(not side or side[-1].text.endswith("\n") for side in found[-1]):
            found.append(Row([], []))
        for number, line in enumerate(piece.text.split("\n")):
            if number:
                found.append(Row([], []))
            if line:
                for side in found[-1]:
                    side.append(Piece("same", line))
    return found if any(found[-1]) else found[:-1]


def _blocks(left: str, right: str, pattern: re.Pattern[str]) -> Iterable[tuple[bool, str, str]]:
    """Align two texts by lines, or by words; texts of too many are not split."""
    lefts, rights = pattern.findall(left), pattern.findall(right)
    if max(len(lefts), len(rights)) > _limits.DIFFERENCE_WORDS_MAX:
        return _ends(left, right)
    return [
        (block.same, "".join(lefts[block.left : block.left_end]), "".join(rights[block.right : block.right_end]))
        for block in aligned(lefts, rights)
    ]


def _ends(left: str, right: str) -> Iterable[tuple[bool, str, str]]:
    """Split off only what two long texts have in common at their ends."""
    length = min(len(left), len(right))
    start = _longest(length, lambda size: left[:size] == right[:size])
    end = _longest(length - start, lambda size: left[len(left) - size :] == right[len(right) - size :])
    return [
        (True, left[:start], right[:start]),
        (False, left[start : len(left) - end], right[start : len(right) - end]),
        (True, left[len(left) - end :], right[len(right) - end :]),
    ]


def _within(left: str, right: str) -> Iterable[tuple[bool, str, str]]:
    """Return where one change differs: long words without spaces (digests, minified code) may be mostly the same."""
    if min(len(left), len(right)) < _SAME_WITHIN_MIN:
        return [(False, left, right)]
    (_, start, _), (_, before, after), (_, end, _) = _ends(left, right)
    if len(start) < _SAME_WITHIN_MIN:
        start, before, after = "", start + before, start + after
    if len(end) < _SAME_WITHIN_MIN:
        end, before, after = "", before + end, after + end
    return [(True, start, start), (False, before, after), (True, end, end)]


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest size that fits, where all smaller ones do too: to compare slices is faster than letters."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def _append(found: list[Piece], how: Literal["same", "removed", "added"], text: str) -> None:
    """Add a piece; of changes without anything in between the removed text comes first, in one piece."""
    if not text:
        return
    if found and found[-1].how == how:
        found[-1] = Piece(how, found[-1].text + text)
    elif how == "removed" and found and found[-1].how == "added":
        if len(found) > 1 and found[-2].how == "removed":
            found[-2] = Piece("removed", found[-2].text + text)
        else:
            found.insert(-1, Piece("removed", text))
    else:
        found.append(Piece(how, text))


def _glued(pieces: list[Piece]) -> list[Piece]:
    """Take what is the same between two changes as changed too, where the whole reads better.

    That is a blank or a dot, and what is within a word, a path or a date. A line break keeps changes apart.
    """
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        if piece.how == "same" and 0 < at < len(pieces) - 1 and _is_glue(piece.text):
            _append(found, "removed", piece.text)
            _append(found, "added", piece.text)
        else:
            _append(found, piece.how, piece.text)
    return found


def _is_glue(text: str) -> bool:
    if len(text) > _GLUE_CHARACTERS_MAX or "\n" in text:
        return False
    return text.isspace() or not (any(map(str.isspace, text)) or len(_LETTER.findall(text)) > _GLUE_LETTERS_MAX)


def is_patch(text: str) -> bool:
    """Say whether a text is a patch, which is read line by line."""
    return _PATCH.match(text) is not None


def lines(left: str, right: str) -> list[str]:
    """Return how one text becomes the other by lines: `@@` where in the left one, then ` `, `-` or `+` and the line."""
    lefts, rights = left.splitlines(), right.splitlines()
    found: list[str] = []
    shown = -1  # the last line of the left text that is there already
    blocks = aligned(lefts, rights)
    for block in blocks:
        if block.same:
            continue
        start = max(shown + 1, block.left - _CONTEXT_LINES)
        if start > shown + 1 or not found:
            found.append(f"@@ line {start + 1} @@")
        found += [f" {line}" for line in lefts[start : block.left]]
        found += [f"-{line}" for line in lefts[block.left : block.left_end]]
        found += [f"+{line}" for line in rights[block.right : block.right_end]]
        shown = min(len(lefts), block.left_end + _CONTEXT_LINES) - 1
        after = next((one for one in blocks if one.same and one.left == block.left_end), None)
        shown = min(shown, after.left_end - 1) if after is not None else block.left_end - 1
        found += [f" {line}" for line in lefts[block.left_end : shown + 1]]
    return found


# How it is shown.


def hunks(pieces: list[Piece], width: int = _limits.DEVIATION_WIDTH_MAX) -> list[list[Part]]:
    """Return one line for each change, or several that stand close together, with a few words around it.

    In a text of several lines each says which line of the left text it is in. Removed text is `[-…-]` and red, added
    text `{+…+}` and green; context does not cross the end of a line.
    """
    several = any("\n" in piece.text for piece in pieces)
    lines: list[list[Part]] = []
    number = 1
    line: list[Part] = []
    for at, piece in enumerate(pieces):
        if piece.how != "same":
            if not line:
                line = [f"line {number}: "] if several else []
                before = pieces[at - 1].text if at else ""
                line += [_ending(before, at > 1)] if before else []
            text = shown(piece.text, _room(pieces, at, width))
            if piece.how == "removed":
                line.append((f"[-{text}-]", "red"))
            else:
                line += [" "] if at and pieces[at - 1].how == "removed" else []
                line.append((f"{{+{text}+}}", "green"))
        elif line:
            after = pieces[at + 1].text if at + 1 < len(pieces) else ""
            took = (piece.text[:_CONTEXT_CHARACTERS_MAX], after[:_PIECE_CHARACTERS_MAX])
            room = width - sum(views_text.cells(one) for one in (plain(line), *took))
            close = len(piece.text) <= _CONTEXT_CHARACTERS_MAX and room > _CONTEXT_CHARACTERS_MAX
            if after and close and "\n" not in piece.text:
                line.append(shown(piece.text, _CONTEXT_CHARACTERS_MAX))
            else:
                lines.append([*line, _beginning(piece.text, bool(after))])
                line = []
        if piece.how != "added":
            number += piece.text.count("\n")
    if line:
        lines.append(line)
    return [fitted(line, width) for line in lines]


def in_one_line(pieces: list[Piece], width: int = _limits.DEVIATION_WIDTH_MAX) -> str:
    """Return all changes in one line. What stands between two of them is there once; a text of several lines is told
    by its lines.
    """
    if any("\n" in piece.text for piece in pieces):
        return " ".join(plain(line) for line in hunks(pieces, width))
    found: list[str] = []
    for at, (how, text) in enumerate(pieces):
        if how == "removed":
            found.append(f"[-{shown(text, _room(pieces, at, width))}-]")
        elif how == "added":
            beside = " " if at and pieces[at - 1].how == "removed" else ""
            found.append(f"{beside}{{+{shown(text, _room(pieces, at, width))}+}}")
        elif 0 < at < len(pieces) - 1:
            found.append(shown(text, 2 * _CONTEXT_CHARACTERS_MAX))
        else:
            found.append(_beginning(text, False) if at else _ending(text, False))
    return "".join(found)


def _room(pieces: list[Piece], at: int, width: int) -> int:
    """Return how much of a piece is shown: where something took its place, there has to be room for both."""
    near = (pieces[other].how for other in (at - 1, at + 1) if 0 <= other < len(pieces))
    if all(how == "same" for how in near):
        return _PIECE_CHARACTERS_MAX
    return max(_PIECE_CHARACTERS_MIN, min(_PIECE_CHARACTERS_MAX, width // 2 - len("[-… -]")))


def plain(line: Iterable[Part]) -> str:
    """Return a line without its styles."""
    return "".join(part if isinstance(part, str) else part[0] for part in line)


def shown(text: str, width: int) -> str:
    """Return a text in one line: what cannot be seen as an escape, and of a long one both ends."""
    if len(text) > 4 * width:
        text = f"{text[: 2 * width]}{text[-2 * width :]}"
    text = text.translate(_ESCAPES)
    if views_text.cells(text) <= width:
        return text
    half = (width - 3) // 2
    return f"{_cut(text, half)} … {_cut(text[::-1], half)[::-1]}"


def fitted(line: list[Part], width: int) -> list[Part]:
    """Cut a line where it is too wide; what was cut off is marked."""
    found: list[Part] = []
    left = width
    for part in line:
        text = part if isinstance(part, str) else part[0]
        if views_text.cells(text) > left:
            text = views_text.cut(text, max(1, left))
            return [*found, text if isinstance(part, str) else (text, part[1])]
        found.append(part)
        left -= views_text.cells(text)
    return found


def _cut(text: str, width: int) -> str:
    return views_text.cut(text, width + 1).removesuffix("…")[:width]


def _beginning(text: str, more: bool) -> str:
    """Return the first words of what follows a change, up to the end of the line; `more` says that text follows."""
    line, newline, _ = text.partition("\n")
    found = _WORD.findall(line[: 2 * _CONTEXT_CHARACTERS_MAX])[: 2 * _CONTEXT_WORDS]
    kept = _cut("".join(found).translate(_ESCAPES), _CONTEXT_CHARACTERS_MAX)
    return f"{kept.rstrip()} …" if len(kept) < len(line) or (more and not newline) else kept


def _ending(text: str, more: bool) -> str:
    """Return the last words of what comes before a change, from the beginning of the line."""
    _, newline, line = text.rpartition("\n")
    found = _WORD.findall(line[-2 * _CONTEXT_CHARACTERS_MAX :])[-2 * _CONTEXT_WORDS :]
    kept = _cut("".join(found).translate(_ESCAPES)[::-1], _CONTEXT_CHARACTERS_MAX)[::-1]
    return f"… {kept.lstrip()}" if len(kept) < len(line) or (more and not newline) else kept
