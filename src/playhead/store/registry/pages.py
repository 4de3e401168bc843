"""Give long lists page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from playhead import _limits
from playhead.errors import UsageError

T = TypeVar("T")


def check(limit: int, after: str | None, is_id: Callable[[str], bool]) -> None:
    """Refuse a page that is too large, or that begins nowhere."""
    if not 1 <= limit <= _limits.PAGE_ROWS_MAX:
        raise UsageError(f"a page has 1 to {_limits.PAGE_ROWS_MAX} entries, not {limit}")
    if after is not None and not is_id(after):
        raise UsageError(f"no page begins after {after[:80]!r}", hint="`next` of the page before says where it begins.")


def page(found: Sequence[T], limit: int, id: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Return at most `limit` of what was found, with one more than that asked for, and where the next page begins."""
    items = list(found[:limit])
    return items, id(items[-1]) if len(found) > limit else None
