"""Tell on whose behalf a low-level function is called: by its module, which is what two runs have in common."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NamedTuple

AGENT, PASSES, INFRASTRUCTURE, OURS, CALLS = range(5)

# What runs below the agent and as often as chance has it: the event loop, HTTP pools, the import system,
# exporters of telemetry. What it reads is not the agent's, and a replay does not run it, or not in the same way.
_BELOW = frozenset(
    """
    _frozen_importlib _frozen_importlib_external _threading_local asyncio concurrent ctypes http
    importlib inspect linecache multiprocessing pkgutil platform queue runpy sched select selectors signal site
    sitecustomize socket socketserver ssl subprocess sysconfig threading traceback tracemalloc urllib
    usercustomize warnings zipimport
    aiodns aiohappyeyeballs aiohttp aiosignal anyio certifi charset_normalizer curl_cffi frozenlist grpc h11
    h2 hpack httpcore httpcore2 httpx httpx2 httpx_aiohttp hyperframe idna langsmith logfire multidict
    opentelemetry outcome pycares requests sentry_sdk sniffio trio urllib3 uvloop websocket websockets wsproto
    yarl
    """.split()  # noqa: SIM905
)
_OF_PYTHON = sys.stdlib_module_names - {"__main__", "this", "antigravity", "idlelib", "test"}

# What calls functions that were handed over, to a pool or a thread: what those read they read for whoever did that.
_CALLING = frozenset({"anyio._backends._trio", "playhead.capture.lanes", "trio._threads"})

# Files of loops other than that of asyncio: what stands between those who use them and what they call in a thread.
_FILES = frozenset({"anyio._core._fileio", "trio._file_io", "trio._path"})

# Whoever logs, the agent's handlers write it, with the time: that is told for the module that logs.
_LOGGING = "logging"

# What stands in place of `open` in a replay, and may call code of the program's: its opener.
_OPENS = "playhead.replay.overlay.passing"
# What stands in front of functions of `os` of which Python does not tell all.
_UNTOLD = "playhead.capture.untold"
_BETWEEN = frozenset({_OPENS, _UNTOLD, "playhead.capture.hooks_python"})

# What stands between those who log and their handlers, which may be the program's.
_WRITES = "playhead.capture.writing"

known: dict[str, int] = {}  # what was found out about modules so far
_sources: dict[tuple[str, str], str] = {}


class Caller(NamedTuple):
    """Who called."""

    module: str
    function: str  # of the standard library, that the module called and that called on: `uuid.uuid4`; empty for none
    line: int


def sort_of(module: str) -> int:
    """Say what a module is: the agent's or a library's it uses, one that passes a question on, or something else."""
    sort = known.get(module)
    if sort is None:
        top = module.partition(".")[0]
        if module in _CALLING:
            sort = CALLS
        elif module in _FILES:
            sort = PASSES
        elif top == "playhead":
            passes = module in (_OPENS, _UNTOLD, _WRITES)
            sort = AGENT if module.startswith("playhead.testing") else PASSES if passes else OURS
        elif top in _BELOW:
            sort = INFRASTRUCTURE
        else:
            # What else comes with Python acts for whoever calls it.
            sort = PASSES if top in _OF_PYTHON else AGENT
        known[module] = sort
    return sort


def caller(frame: FrameType | None) -> Caller | None:
    """Return for whom the code of a frame acts; None where it is for nobody whose actions are recorded."""
    passed: FrameType | None = None
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module in _BETWEEN:
            frame = frame.f_back
            continue
        sort = sort_of(module) if isinstance(module, str) else AGENT
        if sort == INFRASTRUCTURE and passed is not None and passed.f_globals.get("__name__") == _LOGGING:
            sort = AGENT
        if sort in (AGENT, CALLS):
            return Caller(module if isinstance(module, str) else "?", _name(passed), frame.f_lineno)
        if sort != PASSES:
            return None
        passed, frame = frame, frame.f_back
    return None


def reader(frame: FrameType | None, of: str) -> tuple[str, str] | None:
    """Return the name of a source that a frame reads from, and the module that it reads for; None where for nobody.

    The name begins with the function of the standard library that was called, if one was: `uuid.uuid4:os.urandom`.
    """
    found = caller(frame)
    if found is None:
        return None
    if not found.function:
        return of, found.module
    name = _sources.get((found.function, of))
    if name is None:
        name = _sources[found.function, of] = f"{found.function}:{of}"
    return name, found.module


def _name(frame: FrameType | None) -> str:
    return "" if frame is None else f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
