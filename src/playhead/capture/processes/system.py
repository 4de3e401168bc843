"""Note what `os.system` runs: it shares our terminal, so all that comes back is how it ended."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType
from typing import Any

from playhead.capture.patches import Patches

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

        call = begin(sys._getframe(1), lambda _: question(command, {"shell": True}))
        if call is None:
            return original(command)
        try:
            status = original(command)
        except BaseException as error:
            call.failed(error)
            raise
        call.wait_status = status
        call.exited(os.waitstatus_to_exitcode(status) if status >= 0 else None)
        return status

    return system
