"""Take the texts out of a line: what somebody would look for, and no base64, no digests, no values that are gone.

What a line says by reference (`$same`, the beginning of `$extends`) stands in an earlier line, which has it. The rules
here are part of the form of the search file: whoever changes them raises its version (search_database.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from playhead import _limits
from playhead.errors import PlayheadError
from playhead.store import layout

Load = Callable[[str, str], Any]  # a blob by its digest, as `text` or `json`: its texts, of which a part may be missing

_NOT_READABLE = frozenset(
    {"$bytes", "$bytearray", "$str", "$float", "$int", "$complex", "$timedelta", "$redacted", "$same", "$commit"}
)
_DIGEST = re.compile(r"(?:\w{1,7}:)?[0-9a-f]{64}")
_DIGEST_CHARACTERS_MAX = 72
_BASE64 = re.compile(r"(?:data:[\w.+/;=-]{1,80},)?(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])[A-Za-z0-9+/_=-]+")
_BASE64_CHARACTERS_MIN = 256
_ESCAPED = re.compile(r'\\u([0-9a-fA-F]{4})|\\["\\/bfnrt]')
_JSON_BEGINS = ("{", "[", "data: {")  # of text that is JSON: arguments of tools, pieces of a stream
_BLOBS_CACHED = 8  # a value that is said again and again lies in one blob
_NESTED_MAX = 3  # blobs in blobs


def blob_loader(root: Path) -> Load:
    """Return what reads the blobs of a store, of large ones the beginning."""

    @functools.lru_cache(maxsize=_BLOBS_CACHED)
    def load(digest: str, form: str) -> Any:
        try:
            path = layout.blob(root, digest)
            if not path.is_file():  # gone; or a pipe, which nobody may ever write to
                return None
            with open(path, "rb") as file:
                content = file.read(_limits.SEARCH_BLOB_BYTES_MAX + 1)
        except (OSError, PlayheadError):
            return None
        whole = len(content) <= _limits.SEARCH_BLOB_BYTES_MAX
        text = content[: _limits.SEARCH_BLOB_BYTES_MAX].decode("utf-8", "ignore")
        if form != "json":
            return text
        try:
            return orjson.loads(content) if whole else text
        except orjson.JSONDecodeError:
            return None

    return load


def texts_of(line: bytes, load: Load) -> tuple[str | None, list[str]]:
    """Return the kind of a line and the texts of its data; nothing of a line that is none."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None, []
    if type(event) is not dict:
        return None, []
    found: list[str] = []
    try:
        _collect(event.get("data"), found, load, 0)
    except RecursionError:  # nobody who records nests that deep
        pass
    kind = event.get("kind")
    return kind if type(kind) is str else None, _fitting([_unescaped(text) for text in found])


def _collect(value: Any, found: list[str], load: Load, nested: int) -> None:
    kind = type(value)
    if kind is str:
        if value and not _is_noise(value):
            found.append(value)
    elif kind is dict:
        first = next(iter(value), "")
        if first[:1] == "$":
            if first in _NOT_READABLE:
                return
            if first == "$extends":
                value = {"then": value.get("then")}
            elif first == "$blob":
                form = value.get("as")
                if nested < _NESTED_MAX and form in ("text", "json") and type(value["$blob"]) is str:
                    _collect(load(value["$blob"], form), found, load, nested + 1)
                return
        for item in value.values():
            if type(item) is str:  # the most common, without a call
                if item and (len(item) < 64 or not _is_noise(item)):
                    found.append(item)
            elif type(item) in (dict, list):
                _collect(item, found, load, nested)
    elif kind is list:
        for item in value:
            _collect(item, found, load, nested)


def _is_noise(text: str) -> bool:
    """Say whether a text is a digest or base64: nobody looks for a word of it."""
    if len(text) < 64:
        return False
    if len(text) <= _DIGEST_CHARACTERS_MAX and _DIGEST.fullmatch(text):
        return True
    if len(text) < _BASE64_CHARACTERS_MIN:
        return False
    begin = text[:_BASE64_CHARACTERS_MIN]
    if " " in begin:
        return False
    return _BASE64.fullmatch(begin.replace("\n", "").replace("\r", "")) is not None


def _unescaped(text: str) -> str:
    """Return a text that is JSON without its escapes: in `"\\nFAILED"` nobody looks for `nFAILED`."""
    if "\\" not in text or not text.startswith(_JSON_BEGINS):
        return text
    return _ESCAPED.sub(_letter, text)


def _letter(escape: re.Match[str]) -> str:
    code = int(escape[1], 16) if escape[1] else 0x20
    return " " if 0xD800 <= code <= 0xDFFF else chr(code)


def _fitting(found: list[str]) -> list[str]:
    room = _limits.SEARCH_LINE_CHARACTERS_MAX
    for place, text in enumerate(found):
        room -= len(text)
        if room < 0:
            return [*found[:place], text[:room]]
    return found
