"""The program's own source: a digest of each file that was imported, in place of its content."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from playhead.capture import callers
from playhead.capture.sources import files
from playhead.store.disk import out_of_the_way


def note_new(pack: Any, span: str | None) -> None:
    """Keep which files of the project were imported since the last look: not those of Python and of packages."""
    seen = pack.tap.seen
    if seen.get("modules") == len(sys.modules):
        return
    try:
        loaded = list(sys.modules.items())
    except RuntimeError:
        return  # another thread, or the collector, imports something right now: the next time
    seen["modules"] = len(loaded)
    known: set[str] = seen.setdefault("module names", set())
    for name, module in loaded:
        if name not in known:
            path = vars(module).get("__file__") if isinstance(module, ModuleType) else None
            if path is None and name == "__main__":
                path = getattr(vars(module).get("__loader__"), "path", None)  # at its end it has no file any more
                if path is None:
                    continue  # it has not begun yet
            known.add(name)
            if isinstance(path, str) and path.endswith((".py", ".pyw")) and callers.sort_of(name) == callers.AGENT:
                path = os.path.abspath(path)
                if not path.startswith(files.not_the_agents()) and not _of_packages(path):
                    pack.add("import", "", {"module": name, **_fingerprint(path)}, len(path) + 160, span)


def _of_packages(path: str) -> bool:
    """Say whether a file is of a package of another environment, such as what Playhead itself is made of."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))


def _fingerprint(path: str) -> dict[str, Any]:
    import hashlib  # here: where nothing is recorded it is not needed

    try:
        with open(path, "rb", opener=lambda name, flags: out_of_the_way(os.open(name, flags))) as file:
            content = file.read()
    except OSError as problem:
        return {"path": path, "error": files.error_name(problem)}
    return {"path": path, "size": len(content), "digest": hashlib.sha256(content).hexdigest()}
