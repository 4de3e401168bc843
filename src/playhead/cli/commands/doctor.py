"""Check the store and this installation, and say what to do about what is wrong."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from playhead import _limits, settings
from playhead._clock import SystemClock
from playhead._version import __version__
from playhead.capture.opening import shared_redactor
from playhead.cli.arguments import store_root
from playhead.cli.output import Output
from playhead.cli.quick_index import open_own_quick_index
from playhead.errors import PlayheadError
from playhead.store import layout
from playhead.store.files import FileStore
from playhead.views import text

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
_SUPPORTED = ((3, 11), (3, 14))
_SKEW_S = 5.0  # between the clock and the time that the file system gives a new file
_OLDEST_S = 1_735_689_600  # 2025: before Playhead was written


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Literal["ok", "warn", "fail"]
    message: str
    hint: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "Exit code: 0 nothing fails, 1 something does.\n\nexample:\n  playhead doctor --store /srv/agents/.playhead"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    found = list(examine(args.store))
    if out.json:
        out.emit([asdict(check) for check in found])
    else:
        for check in found:
            out.wrapped([(f"{check.status:<5}", _STYLES[check.status]), f"{check.name:<12} "], check.message)
            if check.hint and check.status != "ok":
                out.wrapped([" " * 18], check.hint)
    return 1 if any(check.status == "fail" for check in found) else 0


def examine(named: str | None) -> Iterator[Check]:
    """Look at everything, one thing after the other; what cannot be looked at is itself a finding."""
    yield _python()
    yield _versions()
    yield _settings()
    yield _switch()
    yield _git()
    try:
        root = store_root(named)
    except PlayheadError as problem:
        yield Check("store", "fail", f"cannot tell where it is: {problem.message}", problem.hint)
        return
    looks: list[Callable[[Path], Iterator[Check]]] = [_space, _clock]
    if root.is_dir():
        looks = [_store, _space, _writable, _index, _runs, _clock]
    elif root.exists():
        yield Check("store", "fail", f"{root} is not a folder", "Move it away, or name another store.")
        looks = []
    else:
        yield _to_be_made(root)
    for look in looks:
        try:
            yield from look(root)
        except (PlayheadError, OSError) as problem:
            told = (problem.message, problem.hint) if isinstance(problem, PlayheadError) else (str(problem), "")
            yield Check(look.__name__.strip("_"), "fail", *told)


def _python() -> Check:
    version = sys.version.split()[0]
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return Check("python", "fail", f"{version}, a free-threaded build", "Use a build with the GIL: 3.11 to 3.14.")
    if not _SUPPORTED[0] <= sys.version_info[:2] <= _SUPPORTED[1]:
        return Check("python", "warn", f"{version} was not tested", "3.11 to 3.14 are.")
    return Check("python", "ok", version)


def _versions() -> Check:
    try:
        import msgspec
        import orjson
    except ImportError as problem:
        return Check("packages", "fail", f"{problem}", "Install again: `pip install --force-reinstall playhead`.")
    return Check(
        "packages", "ok", f"playhead {__version__}, msgspec {msgspec.__version__}, orjson {orjson.__version__}"
    )


def _settings() -> Check:
    try:
        loaded = settings.load()
        shared_redactor(loaded)  # it knows what is wrong with a rule
    except PlayheadError as problem:
        return Check("settings", "fail", problem.message, problem.hint)
    changed = [name for name, value in asdict(loaded).items() if value != getattr(settings.Settings(), name)]
    return Check("settings", "ok", f"set: {', '.join(changed)}" if changed else "all as shipped")


def _switch() -> Check:
    if os.environ.get("PLAYHEAD_DISABLED", "").strip().lower() in ("", "0", "false", "no", "off"):
        return Check("recording", "ok", "on")
    return Check("recording", "warn", "PLAYHEAD_DISABLED is set: nothing is recorded", "Unset it to record.")


def _git() -> Check:
    found = shutil.which("git")
    if found is None:
        return Check("git", "warn", "not found: runs do not know their commit", "Install git, or set `git = false`.")
    return Check("git", "ok", found)


def _to_be_made(root: Path) -> Check:
    parent = _existing(root)
    if not os.access(parent, os.W_OK | os.X_OK):
        return Check("store", "fail", f"{root} is not there and cannot be made", f"{parent} is not writable for you.")
    return Check("store", "ok", f"{root} is not there yet; the first run makes it")


def _store(root: Path) -> Iterator[Check]:
    if not layout.is_store(root):
        yield Check(
            "store", "warn", f"{root} holds no runs", "Is it the right folder? The first run makes what is missing."
        )
    version = FileStore(root).version()
    if version > layout.STORE_VERSION:
        newer = f"has format {version}, this Playhead writes {layout.STORE_VERSION}"
        yield Check(
            "store", "fail", f"{root} {newer}", "Upgrade with `pip install -U playhead`; reading works meanwhile."
        )
    else:
        yield Check("store", "ok", f"{root}, format {version}")
    mode = root.stat().st_mode & 0o777
    if sys.platform == "win32":
        pass  # its modes say nothing
    elif mode & 0o077:
        yield Check("permissions", "warn", f"{mode:04o}: others on this machine can get in", f"chmod 700 {root}")
    else:
        yield Check("permissions", "ok", f"{mode:04o}")
    if not (root / ".gitignore").is_file():
        yield Check(
            "gitignore", "warn", "the store could be committed by accident", f"echo '*' > {root / '.gitignore'}"
        )


def _space(root: Path) -> Iterator[Check]:
    free = shutil.disk_usage(_existing(root)).free
    told = f"{text.size(free)} free"
    if free < _limits.DISK_FREE_BYTES_FAIL:
        yield Check("disk", "fail", f"only {told}", "Free some space, or `playhead prune --older-than 30d`.")
    elif free < _limits.DISK_FREE_BYTES_WARN:
        yield Check("disk", "warn", f"only {told}", "`playhead prune --older-than 30d` frees some.")
    else:
        yield Check("disk", "ok", told)


def _writable(root: Path) -> Iterator[Check]:
    """Write, sync, lock and remove a real file: what a recording does."""
    if sys.platform == "win32":
        yield Check("writable", "warn", "runs are read on Windows, not written", "Record on Linux, on macOS or in WSL.")
        return
    import fcntl

    probe = root / f".doctor-{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        yield Check("writable", "fail", f"cannot write to {root}: {problem.strerror}", _write_hint(root))
        return
    try:
        os.write(descriptor, b"playhead doctor\n")
        os.fsync(descriptor)
        yield Check("writable", "ok", "wrote a file and brought it to the disk")
        yield _lock(probe, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        yield Check("writable", "fail", f"cannot write to {root}: {problem.strerror}", _write_hint(root))
    finally:
        os.close(descriptor)
        probe.unlink()


def _lock(probe: Path, descriptor: int, operation: int) -> Check:
    """Take a lock twice: where the second one succeeds, locks do not lock here."""
    import fcntl

    hint = "Put the store on a local disk (PLAYHEAD_DIR): several processes on one run need locks."
    try:
        fcntl.flock(descriptor, operation)
    except OSError as problem:
        return Check("locks", "fail", f"this file system does not lock: {problem.strerror}", hint)
    second = os.open(probe, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(second, operation)
    except BlockingIOError:
        return Check("locks", "ok", "a second writer waits")
    finally:
        os.close(second)
    return Check("locks", "fail", "this file system grants one lock twice", hint)


def _index(root: Path) -> Iterator[Check]:
    directories = sum(1 for _ in FileStore(root).runs())
    began = time.monotonic()
    with _heard() as told_by_index, open_own_quick_index(root) as index:
        index.catch_up()
        columns = index.query("SELECT count(*), coalesce(sum(bad_lines), 0) FROM runs")[1][0]
    count, bad = int(columns[0]), int(columns[1])
    told = f"{text.several(count, 'run')}, up to date in {text.duration((time.monotonic() - began) * 1_000_000)}"
    if told_by_index:
        yield Check(
            "index", "warn", f"{'; '.join(told_by_index)}", "Ask again: it mends itself where it can be written."
        )
    elif bad:
        yield Check(
            "index", "warn", f"{told}; {text.several(bad, 'line')} could not be read", "`playhead verify --all`"
        )
    elif count < directories:
        yield Check(
            "index", "warn", f"{told}, but {directories} run directories", "`playhead reindex` looks at all of them."
        )
    else:
        yield Check("index", "ok", told)


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect what Playhead's logger says meanwhile; the index tells it when it was damaged or cannot be written."""
    told: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("playhead")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield told
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _runs(root: Path) -> Iterator[Check]:
    since_us = SystemClock().wall_us() - _limits.DOCTOR_RECENT_S * 1_000_000
    with open_own_quick_index(root) as index:
        recent = index.list_runs(limit=-1, since_us=since_us)
        newest = index.list_runs(limit=1)
    crashed = [run["id"] for run in recent if run["status"] == "crashed"]
    gaps = [run["id"] for run in recent if run["gaps"]]
    if crashed:
        told = f"{text.several(len(crashed), 'run')} of the last week did not finish: {_few(crashed)}"
        yield Check("crashes", "warn", told, f"`playhead show {crashed[0]}` says what was in flight.")
    if gaps:
        told = f"{text.several(len(gaps), 'run')} of the last week lost events: {_few(gaps)}"
        yield Check("losses", "warn", told, f"`playhead verify {gaps[0]}` says how many, and why.")
    if not crashed and not gaps:
        yield Check("runs", "ok", "none of the last week crashed or lost events")
    if newest and (newest[0]["started_us"] or 0) > SystemClock().wall_us() + 60_000_000:
        yield Check(
            "future", "warn", f"{newest[0]['id']} lies in the future", "The clock was set back; `@last` means that run."
        )


def _clock(root: Path) -> Iterator[Check]:
    now = time.time()
    if now < _OLDEST_S:
        yield Check(
            "clock",
            "fail",
            f"it says {time.strftime('%Y-%m-%d', time.gmtime(now))}",
            "Set the clock: ids sort by time.",
        )
        return
    import tempfile

    with tempfile.TemporaryFile(dir=root if os.access(root, os.W_OK) else None) as probe:
        probe.write(b"now")
        probe.flush()
        skew = os.fstat(probe.fileno()).st_mtime - time.time()
    if abs(skew) > _SKEW_S:
        yield Check("clock", "warn", f"{abs(skew):.0f} s away from that of the file system", "Synchronise both.")
    else:
        yield Check("clock", "ok", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)))


def _existing(path: Path) -> Path:
    """Return the path, or its nearest parent that is there."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _write_hint(root: Path) -> str:
    return (
        f"Make {root} writable for you, or name another store with PLAYHEAD_DIR. Agents run on meanwhile, unrecorded."
    )


def _few(ids: list[str]) -> str:
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
