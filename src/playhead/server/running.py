"""Run the server: bind the address, say where it is, and end in order when it is told to."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from playhead import _limits
from playhead._api.collecting import collect_seldom
from playhead.errors import StoreError, UsageError
from playhead.server.access import Access, is_loopback, loopback_names
from playhead.server.application import Application
from playhead.server.caring import Caretaker
from playhead.server.hands import start_hands
from playhead.server.minding import start_minder
from playhead.server.projects import DEFAULT, Projects
from playhead.store import layout

logger = logging.getLogger("playhead.server")


def serve(
    root: Path,
    *,
    host: str,
    port: int,
    rate_per_s: float,
    names: tuple[str, ...] = (),
    quiet_s: float = _limits.RUN_QUIET_S,
    lease_s: float = _limits.JOB_LEASE_S,
    writers: int = 1,
    ready: Callable[[str, bool], None] = lambda address, keys: None,
) -> None:
    """Serve a store until somebody says stop. `ready` is told the address once it answers, and if there are keys."""
    with serving_alone(root):
        _allow_many_files()
        minder = start_minder()  # first, as there are no threads yet, and little in memory
        hands = start_hands(writers - 1, quiet_s, minder.descriptors if minder is not None else ())
        import uvicorn

        from playhead.server.announcing import Announcing
        from playhead.server.heads import Bounded

        projects = Projects(root, quiet_s=quiet_s, minder=minder, hands=hands)
        keyed = Access(projects, hosts=None, rate_per_s=rate_per_s).demanded()
        if not keyed and not is_loopback(host):
            raise UsageError(
                f"without keys the server would be open to everybody who reaches {host}",
                hint="Make a key first: `playhead keys create`. Without --host only this machine is answered.",
            )
        hosts = frozenset({*loopback_names(host), *names})
        access = Access(projects, hosts=hosts, rate_per_s=rate_per_s)
        projects.get(DEFAULT)
        application = Application(projects, access, Caretaker(projects, lease_s=lease_s))
        listening = _listen(host, port)
        address = _address(listening, host)
        config = uvicorn.Config(
            application, log_config=None, access_log=False, lifespan="on", ws="none", server_header=False,
            timeout_graceful_shutdown=int(_limits.SHUTDOWN_S), timeout_keep_alive=75, date_header=False,
            http=Bounded,
        )  # fmt: skip
        collect_seldom()
        signal.signal(signal.SIGTERM, _stop)  # uvicorn ends in order first, and then does what was to be done
        Announcing(config, lambda: ready(address, keyed)).run(sockets=[listening])


def _stop(number: int, frame: object) -> None:
    """End as one that was told to, and not as one that was killed."""
    raise SystemExit(0)


@contextlib.contextmanager
def serving_alone(root: Path) -> Iterator[None]:
    """Keep a second server away from the same store: two would not know of each other what they write."""
    from playhead.store.files import FileStore

    FileStore(root).make_root()
    descriptor = os.open(layout.serving(root), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform != "win32":
            try:
                _lock(descriptor)
            except BlockingIOError:
                told = os.pread(descriptor, 200, 0).decode("ascii", "replace").strip()
                raise StoreError(
                    f"{root} is being served already, by process {told or 'unknown'}",
                    hint="Stop that one, or serve another store: `--store DIR`.",
                ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Take the lock; of a server that was killed, processes that write runs may have to end what is in their hands."""
    import fcntl

    deadline = time.monotonic() + _limits.SERVE_LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_limits.CARE_PAUSE_S / 10)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as problem:
        hint = "Another program has it; `--port 0` takes one that is free." if "in use" in str(problem) else ""
        raise UsageError(f"cannot listen at {host}:{port}: {problem.strerror or problem}", hint=hint) from None
    listening.set_inheritable(False)
    return listening


def _address(listening: socket.socket, host: str) -> str:
    port = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def _allow_many_files() -> None:
    """Raise how many files may be open as far as it may be raised: each run that is open takes two."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
