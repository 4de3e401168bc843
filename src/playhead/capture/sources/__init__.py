"""Name what gives a program something that another run of it would not get; one small file for each sort."""

from __future__ import annotations

from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.sources import clocks, files, generators, loops, stdin, variables

_patches = Patches()
_arriving: AfterImport | None = None


def watch_all() -> None:
    """Watch all of them, each as soon as its module is there."""
    global _arriving
    clocks.watch()
    files.watch()
    stdin.watch()
    variables.patch(_patches)
    _arriving = AfterImport({**clocks.ARRIVING, **generators.ARRIVING, **files.ARRIVING, **loops.ARRIVING})
    _arriving.install()


def unwatch_all() -> None:
    """Wait for nothing any more, and restore what is not restored by `hooks`."""
    global _arriving
    if _arriving is not None:
        _arriving.uninstall()
        _arriving = None
    files.unwatch()
    loops.unwatch()
    _patches.restore()
