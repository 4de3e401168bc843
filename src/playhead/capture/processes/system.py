"""Note what `os.system` runs: it shares our terminal, so all that comes back is how it ended."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.capture import answering, children
from playhead.capture.patches import Patches

if TYPE_CHECKING:
    from playhead.capture.processes.call import ProcessCall

MODULES = ("os",)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder around `os.system`."""
    patches.replace(module, "system", _system)


def _system(original: Any) -> Any:
    @functools.wraps(original)
    def system(command: Any) -> Any:
        # Few programs use it, so nothing is loaded for it before.
        from playhead.capture.processes.call import begin
        from playhead.capture.processes.question import question

        def describe(call: ProcessCall) -> dict[str, Any]:
            call.inherited = [1, 2]
            return question(command, {"shell": True})

        call = begin(sys._getframe().f_back, describe)
        if call is None and answering.player is None:
            return original(command)
        before = children.starting.at
        children.starting.at = None if call is None else (call.recording.id, call.span)
        try:
            replayed = answering.player is not None
            status = _answered(call, original, command) if replayed else original(command)
        except BaseException as error:
            if call is not None:
                call.failed(error)
            raise
        finally:
            children.starting.at = before
        if call is None:
            return status
        call.wait_status = status
        call.exited(os.waitstatus_to_exitcode(status) if status >= 0 else None)
        return status

    return system


def _answered(call: ProcessCall | None, original: Any, command: Any) -> Any:
    """Do it in a replay: hand back what came of it then."""
    from playhead.capture.processes import instead

    if call is None:
        instead.unrecorded(sys._getframe(2), [command])
    if call is None or call.played is None:
        with instead.starting(None):
            return original(command)
    played = call.played
    if (error := played.failure()) is not None and played.wait_status is None:
        raise error
    with instead.starting(None):
        sys.audit("os.system", os.fsencode(command))  # what listens is told
    played.exited()
    return played.wait_status
