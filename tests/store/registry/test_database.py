from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.store.children import command, environment

from playhead.errors import KeyRefused, StoreError, StoreTooNew
from playhead.store import layout
from playhead.store.registry.cassettes import Shelf
from playhead.store.registry.database import Registry
from playhead.store.registry.jobs import Jobs
from playhead.store.registry.keys import Keys
from playhead.store.registry.sessions import Sessions

CREATE = """
import sys
from pathlib import Path
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import Keys
sys.stdin.readline()
for _ in range(5):
    Keys(Registry(Path(sys.argv[1]))).create("default", ["read"])
"""

TELLING = """
import sys
from pathlib import Path
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import Keys
keys = Keys(Registry(Path(sys.argv[1])))
while True:
    print(keys.create("default", ["read"]).token, flush=True)
"""


def test_asking_leaves_nothing_behind(root: Path, registry: Registry) -> None:
    keys, jobs, shelf = Keys(registry), Jobs(registry), Shelf(registry, "default")
    assert (keys.list(), keys.any()) == ([], False)
    assert (jobs.list("default"), shelf.list()) == (([], None), ([], None))
    assert (jobs.claim("w", 10), jobs.expire(), Sessions(registry).find("x")) == (None, 0, None)
    Sessions(registry).end("x")
    with pytest.raises(KeyRefused):
        keys.authenticate("ph_a_b")
    assert not root.exists()


def test_what_is_kept_is_only_for_its_owner_and_makes_a_whole_store(root: Path, registry: Registry) -> None:
    Keys(registry).create("default", ["read"])
    assert layout.is_store(root)
    assert (root / ".gitignore").read_text() == "*\n"
    for path in root.glob("server.db*"):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert not list(root.glob(".server.db*"))


def test_every_commit_waits_for_the_disk(registry: Registry) -> None:
    with registry.writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA page_size").fetchone() == (16384,)
    registry.noting("SELECT 1", ())
    with registry.reading() as again:
        assert again is not None
        assert again.execute("PRAGMA synchronous").fetchone() == (2,)
        assert again.execute("PRAGMA busy_timeout").fetchone()[0] > 1000


def test_processes_that_start_at_once_share_one_file(root: Path) -> None:
    running = [
        subprocess.Popen(command(CREATE, root), env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * 4
    assert len(Keys(Registry(root)).list()) == 20


def test_threads_share_one_registry(registry: Registry) -> None:
    keys = Keys(registry)
    with ThreadPoolExecutor(8) as pool:
        tokens = [created.token for created in pool.map(lambda _: keys.create("default", ["read"]), range(40))]
        found = list(pool.map(lambda token: keys.authenticate(token).id, tokens))
    assert len(set(found)) == len(keys.list()) == 40


def test_a_writer_does_not_keep_readers_waiting(registry: Registry) -> None:
    keys = Keys(registry)
    token = keys.create("default", ["read"]).token
    with registry.writing():
        answered: list[str] = []
        thread = threading.Thread(target=lambda: answered.append(keys.authenticate(token).project))
        thread.start()
        thread.join(5)
        assert answered == ["default"]


def test_a_newer_schema_is_refused(root: Path, registry: Registry) -> None:
    Keys(registry).create("default", ["read"])
    registry.close()
    with sqlite3.connect(layout.registry(root)) as connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_more', 'then')")
    connection.close()
    with pytest.raises(StoreTooNew, match="9999_more"):
        Keys(Registry(root)).any()
    with pytest.raises(StoreTooNew):
        Keys(Registry(root)).create("default", ["read"])


@pytest.mark.parametrize("damage", ["nothing", "overwritten", "another", "table gone"])
def test_a_damaged_file_is_told_and_never_replaced(root: Path, registry: Registry, damage: str) -> None:
    Keys(registry).create("default", ["read"])
    registry.close()
    path = layout.registry(root)
    if damage in ("another", "table gone"):
        if damage == "another":
            path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE notes (a)" if damage == "another" else "DROP TABLE jobs")
        connection.close()
    else:
        path.write_bytes(b"" if damage == "nothing" else b"SQLite format 3\0" + b"x" * 40_000)
    before = path.read_bytes()
    for act in (lambda keys: keys.any(), lambda keys: keys.create("default", ["read"]), lambda keys: keys.list()):
        with pytest.raises(StoreError, match=r"server\.db is damaged"):
            act(Keys(Registry(root)))
    assert path.read_bytes() == before


@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_goes_away_under_its_user_does_not_open_the_door(
    root: Path, registry: Registry, gone: bool
) -> None:
    keys = Keys(registry)
    keys.create("default", ["read"])
    path = layout.registry(root)
    path.rename(path.with_suffix(".aside"))
    if not gone:
        Keys(Registry(root)).create("default", ["admin"])
    for act in (keys.any, keys.list, lambda: keys.create("default", ["read"]), lambda: keys.authenticate("ph_a_b")):
        with pytest.raises(StoreError, match="removed or replaced"):
            act()


def test_a_file_half_made_by_somebody_who_was_killed_is_none(root: Path, registry: Registry) -> None:
    root.mkdir()
    (root / ".server.db.abcd").write_bytes(b"half")
    assert not Keys(registry).any()
    Keys(registry).create("default", ["read"])
    assert not list(root.glob(".server.db*"))


def test_whoever_is_kept_waiting_too_long_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, registry: Registry
) -> None:
    Keys(registry).create("default", ["read"])
    monkeypatch.setattr("playhead._limits.REGISTRY_WAIT_S", 0.05)
    with registry.writing(), pytest.raises(StoreError, match="another process has been writing") as caught:
        Keys(Registry(root)).create("default", ["read"])
    assert caught.value.hint == "Try again when it is done."


def test_a_fork_opens_its_own(registry: Registry) -> None:
    keys = Keys(registry)
    keys.create("default", ["read"])
    child = os.fork()
    if child == 0:
        try:
            keys.create("default", ["read"])
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    keys.create("default", ["read"])
    assert len(keys.list()) == 3


def test_what_was_told_survives_a_kill_at_any_moment(root: Path) -> None:
    told: list[str] = []
    for number in range(5):
        with subprocess.Popen(command(TELLING, root), env=environment(), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            told += [process.stdout.readline().decode().strip() for _ in range(1 + 7 * number)]
            os.kill(process.pid, signal.SIGKILL)
    keys = Keys(Registry(root))
    assert [keys.authenticate(token).project for token in told] == ["default"] * len(told)


def test_the_log_of_a_large_write_does_not_stay_large(root: Path, registry: Registry) -> None:
    with registry.writing() as connection:
        for number in range(40):
            connection.execute("INSERT INTO cassette_parts VALUES ('x', ?, zeroblob(1000000))", (number,))
    for _ in range(2):
        Keys(registry).create("default", ["read"])
    assert root.joinpath("server.db-wal").stat().st_size < 20_000_000
