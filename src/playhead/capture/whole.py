"""Record a whole process for a while: a test, and whatever its fixtures, threads and event loops do meanwhile."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from playhead.capture import effects, scope
from playhead.capture.record import Record

_ASIDE = "1"  # the lane of what was not called by the code that the run is about


class WholeRecord(Record):
    """A run that everything in the process belongs to, in whichever context.

    No context is changed by entering it: event loops that outlive the run would keep it. `with record.current():` is
    for the code that the run is about, which then speaks in the lane `0`. What the machine makes of a run is no part of
    it: effects are not kept.
    """

    _keeps_effects = False

    def __enter__(self) -> WholeRecord:
        self._before = scope.ambient()
        scope.set_ambient(None)
        token = scope.current.set(None)  # whatever is open here is not ours to take part in
        try:
            self.begin()
        except BaseException:
            scope.set_ambient(self._before)
            raise
        finally:
            scope.current.reset(token)
        recording = self.recording
        if recording is not None:
            effects.leave_out(recording, self._before)
            lane = scope.Lane(_ASIDE, recording.tap)
            process = scope.Ambient(lambda: recording, lane=lane, span=self.span)
            process.scope()
            scope.set_ambient(process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        scope.set_ambient(self._before)
        self.end(error)

    async def __aenter__(self) -> Any:
        return self.__enter__()
