"""Hand a program what its Pythons need to attach, and hear from them what became of it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead.capture.borrowed import NAMES
from playhead.capture.children import Handed

_FOLDER = str(Path(__file__).parent / "attach")


@dataclass
class Heard:
    """What the Pythons of a program reported."""

    not_attached: list[dict[str, Any]] = field(default_factory=list)
    redacted: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)  # and could not be declared by whoever lost it


class Attachment:
    """The launcher's side of attaching."""

    def __init__(self, ear: str, rules: str, seed: str, hidden: str, run: Path, plan: str, *, held: bool) -> None:
        # In the store, so that a launcher that is killed leaves nothing elsewhere. A path that cannot be handed on is
        # of no use to anybody.
        place = None if os.pathsep in str(run) else run.absolute()
        self._scratch = Path(tempfile.mkdtemp(prefix=".attach-", dir=place))
        if len(rules) > _limits.HANDED_RULES_BYTES_MAX:
            (self._scratch / "rules").write_text(rules)
            rules = f"@{self._scratch / 'rules'}"
        self._handed = Handed(
            _FOLDER,
            sys.implementation.cache_tag or "",
            str(self._scratch / "report"),
            "",
            0,
            ear,
            rules,
            seed,
            hidden,
            plan,
            "policy" if held else "",
            tuple(_packages()),
        )

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what to set for the program; nothing where a path cannot be written into a search path."""
        paths = (_FOLDER, self._handed.report, self._handed.plan, *self._handed.packages)
        return {} if any(os.pathsep in path for path in paths) else self._handed.variables(environment)

    def hear(self) -> Heard:
        """Return what was reported, and clean up."""
        heard = Heard()
        try:
            text = Path(self._handed.report).read_text(errors="replace")
        except OSError:
            text = ""  # nobody had anything to say
        shutil.rmtree(self._scratch, ignore_errors=True)
        for line in text.splitlines():
            match line.split("\t"):
                case ["redacted", rule, count] if count.isdecimal():
                    heard.redacted[rule] = heard.redacted.get(rule, 0) + int(count)
                case ["lost", reason, count] if count.isdecimal():
                    heard.lost[reason] = heard.lost.get(reason, 0) + int(count)
                case ["not attached", version, executable, why]:
                    heard.not_attached.append({"version": version, "executable": executable, "why": why})
        return heard


def _packages() -> list[str]:
    """Return the folders in which this Python finds Playhead and what it is made of."""
    folders: list[str] = []
    for name in NAMES:
        spec = importlib.util.find_spec(name)
        assert spec is not None, f"{name} is imported already"
        assert spec.origin is not None
        place = Path(spec.origin).parent
        folder = str(place.parent if spec.submodule_search_locations else place)
        if folder not in folders:
            folders.append(folder)
    return folders
