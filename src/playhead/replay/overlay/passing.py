"""Stand in place of `open`: a part of its own, since code of the program's may run below it and is not ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.replay.overlay.opening import Opening
    from playhead.replay.overlay.raw import Raw


def opening(where: Opening, raw: Raw) -> Callable[..., Any]:
    """Return what opens files as `open` does.

    An opener of ours is what turns to the other place. So the file has the name that the program gave, and the
    interpreter tells of that.
    """

    def io_open(file: Any, mode: Any = "r", *args: Any, **options: Any) -> Any:
        own = options.get("opener") or (args[5] if len(args) > 5 else None)
        opener = where.opener(file, mode, own)
        if opener is None:
            return raw.io_open(file, mode, *args, **options)
        return raw.io_open(file, mode, *args[:5], **{**options, "opener": opener})

    return io_open
