"""Turn pages: a cursor says where the next one begins, and which question it belongs to."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import orjson

from playhead.errors import UsageError


def cursor(after: Any, question: Any) -> str:
    """Return what the next page is asked for with."""
    return base64.urlsafe_b64encode(orjson.dumps([after, _of(question)])).decode().rstrip("=")


def after(cursor: str | None, question: Any) -> Any:
    """Return where the page before ended; UsageError where the cursor belongs to another question."""
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        last, of = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error, UnicodeEncodeError):
        raise UsageError("this is no cursor", hint="Take the `next` of the page before, as it is.") from None
    if of != _of(question):
        raise UsageError("this cursor belongs to another question", hint="Ask with the filters of the page before.")
    return last


def _of(question: Any) -> str:
    encoded = orjson.dumps(question, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return hashlib.sha256(encoded).hexdigest()[:16]
