"""Keep the indexes current in a process of its own, so that reading lines into SQLite keeps no span waiting.

The server tells it through a pipe which runs it has written to, and how long their timelines are. It ends when the pipe
does. Nothing depends on it: whoever asks an index brings it up to date first, whatever was read so far.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import orjson

from playhead import _limits
from playhead._api.collecting import collect_seldom
from playhead._api.stores import open_own_index
from playhead.errors import PlayheadError
from playhead.store import layout, presence
from playhead.store.files import FileStore
from playhead.store.search import TextIndex

logger = logging.getLogger("playhead.server")

_NICE = 10  # whoever waits for an answer comes first


class Minder:
    """Tell that process what is new."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self._pipe: int | None = pipe

    @property
    def descriptors(self) -> list[int]:
        """Return what it has open, which nobody else is to keep open."""
        return [] if self._pipe is None else [self._pipe]

    @property
    def minds(self) -> bool:
        """Say whether there is such a process."""
        return self._pipe is not None

    def tell(self, root: Path, sizes: Mapping[str, int | None]) -> bool:
        """Say how long timelines are, None for those that nobody holds any more; False where nobody hears it."""
        if self._pipe is None:
            return False
        message = orjson.dumps([os.fspath(root), dict(sizes)]) + b"\n"
        try:
            while message:
                message = message[os.write(self._pipe, message) :]
        except OSError:
            logger.error("the process that keeps the indexes current is gone: the server does it itself")
            self.close()
            return False
        return True

    def close(self) -> None:
        """End it, when what is in hand is done."""
        pipe, self._pipe = self._pipe, None
        if pipe is None:
            return
        os.close(pipe)
        deadline = time.monotonic() + _limits.SHUTDOWN_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return
            time.sleep(_limits.CARE_PAUSE_S)


def start_minder() -> Minder | None:
    """Start the process; None where there is no fork. Call it before there are threads, or files that are open."""
    if sys.platform == "win32":
        return None
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ours)
        return Minder(pid, theirs)
    try:
        os.closerange(3, ours)
        os.closerange(ours + 1, max(theirs, ours) + 1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it ends with the server, and not before
        collect_seldom()
        os.nice(_NICE)
        _Minding(ours).mind()
    except BaseException:
        logger.exception("the process that keeps the indexes current")
    finally:
        os._exit(0)


class _Minding:
    """Read what is new into the indexes of all projects that one hears of."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._stirred = threading.Event()
        self._is_over = False
        self._told: set[Path] = set()  # projects with something new
        self._known: dict[Path, _Project] = {}

    def mind(self) -> None:
        """Go on until the pipe ends."""
        threading.Thread(target=self._listen, name="playhead-minder", daemon=True).start()
        while not self._is_over:
            self._stirred.wait(_limits.SEARCH_QUIET_S if any(one.unread for one in self._known.values()) else None)
            self._stirred.clear()
            time.sleep(_limits.MINDER_PAUSE_S)
            while self._told:
                root = self._told.pop()
                if root not in self._known:
                    self._known[root] = _Project(root)
                self._known[root].has_news()
            for one in self._known.values():
                try:
                    one.read_rows()
                    if one.root not in self._told:  # else what is new comes first
                        one.read_words()
                except (PlayheadError, OSError) as problem:
                    logger.error("the index of %s: %s", one.root, problem)
        for one in self._known.values():
            one.close()

    def _listen(self) -> None:
        with os.fdopen(self._pipe, "rb") as pipe:
            for line in pipe:
                named, sizes = orjson.loads(line)
                root = Path(named)
                for run, size in sizes.items():
                    _vouch(layout.run_dir(root, run), size)
                self._told.add(root)
                self._stirred.set()
        self._is_over = True
        self._stirred.set()


class _Project:
    """Keep the indexes of one project current."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unread = False  # there is something that cannot be found by its words yet
        self._index = open_own_index(FileStore(root))
        self._texts = TextIndex(root)
        self._is_new = False
        self._heard_s = self._searched_s = time.monotonic()

    def has_news(self) -> None:
        """Note that something was written."""
        self._is_new = True
        self._heard_s = time.monotonic()

    def read_rows(self) -> None:
        """Read what is new into the index."""
        if self._is_new:
            self.unread = True
            self._index.catch_up()
            self._is_new = False

    def read_words(self) -> None:
        """Read words, when nothing more comes or it has been long."""
        now_s = time.monotonic()
        is_quiet = now_s - self._heard_s > _limits.SEARCH_QUIET_S
        if self.unread and (is_quiet or now_s - self._searched_s > _limits.SEARCH_LATE_S):
            self.unread = not self._texts.catch_up(_limits.SEARCH_AT_ONCE_S)
            self._searched_s = time.monotonic()

    def close(self) -> None:
        """Close both files."""
        self._index.close()
        self._texts.close()


def _vouch(run_dir: Path, size: int | None) -> None:
    """Take the server's word for how long a timeline is that it holds."""
    if size is None:
        presence.let_go(run_dir)
    else:
        presence.vouch(run_dir, lambda: size)
