"""Read what somebody looks for, so that no text is a mistake of syntax; and show where it stands.

Words must all be there, in any order. `"several words"` must stand together; a word with marks in it, such as
`src/login.py`, is the same. `word*` is any word that begins so, and `-word` must not be there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from playhead import _limits
from playhead.errors import UsageError

_PART = re.compile(r'(-?)"([^"]*)(?:"(\*?)|$)|([^\s"]+)')
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\0": " "})
_SAID = 'Words that must all be there, "words that stand together", beginnings* and -words that must not.'
_ELLIPSIS = "…"


class Term(NamedTuple):
    """A word, or several that stand together; with `begins` the last of them is the beginning of one."""

    text: str
    begins: bool = False

    def quoted(self) -> str:
        """Return it as SQLite's FTS5 reads it: a string, in which nothing is an operator."""
        return f'"{self.text}"{" *" if self.begins else ""}'


class Asked(NamedTuple):
    """What must be in an event, and what must not."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...]

    def expression(self) -> str:
        """Return the question as FTS5 reads it."""
        wanted = " AND ".join(term.quoted() for term in self.wanted)
        if not self.unwanted:
            return wanted
        return f"({wanted}) NOT ({' OR '.join(term.quoted() for term in self.unwanted)})"


class Snippet(NamedTuple):
    """A piece of a text, and where in it the words stand: from and to."""

    text: str
    marks: list[tuple[int, int]]


def read(query: str) -> Asked:
    """Read a question as people write it; UsageError where it asks for nothing, or for too much."""
    if len(query) > _limits.SEARCH_QUERY_CHARACTERS_MAX:
        raise UsageError(f"a search has at most {_limits.SEARCH_QUERY_CHARACTERS_MAX} characters", hint=_SAID)
    wanted: dict[Term, None] = {}
    unwanted: dict[Term, None] = {}
    for found in _PART.finditer(query.translate(_QUOTES).encode("utf-8", "ignore").decode()):
        minus, phrase, star, word = found.groups()
        if word is not None:
            minus = "-" if word[0] == "-" else ""
            star = "*" if word[-1] == "*" else ""
            phrase = word
        term = Term(" ".join(_tokens(phrase)), begins=bool(star))
        if term.text:
            (unwanted if minus else wanted)[term] = None
    if len(wanted) + len(unwanted) > _limits.SEARCH_WORDS_MAX:
        raise UsageError(f"a search has at most {_limits.SEARCH_WORDS_MAX} words", hint=_SAID)
    if not wanted:
        told = "say also what must be there" if unwanted else "there is no word to look for"
        raise UsageError(told, hint=_SAID)
    return Asked(tuple(wanted), tuple(unwanted))


def snippet(texts: Sequence[str], wanted: Sequence[Term]) -> Snippet:
    """Return the piece around the first place where the longest of what is wanted stands."""
    for term in sorted(wanted, key=lambda term: -len(term.text)):
        pattern = _pattern([term])
        for text in texts:
            if (found := pattern.search(_folded(text))) is not None:
                return _around(text, found.start(), found.end(), wanted)
    return _around(texts[0], 0, 0, wanted) if texts else Snippet("", [])


def _around(text: str, start: int, end: int, wanted: Sequence[Term]) -> Snippet:
    room = max(0, _limits.SNIPPET_CHARACTERS_MAX - 2 - (end - start))
    begin = max(0, start - room // 2)
    stop = min(len(text), begin + _limits.SNIPPET_CHARACTERS_MAX - 2)
    begin = max(0, min(begin, stop - _limits.SNIPPET_CHARACTERS_MAX + 2))
    while 0 < begin < start and text[begin - 1].isalnum() and text[begin].isalnum():
        begin += 1  # not in the middle of a word
    piece = " ".join(text[begin:stop].split())
    piece = (_ELLIPSIS if begin else "") + piece + (_ELLIPSIS if stop < len(text) else "")
    return Snippet(piece, [found.span() for found in _pattern(wanted).finditer(_folded(piece))])


def _pattern(terms: Sequence[Term]) -> re.Pattern[str]:
    """Return what finds terms in a folded text."""
    told = []
    for term in sorted(terms, key=lambda term: -len(term.text)):
        words = r"[\W_]+".join(re.escape(_folded(word)) for word in term.text.split())
        told.append(rf"(?<![^\W_]){words}" + ("" if term.begins else r"(?![^\W_])"))
    return re.compile("|".join(told))


def _tokens(text: str) -> list[str]:
    """Split a text where FTS5 does: between its words there is what is neither letter nor digit."""
    return "".join(letter if _is_of_word(letter) else " " for letter in text).split()


def _is_of_word(letter: str) -> bool:
    return letter.isalnum() or unicodedata.category(letter)[0] == "M"


def _folded(text: str) -> str:
    """Return a text without capitals and accents, as long as it was."""
    return text.lower() if text.isascii() else text.translate(_LETTERS)


class _Letters(dict[int, str]):
    """What letters become, each looked at once."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        small = unicodedata.normalize("NFD", letter)[0].lower()
        self[code] = small if len(small) == 1 else letter
        return self[code]


_LETTERS = _Letters()
