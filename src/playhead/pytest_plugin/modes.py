"""Choose between recording and replaying, as vcrpy does: none, once, new, all."""

from __future__ import annotations

import os
from typing import NamedTuple

import pytest

MODES = ("none", "once", "new", "all")
_MEANING = {
    "none": "a missing cassette or a new question is an error",
    "once": "a test without a cassette records one, the others replay",
    "new": "what is on a cassette is replayed, what is not is recorded",
    "all": "every cassette is recorded anew",
    "off": "PLAYHEAD_DISABLED is set, nothing is recorded or replayed",
}
_NOT_SET = ("", "0", "false", "no", "off")


class Mode(NamedTuple):
    """The mode in force, and where it comes from."""

    name: str
    why: str

    @property
    def told(self) -> str:
        """Return the line for the header."""
        return f"cassettes {self.name} ({self.why}): {_MEANING[self.name]}"


def mode_of(option: str | None, ini: str) -> Mode:
    """Return the mode: the option counts before the ini file, that before the setting; else once, none under CI."""
    from playhead import settings
    from playhead.errors import PlayheadError

    try:
        found = settings.load()
    except PlayheadError as problem:
        raise pytest.UsageError(str(problem)) from None
    if found.disabled:
        return Mode("off", "switched off")
    for name, why in ((option, "--playhead"), (ini, "the ini file"), (found.cassettes, "the setting `cassettes`")):
        if name and name != "auto":
            if name not in MODES:
                raise pytest.UsageError(f"{why}: {name!r} is no mode for cassettes; there are {', '.join(MODES)}")
            return Mode(name, why)
    ci = os.environ.get("CI", "").strip().lower() not in _NOT_SET
    return Mode("none", "CI is set") if ci else Mode("once", "the default")
