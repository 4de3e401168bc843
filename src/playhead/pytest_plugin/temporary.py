"""Take the temporary folders of pytest for the same in every session: `tmp_path` has another number in each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from playhead.event.normalise import Rule, forget, register

_NAME = "pytest-temporary"
_BASE = r"(?:/[^/\s\"'<>|:]{1,255}){1,16}/pytest-of-[^/\s]{1,64}/pytest-\d{1,9}"
_WORKER = r"/popen-gw\d{1,4}"  # of pytest-xdist
_NUMBERED = r"(/[\w.-]{1,100}?)\d{1,9}(?![\w-])"  # counted over the tests of a session


@contextlib.contextmanager
def same(base: str) -> Iterator[None]:
    """Let paths below the present base and below that of any other session be the same, for a while."""
    base = re.sub(f"{_WORKER}$", "", base)
    pattern = re.compile(f"(?:{_BASE}|{re.escape(base)})(?:{_WORKER})?(?![\\w-])(?:{_NUMBERED})?")

    def text(value: str) -> str:
        if "/pytest-of-" not in value and base not in value:
            return value
        return pattern.sub(lambda found: f"<tmp>{found[1] or ''}", value)

    def normalised(kind: str, name: str | None, value: Any) -> Any:
        return _walked(text, value)

    register(Rule(_NAME, function=normalised))
    try:
        yield
    finally:
        forget(_NAME)


def _walked(text: Callable[[str], str], value: Any) -> Any:
    if type(value) is str:
        return text(value)
    if type(value) is list:
        return [_walked(text, item) for item in value]
    if type(value) is dict:
        return {text(key): _walked(text, item) for key, item in value.items()}
    return value
