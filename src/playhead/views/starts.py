"""Tell which effect `process.started` is the beginning of a call that is shown already."""

from __future__ import annotations

from typing import Any

from playhead.event.envelope import Event
from playhead.views import text
from playhead.views.points import mapping
from playhead.views.text import Resolve

_BY = ("subprocess.Popen", "os.system")  # whose processes are recorded as calls


class Starts:
    """Follow the calls that are about to start a process.

    A call is written before its process is started, and the effect as it is: by the same lane, in the same span. What
    stands between them in the timeline is of other lanes, or was read or written meanwhile.
    """

    def __init__(self, resolve: Resolve | None) -> None:
        self._resolve = resolve
        self._asked: dict[
            tuple[str | None, str], tuple[str | None, list[Any], bool]
        ] = {}  # the last one: span, argv, shell

    def opened(self, event: Event) -> None:
        """Take in the `process.started` of a call."""
        data = mapping(event.data)
        argv = self._words(data.get("argv"))
        self._asked[event.parent, event.lane] = event.span, argv, data.get("shell") is True

    def closed(self, event: Event) -> None:
        """Take in the end of a call: it could not be started, or the effect was seen before."""
        asked = self._asked.get((event.parent, event.lane))
        if asked is not None and asked[0] == event.span:
            del self._asked[event.parent, event.lane]

    def has(self, event: Event) -> bool:
        """Say whether an effect is the start of the process that a call asked for; one call has one."""
        data = mapping(event.data)
        asked = self._asked.get((event.parent, event.lane)) if data.get("what") == "process.started" else None
        if asked is None:
            return False
        detail = mapping(text.followed(data.get("detail"), self._resolve))
        argv = self._words(detail.get("argv"))
        _, wanted, shell = asked
        if shell:  # whichever it is, and by whichever name
            argv, wanted = argv[1:], ["-c", *wanted]
        if not argv or argv != wanted or detail.get("by") not in _BY:
            return False
        del self._asked[event.parent, event.lane]
        return True

    def _words(self, argv: Any) -> list[Any]:
        argv = text.followed(argv, self._resolve)
        return [text.followed(word, self._resolve) for word in argv] if isinstance(argv, list) else []
