"""Find a known secret value in whatever encoding it stands.

A value has several forms: as it is, with some of its characters escaped for JSON (at any depth of JSON inside JSON), a
URL, HTML or mail; with all of them percent-encoded; in hex; in base64 at each of the three alignments; in base64 of
base64. Each form is a pattern, and has a part that is the same in every spelling of it: `fixed`. Where the fixed part
is missing, the form is not there.
"""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from collections.abc import Callable

from playhead.capture.redact_rules import RUN_CHARACTERS

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]", re.ASCII)  # characters that no encoder escapes
_FIXED = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_SHORT_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_HTML_NAMES = {"&": ("amp",), "<": ("lt",), ">": ("gt",), '"': ("quot",), "'": ("apos",), "\xa0": ("nbsp",)}

# Rarest first, in JSON of English text and code. A byte that is missing spares the search for the rest.
_RARITY = b'~^%@QZXJVKYUWGHBNOFRDLPMECSTIAqz+=8796543x210jkvbpygfwmucldrhsnioate-_/.,: "'


class Form:
    """Hold one spelling of a secret as a pattern."""

    def __init__(self, name: str, source: Callable[[], str], candidates: list[str]) -> None:
        self._source = source
        self.name = name
        self.fixed = max(candidates, key=len, default="")
        self.needle = self.fixed.encode()
        self.rare = rarest(self.needle)
        # Whether the fixed part is long and all of characters as keys are made of.
        self.in_run = len(self.needle) >= RUN_CHARACTERS and b"%" not in self.needle

    @functools.cached_property
    def source(self) -> str:
        """Return the pattern, which is made when it is first needed: most forms are never found."""
        return self._source()

    @functools.cached_property
    def text(self) -> re.Pattern[str]:
        """Return the pattern over text."""
        return re.compile(self.source)

    @functools.cached_property
    def data(self) -> re.Pattern[bytes] | None:
        """Return the pattern over UTF-8, or None when the value has no UTF-8."""
        try:
            return re.compile(self.source.encode())
        except UnicodeEncodeError:
            return None

    def possible(self, text: str) -> bool:
        """Say whether a search is worth its time."""
        return self.fixed in text

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the form stands."""
        if self.source != self.fixed:
            return [match.span() for match in self.text.finditer(text)]
        # All of it is fixed, as with most keys: found much faster than by a pattern.
        spans, length, at = [], len(self.fixed), text.find(self.fixed)
        while at >= 0:
            spans.append((at, at + length))
            at = text.find(self.fixed, at + length)
        return spans

    def within(self, data: bytes) -> bool:
        """Say whether the form may stand in UTF-8 text, encoded as JSON or not; never wrong when it says no."""
        if self.rare not in data or self.needle not in data:
            return False
        return self.data is None or self.data.search(data) is not None


class Known:
    """Hold one secret value, the rule it is redacted by, and its forms."""

    def __init__(self, value: str, rule: str) -> None:
        self.value = value
        self.name = rule
        data = _as_bytes(value)
        self.forms = [Form(rule, functools.partial(_spelling, value), _FIXED.findall(value))]
        for digits in sorted({data.hex(), data.hex().upper()}):
            self.forms.append(Form(rule, functools.partial(str, digits), [digits]))
        percents = "".join(f"%{byte:02x}" for byte in data)
        self.forms.append(Form(rule, functools.partial(_percent_encoded, data), re.split("[a-f]+", percents)))
        cores = _base64_cores(data)
        again = {alike for core in cores for alike in (core, core.translate(_URL_SAFE))}
        twice = [core for inner in sorted(again) for core in _base64_cores(inner.encode())]
        for core in (*cores, *twice):
            form = Form(rule, functools.partial(_base64_source, core), re.findall("[A-Za-z0-9]+", core))
            if core in cores or form.in_run:  # what is too short to tell in two layers would be looked for everywhere
                self.forms.append(form)


def rarest(needle: bytes) -> bytes:
    """Return the byte of a needle that is least likely to occur in an event; nothing for nothing."""
    if not needle:
        return b""
    return bytes([min(needle, key=_RARITY.find)])


def _as_bytes(value: str) -> bytes:
    """Return the value as UTF-8; what the system handed over as raw bytes (os.environ) goes back to them."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


_URL_SAFE = str.maketrans("+/", "-_")
_BASE64_SPELLING = {"+": "(?:[+-]|%2[bB])", "/": r"(?:\\*/|_|%2[fF])"}


def _base64_cores(data: bytes) -> list[str]:
    """Return, for each alignment, the letters of base64 that the value alone decides."""
    cores = []
    for before in range(3):
        padded = bytes(before) + data + bytes(-(before + len(data)) % 3)
        first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
        cores.append(b64encode(padded).decode()[first:last])
    return cores


def _base64_source(core: str) -> str:
    return _joined([_BASE64_SPELLING.get(letter, letter) for letter in core])


def _percent_encoded(data: bytes) -> str:
    return "".join(f"%(?:25)*{_hex(byte, 2)}" for byte in data)


def _spelling(value: str) -> str:
    """Return a pattern for every way in which JSON, URLs, HTML and mail write the value."""
    return _joined([_letter(run) for run in re.findall(r"\\+|.", value, re.DOTALL)])


def _joined(letters: list[str]) -> str:
    """Join the patterns of letters. Where the first may begin with backslashes, it begins with the first of them.

    Otherwise a search would start anew at each backslash of a long row.
    """
    return re.sub(r"(?<=[:|])(?=\\\\[*+])", lambda _: r"(?<!\\)", letters[0]) + "".join(letters[1:])


@functools.cache
def _letter(letter: str) -> str:
    if letter[0] == "\\":  # a run of backslashes doubles with each level of JSON
        return r"(?:\\+|(?:%(?:25)*5[cC])+|(?:=5[cC])+|(?:&(?:amp;)*\#(?:0*92|[xX]0*5[cC]);)+)"
    if _PLAIN.fullmatch(letter):
        return re.escape(letter)
    ways = [re.escape(letter)]
    if letter in '"/':
        ways = [rf"\\*{letter}"]
    elif letter in _SHORT_ESCAPES:
        ways.append(rf"\\+{_SHORT_ESCAPES[letter]}")
    if letter == "\n":
        ways.append(r"\r\n")
    if letter == " ":
        ways.append(r"\+")
    data = letter.encode("utf-8", "surrogatepass")
    ways.append("".join(f"%(?:25)*{_hex(byte, 2)}" for byte in data))
    ways.append("".join(f"={_hex(byte, 2)}" for byte in data))
    names = "".join(f"{name}|" for name in _HTML_NAMES.get(letter, ()))
    ways.append(rf"&(?:amp;)*(?:{names}\#0*{ord(letter)}|\#[xX]0*{_hex(ord(letter), 0)});")
    units = letter.encode("utf-16-be", "surrogatepass")
    ways.append("".join(rf"\\+u{_hex(int.from_bytes(units[at : at + 2], 'big'), 4)}" for at in range(0, len(units), 2)))
    return f"(?:{'|'.join(ways)})"


def _hex(number: int, width: int) -> str:
    """Return a pattern for a number in hex, in either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{number:0{width}x}")
