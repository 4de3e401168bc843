"""Take a variable with a secret name as secret at the moment when a program sets it, not only at its next event."""

from __future__ import annotations

import functools
import os
from typing import Any

from playhead.capture import forks, telling
from playhead.capture.patches import Patches
from playhead.capture.redact_names import secrets_of
from playhead.event.secret_names import is_secret_name


def patch(patches: Patches) -> None:
    """Watch `os.environ`, and `os.environb`, which is of the same class."""
    patches.replace(os._Environ, "__setitem__", _setitem)


def tell_all() -> None:
    """Tell the launcher the secrets that are set already: a program may be started with some of its own."""
    telling.tell((value, "env") for value in secrets_of(os.environ))


def _setitem(original: Any) -> Any:
    @functools.wraps(original)
    def __setitem__(self: Any, key: Any, value: Any) -> None:
        original(self, key, value)
        name = os.fsdecode(key)
        if is_secret_name(name):
            variable = {name: os.fsdecode(value)}
            for recording in forks.recordings():
                recording.redactor.learn(variable)
            telling.tell((secret, "env") for secret in secrets_of(variable))  # also where no run is open yet

    return __setitem__
