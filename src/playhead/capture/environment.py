"""Find out what a run was executed with, and how to start it again."""

from __future__ import annotations

import functools
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

_METADATA_SUFFIXES = (".dist-info", ".egg-info")
hash_seed: str | None = None  # that of the program, where it is not in the environment any more
_SEPARATORS = re.compile(r"[-_.]+")


def facts() -> dict[str, Any]:
    """Describe the interpreter and everything that is installed for it."""
    return {
        "python": {
            "version": sys.version.split()[0],
            "implementation": sys.implementation.name,
            "executable": sys.executable,
        },
        "platform": _platform(),
        "packages": packages(),
        "hash_seed": hash_seed or os.environ.get("PYTHONHASHSEED"),
        "locale": _locale(),
        "timezone": {"names": list(time.tzname), "offset_s": -time.timezone, "zone": _zone()},
    }


def _zone() -> str | None:
    """Return the name of the time zone: that of the variable, or of the file that the system links to."""
    if (told := os.environ.get("TZ")) is not None:
        return told
    try:
        return os.readlink("/etc/localtime").partition("zoneinfo/")[2] or None
    except OSError:
        return None


def _locale() -> str | None:
    try:
        import _locale as c_locale  # what `locale` is made of, without importing that
    except ImportError:
        return None
    told: str = c_locale.setlocale(c_locale.LC_ALL)
    return told


def packages() -> dict[str, str]:
    """Return name and version of every installed package, by the names of the metadata folders on sys.path.

    Names are normalised (`typing-extensions`). Where a package is installed twice, the one that is imported counts.
    """
    cwd = working_folder()
    # A relative entry means another folder after chdir, so the cache goes by what it means now.
    usable = (entry for entry in sys.path if isinstance(entry, str) and (cwd or os.path.isabs(entry)))
    return dict(_packages_of(tuple(os.path.join(cwd or os.sep, entry) for entry in usable)))


def entrypoint(function: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Say how this process was started and, for a function, where to find it again.

    A function of the main program has module `__main__` and its file; when the program was started with `python -m`,
    `spec` is the name that imports it.
    """
    found: dict[str, Any] = {"argv": list(sys.orig_argv), "cwd": working_folder(), "executable": sys.executable}
    return found if function is None else found | place_of(function)


def place_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Say where to find a function again."""
    found: dict[str, Any] = {}
    inner = _innermost(function)
    module_name = getattr(inner, "__module__", None)
    module = sys.modules.get(module_name) if module_name else None
    found["module"] = module_name
    found["qualname"] = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    found["file"] = _file(inner, module)
    if module_name == "__main__":
        spec = getattr(module, "__spec__", None)
        if spec is not None:
            found["spec"] = spec.name
    return found


def _platform() -> dict[str, str]:
    if sys.platform == "win32":
        import platform

        system = platform.uname()
        return {"system": system.system, "release": system.release, "machine": system.machine}
    uname = os.uname()  # the same answer without importing `platform`
    return {"system": uname.sysname, "release": uname.release, "machine": uname.machine}


@functools.lru_cache(maxsize=8)
def _packages_of(path: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in path:
        for entry in _names(folder):
            if entry.endswith(_METADATA_SUFFIXES):
                name, version = _name_and_version(folder, entry)
                found.setdefault(_SEPARATORS.sub("-", name).lower(), version)
    return dict(sorted(found.items()))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []  # sys.path may name archives and folders that do not exist; the import system skips them as well


def _name_and_version(folder: str, entry: str) -> tuple[str, str]:
    """Split `name-version.dist-info` and `name-version-py3.11.egg-info`; a development install names no version."""
    stem, kind = os.path.splitext(entry)
    name, _, rest = stem.partition("-")
    version = rest.partition("-")[0] if kind == ".egg-info" else rest
    return name, version or _declared_version(os.path.join(folder, entry))


def _declared_version(metadata: str) -> str:
    for path in (os.path.join(metadata, "PKG-INFO"), os.path.join(metadata, "METADATA"), metadata):
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if line.startswith("Version:"):
                        return line.partition(":")[2].strip()
                    if not line.strip():
                        break
    return ""


def working_folder() -> str | None:
    """Return the folder that this process is in; None where it was deleted under it, which is legal."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def _innermost(function: Any) -> Any:
    """Look through partials, bound methods and decorators that keep `__wrapped__`."""
    seen: set[int] = set()
    while id(function) not in seen:
        seen.add(id(function))
        for attribute in ("__wrapped__", "__func__"):
            inner = getattr(function, attribute, None)
            if callable(inner):
                function = inner
                break
        else:
            if isinstance(function, functools.partial):
                function = function.func
    return function


def _file(function: Any, module: Any) -> str | None:
    code = getattr(function, "__code__", None)
    for candidate in (getattr(module, "__file__", None), getattr(code, "co_filename", None)):
        if isinstance(candidate, str) and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    return None
