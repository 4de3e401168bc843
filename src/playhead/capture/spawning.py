"""Tell for whom concurrent work begins: by the modules on the stack, which two runs have in common."""

from __future__ import annotations

from types import FrameType

from playhead.capture import callers

# The agent's own work has a number among its children. What a library starts for its own purposes has none: in the
# agent's name it goes on in the agent's lane, else, and where workers start, in a lane that is counted aside.
OWN, SAME, ASIDE = range(3)

# Work goes through these on its way to where it runs, and they begin it for whoever calls them.
_TRACERS = frozenset({"langsmith", "logfire", "opentelemetry", "sentry_sdk"})  # they stand around the agent's own calls
_THROUGH = _TRACERS | {
    *("anyio", "asyncio", "concurrent", "multiprocessing", "outcome", "sniffio", "threading", "trio", "uvloop"),
}
_LOGS = frozenset({"logging", "loguru", "structlog"})
# Parts of asyncio that begin tasks by themselves: one for each address that is tried.
_BY_CHANCE = frozenset({"asyncio.staggered", "asyncio.streams"})
# What begins a task for each connection from outside.
_SERVERS = {
    "anyio.abc._sockets": "serve",
    "asyncio.selector_events": "_accept_connection",
    "asyncio.streams": "connection_made",
}
# Where an event loop calls what was due: whoever runs the loop did not ask for it. That of uvloop has no frame.
_LOOPS = {"asyncio.events": "_run", "asyncio.runners": "run", "trio._core._run": "unrolled_run", "uvloop": "run"}
# Whoever starts a thread or a process calls the one that does it, or something that only stands for it.
_STARTING = frozenset({"threading", "multiprocessing.dummy", "multiprocessing.context", "multiprocessing.process"})


def asked(frame: FrameType | None) -> int:
    """Say whose a task is that is created here, or work that is handed to a pool."""
    below = False
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return ASIDE  # the collector strikes anywhere
        module = _module(frame)
        if module in _LOOPS and frame.f_code.co_name == _LOOPS[module]:
            break
        if module in _SERVERS and frame.f_code.co_name == _SERVERS[module]:
            return ASIDE
        sort = _sort_of(module)
        if sort == callers.AGENT:
            return SAME if below else OWN
        if sort == callers.INFRASTRUCTURE and (module in _BY_CHANCE or module.partition(".")[0] not in _THROUGH):
            below = True
        frame = frame.f_back
    return ASIDE if below else OWN


def started(frame: FrameType | None) -> int:
    """Say whose a thread or process is that is started here; a pool or a server starts its own when chance has it."""
    while frame is not None:
        module = _module(frame)
        if module not in _STARTING and module.partition(".")[0] not in _TRACERS:
            sort = _sort_of(module)
            if sort == callers.AGENT:
                return OWN
            if sort == callers.INFRASTRUCTURE:
                return ASIDE
        frame = frame.f_back
    return ASIDE


def serves(frame: FrameType | None) -> int:
    """Say how connections are counted that a server will get from outside: apart from what the agent begins itself."""
    return ASIDE


def agents_line(frame: FrameType | None) -> str:
    """Return module and line of the agent's that called."""
    while frame is not None:
        module = _module(frame)
        if callers.sort_of(module) == callers.AGENT:
            return f"{module}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def _sort_of(module: str) -> int:
    """Say what a module is where work begins: what writes logs tells the time of its caller, and works for itself."""
    return callers.INFRASTRUCTURE if module.partition(".")[0] in _LOGS else callers.sort_of(module)


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else "?"
