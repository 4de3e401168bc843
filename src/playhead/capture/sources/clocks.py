"""Clocks, dates, random numbers and identifiers: functions that tell something else each time."""

from __future__ import annotations

import os
import time
from types import ModuleType
from typing import Any

from playhead.capture import hooks
from playhead.capture.hooks import What

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
_generators: list[Any] = []  # those of `random` itself, whose numbers are kept; of any other its seed


def _clocks() -> None:
    for name in _CLOCKS:
        _watch(time, name, What.SECONDS)
        _watch(time, f"{name}_ns", What.NANOSECONDS)
    hooks.watch(time.sleep, "time.sleep", What.CALL, None, _slept)
    for name in ("localtime", "gmtime", "ctime", "asctime", "strftime"):
        _watch(time, name, What.CLOCK_WHEN_MISSING)


def _slept(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    """Keep when a sleep was over: a replay sleeps in no time, and in this order."""
    pack.add(of, by, time.time_ns() // 1000, 18, span)


def _system() -> None:
    _watch(os, "urandom", What.RAW)
    _watch(os, "getrandom", What.RAW)
    _watch(os, "getpid", What.NUMBER)
    _watch(os, "getppid", What.NUMBER)


def _dates(module: ModuleType) -> None:
    hooks.know_dates()
    for of_type, name in ((module.datetime, "now"), (module.datetime, "utcnow"), (module.date, "today")):
        hooks.watch(of_type.__dict__[name], f"datetime.{of_type.__name__}.{name}", What.MOMENT)


def _random(module: ModuleType) -> None:
    generator: Any = module._inst
    kind = next(kind for kind in type(generator).__mro__ if kind.__module__ == "_random")
    _generators.append(generator)  # a module that is loaded again has another one, and some keep the functions of both
    hooks.watch(kind.__dict__["random"], "random.random", What.UNIT, _generators)
    hooks.watch(kind.__dict__["getrandbits"], "random.getrandbits", What.BITS, _generators)
    hooks.watch(kind.__dict__["seed"], "random.seed", What.SEED)


def _uuid(module: ModuleType) -> None:
    _watch(module, "generate_time_safe", What.FIRST_RAW, "uuid.uuid1")


def _uuid_utils(module: ModuleType) -> None:
    for name in ("uuid1", "uuid4", "uuid6", "uuid7"):
        _watch(module, name, What.UUID, f"uuid_utils.{name}")
        _watch(module, f"_{name}_int", What.BITS, f"uuid_utils.{name}_int")  # what `uuid_utils.compat` is made of


def _watch(module: Any, name: str, what: What, of: str | None = None) -> None:
    function = getattr(module, name, None)
    if function is not None:
        hooks.watch(function, of or f"{module.__name__}.{name}", what)


def watch() -> None:
    """Watch those that are always there."""
    _generators.clear()
    _clocks()
    _system()


ARRIVING = {"datetime": _dates, "random": _random, "_uuid": _uuid, "uuid_utils._uuid_utils": _uuid_utils}
