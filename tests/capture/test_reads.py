"""What a program is told by clocks, chance, variables, files and the standard input: recorded, lane by lane."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import shutil
import sqlite3
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.capture import launching

import playhead
from playhead import _limits
from playhead._api.reading import Run
from playhead.capture import hooks
from playhead.capture.sources import generators, modules
from playhead.event.plain import restore

NOTE_STATES = generators.note_states
MIXING = Path(__file__).with_name("mixing.py")
LANES = {
    "main": "0", "thread 0": "0.1", "thread 1": "0.2", "pool 0": "0.3", "pool 1": "0.4", "pool 2": "0.5",
}  # fmt: skip


@pytest.fixture
def taping(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(modules, "note_new", lambda *_: None)  # here, all modules of the tests would be among them
    monkeypatch.setattr(generators, "note_states", lambda *_: None)
    playhead.install()
    yield
    playhead.uninstall()


@pytest.fixture
def mixed(tmp_path: Path, pure: str) -> tuple[Run, list[dict[str, Any]]]:
    """Record the program that mixes everything."""
    (tmp_path / "first.txt").write_text("first\n")
    (tmp_path / "second.bin").write_bytes(b"\xff\x00second")
    (tmp_path / "folder").mkdir()
    for name in "cab":
        (tmp_path / "folder" / name).touch()
    with sqlite3.connect(tmp_path / "data.db") as database:
        database.execute("create table t (a)")
        database.execute("insert into t values (5)")
    database.close()
    shutil.copy(MIXING, tmp_path / "mixing.py")
    environment = {"MIXING": "told", "PLAYHEAD_PURE": pure}
    code, out, err = launching.launched(
        tmp_path / ".playhead", [sys.executable, "mixing.py"], b"one\ntwo\nthree\n", env=environment, cwd=tmp_path
    )
    assert (code, err) == (0, b"")
    run = launching.only_run(tmp_path / ".playhead")
    launching.assert_whole(run)
    return run, [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("pure", ["0", "1"])
def test_every_value_that_a_program_was_told_is_in_its_timeline_in_its_lane_and_order(
    mixed: tuple[Run, list[dict[str, Any]]],
) -> None:
    run, told = mixed
    by_place: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in told:
        by_place[line["where"]].append(line)
    found: dict[str, list[Any]] = defaultdict(list)
    contents: dict[str, bytes] = {}
    for read in run.reads():
        found[read.lane].append(read)
        if read.of in ("open", "sqlite3.connect") and "content" in read.value:
            content = restore(read.value["content"])
            contents[read.value["digest"]] = content if isinstance(content, bytes) else content.encode()
    used = set()
    for place, lines in by_place.items():
        lane = LANES.get(place) or lane_of_task(lines, found, used)
        used.add(lane)
        expect_in_order(lines, [read for read in found[lane] if read.by in ("__main__", "")], contents)


def lane_of_task(lines: list[dict[str, Any]], found: dict[str, list[Any]], used: set[str]) -> str:
    """Find the lane of a task by its first value: which number it has depends on the version of asyncio."""
    first = lines[0]["value"]
    (lane,) = [lane for lane, reads in found.items() if any(read.value == first for read in reads)]
    assert lane not in used, "every task has a lane of its own"
    return lane


def expect_in_order(lines: list[dict[str, Any]], reads: list[Any], contents: dict[str, bytes]) -> None:
    """Find each line that was printed among the reads of its lane, in the same order."""
    at = 0
    seen: dict[tuple[str, str], Any] = {}  # answers that are kept only when they are others than before
    stdin = b"".join(restored(read.value) for read in reads if read.of == "sys.stdin")
    for line in lines:
        if line["of"] == "sys.stdin":
            assert stdin.decode() == line["text"]
            continue
        path = line.get("path", "")
        if path and line["of"] == "open" and (line["of"], path) in seen:
            assert contents[seen[line["of"], path]["digest"]].hex() == line["holds"]
            continue
        while not matches(line, reads[at], contents):
            at += 1
        if path:
            seen[line["of"], path] = reads[at].value
        at += 1


def restored(value: Any) -> bytes:
    content = restore(value)
    return content if isinstance(content, bytes) else str(content).encode()


def matches(line: dict[str, Any], read: Any, contents: dict[str, bytes]) -> bool:
    if read.of != line["of"] or ("via" in line and read.via != line["via"]):
        return False
    if "drawn" in line:
        return random.Random(int.from_bytes(read.value, "little")).random() == line["drawn"]
    if "value" in line:
        value = read.value.hex() if isinstance(read.value, bytes) else read.value
        return bool(value == line["value"])
    if read.of == "sqlite3.connect":
        return contents[read.value["digest"]].startswith(b"SQLite format 3")
    if read.value["path"] != line["path"]:
        return False
    if "holds" in line:
        return contents[read.value["digest"]].hex() == line["holds"]
    if "names" in line:
        names = read.value.get("names") or [name for name, _ in read.value["entries"]]
        return bool(names == line["names"])
    return bool(read.value["stat"][6] == line["size"]) if "size" in line else read.value["error"] == "ENOENT"


def test_reads_are_sealed_before_the_next_event_of_their_lane_and_in_its_span(taping: None) -> None:
    @playhead.tool
    def look() -> float:
        return time.time()

    with playhead.record("agent") as run:
        before = time.time()
        inside = look()
        after = time.time()
    events = list(playhead.load(str(run.id)).events())
    kinds = [event.kind for event in events if event.kind in ("ambient.read", "tool.called", "tool.returned")]
    assert kinds == ["ambient.read", "tool.called", "ambient.read", "tool.returned", "ambient.read"]
    packs = [event for event in events if event.kind == "ambient.read"]
    (called,) = [event for event in events if event.kind == "tool.called"]
    assert [pack.parent for pack in packs] == [events[0].span, called.span, events[0].span]
    reads = [read for read in playhead.load(str(run.id)).reads() if read.of == "time.time"]
    assert [read.value for read in reads] == [before, inside, after]
    assert {read.by for read in reads} == {__name__}


def test_nothing_is_kept_of_what_runs_below_the_agent(taping: None) -> None:
    with playhead.record("agent") as run:
        asyncio.run(asyncio.sleep(0.001))
        threading.Event().wait(0.001)
    waits = ("lane.ended", "asyncio.timer", "threading.wait")  # in which order the agent itself went on
    reads = [read for read in playhead.load(str(run.id)).reads() if read.of not in waits]
    assert [read for read in reads if not read.by.startswith("hypothesis")] == []  # which watches the collector


def test_without_install_only_the_order_of_lanes_is_kept() -> None:
    with playhead.record("agent") as run:
        time.time()
        thread = threading.Thread(target=time.time)
        thread.start()
        thread.join()
    assert [read.of for read in playhead.load(str(run.id)).reads()] == ["lane.ended"]


def test_without_capture_nothing_is_kept(taping: None) -> None:
    with playhead.record("agent", capture=False) as run:
        time.time()
    assert list(playhead.load(str(run.id)).reads()) == []


def test_two_runs_in_one_process_keep_their_own(taping: None) -> None:
    values: dict[str, list[int]] = {"one": [], "two": []}
    ids: dict[str, str] = {}
    gate = threading.Barrier(2)

    def agent(name: str) -> None:
        with playhead.record(name) as run:
            gate.wait()
            for _ in range(200):
                values[name].append(time.time_ns())
        ids[name] = str(run.id)

    threads = [threading.Thread(target=agent, args=(name,)) for name in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, told in values.items():
        reads = [read for read in playhead.load(ids[name]).reads() if read.of == "time.time_ns"]
        assert [read.value for read in reads] == told


def test_after_the_last_run_everything_is_what_it_was(taping: None) -> None:
    playhead.uninstall()
    before = (time.time, os._exit, os.environ.__class__.__getitem__, random.random)
    playhead.install()
    with playhead.record("agent"):
        assert os._exit is not before[1]
    playhead.uninstall()
    assert (time.time, os._exit, os.environ.__class__.__getitem__, random.random) == before
    assert time.time is before[0]
    assert random.random is before[3]
    playhead.install()


@pytest.mark.skipif(hooks.compiled is None, reason="the compiled part was not built")
def test_functions_keep_their_identity_and_their_errors(taping: None) -> None:
    with playhead.record("agent"):
        assert time.time.__name__ == "time"
        assert type(time.time).__name__ == "builtin_function_or_method"
        with pytest.raises(TypeError, match="takes no arguments"):
            time.time(1)  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="negative argument"):
            os.urandom(-1)
        with pytest.raises(FileNotFoundError):
            os.listdir("there is no such folder")
        with pytest.raises(FileNotFoundError):
            open("there is no such file")  # noqa: SIM115
        with pytest.raises(KeyError, match="THERE_IS_NO_SUCH_VARIABLE"):
            os.environ["THERE_IS_NO_SUCH_VARIABLE"]


def test_a_secret_variable_and_a_secret_in_a_file_are_redacted(
    taping: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "tok-very-secret-5521")
    monkeypatch.setenv("SHORT_PASSWORD", "abc")
    (tmp_path / "settings.env").write_text("key=tok-very-secret-5521\n")
    with playhead.record("agent") as run:
        assert os.environ["SERVICE_TOKEN"] == "tok-very-secret-5521"
        assert os.environ["SHORT_PASSWORD"] == "abc"
        assert "very-secret" in (tmp_path / "settings.env").read_text()
    loaded = playhead.load(str(run.id))
    assert b"very-secret" not in b"".join(loaded.lines())
    values = {read.of: read.value for read in loaded.reads() if read.of in ("open", "os.environ")}
    assert values["os.environ"] == {"SHORT_PASSWORD": {"$redacted": "field"}}
    assert values["open"]["content"] == "key=[redacted:env]\n"
    assert values["open"]["digest"] == hashlib.sha256(b"key=[redacted:env]\n").hexdigest()


def test_a_file_is_kept_once_and_again_when_it_has_changed(taping: None, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one")
    with playhead.record("agent") as run:
        for content in ("one", "two", "two", "one"):  # as long, and within the same tick of the file system's clock
            path.write_text(content)
            assert path.read_text() == content
    kept = [read.value for read in playhead.load(str(run.id)).reads() if read.of == "open"]
    digests = {text: hashlib.sha256(text.encode()).hexdigest() for text in ("one", "two")}
    assert [(value["digest"], value.get("content")) for value in kept] == [
        (digests["one"], "one"),
        (digests["two"], "two"),
        (digests["one"], None),
    ]


def test_a_large_file_goes_to_a_blob_and_one_that_is_too_large_is_a_named_gap(
    taping: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_limits, "FILE_BYTES_MAX", 100_000)
    (tmp_path / "large").write_bytes(b"x" * 90_000)
    (tmp_path / "larger").write_bytes(b"x" * 100_001)
    os.mkfifo(tmp_path / "pipe")
    with playhead.record("agent") as run:
        (tmp_path / "large").read_bytes()
        (tmp_path / "larger").read_bytes()
        os.close(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))
    loaded = playhead.load(str(run.id))
    raw = [event for event in loaded.events(resolve=False) if event.kind == "ambient.read"]
    assert b'"$blob"' in b"".join(line for line in loaded.lines() if b"ambient.read" in line)
    assert raw
    values = [read.value for read in loaded.reads() if read.of == "open"]
    assert [value.get("omitted", value.get("special", False)) for value in values] == [False, True, "p"]
    gaps = [event.data for event in loaded.events() if event.kind == "gap.noted"]
    assert [(gap["reason"], gap["detail"]["source"]) for gap in gaps] == [("not_captured", "file")] * 2
    assert "100001 bytes" in gaps[0]["detail"]["where"]
    assert "a pipe" in gaps[1]["detail"]["where"]


def test_beyond_the_limit_reads_are_a_named_gap(taping: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "READS_MAX", 50)
    with playhead.record("agent") as run:
        for _ in range(100):
            time.time()
    loaded = playhead.load(str(run.id))
    assert len([read for read in loaded.reads() if read.of == "time.time"]) == 50
    (gap,) = [event.data for event in loaded.events() if event.kind == "gap.noted"]
    assert gap["detail"]["source"] == "reads"
    assert (
        gap["detail"]["where"] == f"clocks, after 50 reads of them; the first that is missing: time.time, by {__name__}"
    )
    assert loaded.readiness().replayable


def test_many_reads_are_sealed_in_between(taping: None) -> None:
    with playhead.record("agent") as run:
        told = [time.time_ns() for _ in range(10_000)]
    loaded = playhead.load(str(run.id))
    packs = [event for event in loaded.events() if event.kind == "ambient.read"]
    assert len(packs) >= 3
    assert [read.value for read in loaded.reads() if read.of == "time.time_ns"] == told


def test_a_forked_child_keeps_what_it_reads_also_when_it_ends_without_a_word(taping: None) -> None:
    with playhead.record("agent") as run:
        before = time.time_ns()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            told = time.time_ns()
            os.write(writing, str(told).encode())
            os._exit(0)
        os.waitpid(child, 0)
        told = int(os.read(reading, 100))
        os.close(reading)
        os.close(writing)
    reads = [(read.lane, read.value) for read in playhead.load(str(run.id)).reads() if read.of == "time.time_ns"]
    assert sorted(reads) == [("0", before), ("0.1", told)]


def test_a_program_that_becomes_another_keeps_what_it_read(tmp_path: Path) -> None:
    code = "import os, sys, time\nprint(time.time_ns(), flush=True)\nos.execv(sys.executable, [sys.executable, '-c', 'import time; print(time.time_ns())'])"
    status, out, err = launching.launched(tmp_path / ".playhead", launching.python(code), cwd=tmp_path)
    assert (status, err) == (0, b"")
    run = launching.only_run(tmp_path / ".playhead")
    assert [str(read.value) for read in run.reads() if read.of == "time.time_ns"] == out.decode().split()


def test_the_order_in_which_lanes_end_is_in_the_timeline() -> None:
    async def work(delay: float) -> None:
        await asyncio.sleep(delay)

    async def main() -> None:
        tasks = [asyncio.create_task(work(delay)) for delay in (0.03, 0.01, 0.02)]
        await asyncio.wait(tasks)

    with playhead.record("agent") as run:
        asyncio.run(main())
    ended = [read.value for read in playhead.load(str(run.id)).reads() if read.of == "lane.ended"]
    lanes = [path for path, _, outcome in ended if outcome == "ok"]
    first = min(lanes, key=len).rpartition(".")[0]
    tasks = [path for path, _, _ in ended][:3]
    assert [int(path.rpartition(".")[2]) for path in tasks] == [2, 3, 1], (ended, first)
    assert [at for _, at, _ in ended] == sorted(at for _, at, _ in ended)


def test_the_projects_own_source_is_fingerprinted_and_not_kept(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 5\n")
    in_thread = "threading.Thread(target=lambda: time.time()).start()"  # which is written before the main one is
    (tmp_path / "agent.py").write_text(f"import helper, threading, time\ntime.time()\n{in_thread}\n")
    status, _, err = launching.launched(tmp_path / ".playhead", [sys.executable, "agent.py"], cwd=tmp_path)
    assert (status, err) == (0, b"")
    run = launching.only_run(tmp_path / ".playhead")
    imported = {read.value["module"]: read.value for read in run.reads() if read.of == "import"}
    assert imported["helper"] == {
        "module": "helper",
        "path": str(tmp_path / "helper.py"),
        "size": 10,
        "digest": hashlib.sha256(b"VALUE = 5\n").hexdigest(),
    }
    assert imported["__main__"]["path"] == str(tmp_path / "agent.py")
    assert {read.lane for read in run.reads() if read.of == "import"} == {"0"}
    assert not [read for read in run.reads() if read.of == "open"]


def test_source_is_fingerprinted_of_a_program_that_read_nothing_else_too(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "site-packages" / "borrowed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 6\n")
    (tmp_path / "helper.py").write_text("VALUE = 5\n")
    lines = ["import helper, sys", f"sys.path.append({str(package.parent)!r})", "import borrowed", "sys.path.pop()"]
    (tmp_path / "agent.py").write_text("\n".join([*lines, "print(helper.VALUE)"]))
    status, _, err = launching.launched(tmp_path / ".playhead", [sys.executable, "agent.py"], cwd=tmp_path)
    assert (status, err) == (0, b"")
    run = launching.only_run(tmp_path / ".playhead")
    imported = [read.value["module"] for read in run.reads() if read.of == "import"]
    assert sorted(imported) == ["__main__", "helper"]  # and nothing of a package, whose folder is not searched any more


def test_the_seed_of_hashes_is_fixed_stored_and_not_seen(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys\n"
        'show = \'import os; print(list({"a", "b", "c", "d", "e"}), os.environ.get("PYTHONHASHSEED"))\'\n'
        "exec(show)\nsys.stdout.flush()\n"
        "subprocess.run([sys.executable, '-c', show])\n"
        "subprocess.run([sys.executable, '-c', show], env={})\n"
    )
    environment = {"PLAYHEAD_PURE": "0"}
    environment.pop("PYTHONHASHSEED", None)
    status, out, err = launching.launched(tmp_path / ".playhead", launching.python(code), env=environment, cwd=tmp_path)
    assert (status, err) == (0, b"")
    lines = out.decode().splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1
    assert lines[0].endswith("None")
    from playhead.store.files import FileStore

    store = FileStore(tmp_path / ".playhead")
    started = [next(iter(Run(store, run).events())).data["environment"] for run in store.runs()]
    assert {facts["hash_seed"] for facts in started if facts} != {None}
    assert len({facts["hash_seed"] for facts in started if facts}) == 1


def test_without_ambient_nothing_is_told(tmp_path: Path) -> None:
    code = "import time; time.time()"
    launching.launched(tmp_path / ".playhead", launching.python(code), env={"PLAYHEAD_AMBIENT": "0"}, cwd=tmp_path)
    run = launching.only_run(tmp_path / ".playhead")
    assert not [read for read in run.reads() if read.of != "lane.ended"]


@pytest.mark.skipif(hooks.compiled is None, reason="the compiled part was not built")
def test_identifiers_of_uuid_utils_are_kept(taping: None) -> None:
    import uuid_utils

    with playhead.record("agent") as run:
        told = [str(uuid_utils.uuid7()), str(uuid_utils.uuid4()), str(uuid_utils.uuid1())]
    assert [read.value for read in playhead.load(str(run.id)).reads() if read.of.startswith("uuid_utils")] == told


def test_the_generators_of_numpy_are_kept_as_they_were_found(taping: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setattr(generators, "note_states", NOTE_STATES)
    with playhead.record("agent") as run:
        drawn, own = np.random.random(), np.random.default_rng().random()
    reads = list(playhead.load(str(run.id)).reads())
    (state,) = [restore(read.value) for read in reads if read.of == "numpy.random.get_state"]
    again = np.random.RandomState()
    keys = np.frombuffer(state["keys"], dtype=np.uint32)
    again.set_state((state["generator"], keys, state["position"], state["has_gauss"], state["gauss"]))
    assert again.random() == drawn
    (seed,) = [read.value for read in reads if read.of == "os.urandom"]
    entropy = int.from_bytes(seed, "big") >> (len(seed) * 8 - 128)
    assert np.random.default_rng(entropy).random() == own


def test_the_clock_of_the_loop_is_kept_where_the_agent_asks_for_it(taping: None) -> None:
    async def main() -> float:
        await asyncio.sleep(0.001)
        return asyncio.get_running_loop().time()

    with playhead.record("agent") as run:
        told = asyncio.run(main())
    assert [read.value for read in playhead.load(str(run.id)).reads() if read.of == "asyncio.loop.time"] == [told]


def test_an_interrupt_in_the_middle_of_a_read_reaches_the_program(
    taping: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.capture.sources import files

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with playhead.record("agent"):
        os.listdir(".")
        monkeypatch.setattr(files, "_keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            os.listdir(".")
