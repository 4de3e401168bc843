from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.store.index_timelines import Timeline, every_row, line, rich, run_id

from playhead import _limits
from playhead.store import index_follow, layout, presence
from playhead.store.index import Index

# A writer that holds its run, writes until it is told to end, and is killed in some tests.
WRITER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.store.index_timelines import Timeline
from playhead.store import presence
run = Timeline(Path(sys.argv[2]), int(sys.argv[3]))
fd = presence.hold(run.directory)
run.note("open")
print(run.id, flush=True)
for word in sys.stdin:
    if word.strip() == "end":
        run.add("run.finished", {"status": "ok"}, span="root")
        os.close(fd)
        run.note("close")
    else:
        run.add("note.added", {"text": word})
    print("done", flush=True)
"""


class Writer:
    def __init__(self, root: Path, number: int) -> None:
        arguments = [sys.executable, "-c", WRITER, str(Path(__file__).parents[2]), str(root), str(number)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.id = self._heard()

    def _heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self._heard() == "done"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    layout.runs_dir(tmp_path / ".playhead").mkdir(parents=True)
    return tmp_path / ".playhead"


def test_a_run_is_running_while_held_and_crashed_when_its_process_was_killed(root: Path) -> None:
    writer = Writer(root, 1)
    try:
        with Index(root) as index:
            assert [(run["status"], run["events"]) for run in index.list_runs()] == [("running", 1)]
            writer.say("hello")  # nothing is noted in the journal: an open run is looked at by itself
            assert [(run["status"], run["events"]) for run in index.list_runs()] == [("running", 2)]
            writer.kill()
            (run,) = index.list_runs()
            assert (run["status"], run["events"], run["reasons"]) == ("crashed", 2, ["execution_incomplete"])
    finally:
        writer.kill()


def test_a_run_that_ends_is_read_to_its_end(root: Path) -> None:
    writer = Writer(root, 1)
    try:
        with Index(root) as index:
            assert index.list_runs(status="running")[0]["id"] == writer.id
            writer.say("hello")
            writer.say("end")
            (run,) = index.list_runs()
            assert (run["status"], run["events"], run["replayable"]) == ("ok", 3, True)
    finally:
        writer.kill()


def test_a_held_run_without_a_line_is_found_when_its_first_line_comes(root: Path) -> None:
    directory = layout.run_dir(root, run_id(1))
    directory.mkdir(parents=True)
    layout.journal(root).write_text(f"{run_id(1)} open\n")
    fd = presence.hold(directory)
    with Index(root) as index:
        assert index.list_runs() == []
        layout.timeline(directory).write_bytes(line(run_id(1), 0, "run.started", {"name": "late"}, span="root"))
        assert [(run["name"], run["status"]) for run in index.list_runs()] == [("late", "running")]
        os.close(fd)
        assert index.list_runs()[0]["status"] == "crashed"


def test_a_closed_run_is_not_looked_at_until_the_journal_names_it(root: Path) -> None:
    runs = [rich(root, number) for number in range(5)]
    with Index(root) as index:
        index.catch_up()
        runs[0].add("note.added")
        assert index.query("SELECT sum(events) FROM runs")[1] == [(90,)]
        runs[1].note("close")
        assert index.query("SELECT sum(events) FROM runs")[1] == [(90,)]
        runs[0].note("close")
        assert index.query("SELECT sum(events) FROM runs")[1] == [(91,)]


def test_without_news_a_question_neither_writes_nor_opens_a_timeline(root: Path) -> None:
    for number in range(3):
        rich(root, number)
    with Index(root) as index:
        index.catch_up()
        opened: list[str] = []
        watching = True

        def watch(event: str, values: tuple[object, ...]) -> None:
            if watching and event == "open":
                opened.append(str(values[0]))

        sys.addaudithook(watch)
        before = index.query("SELECT * FROM state")
        assert len(index.list_runs()) == 3
        watching = False
        assert {Path(name).name for name in opened} == {"journal"}
        assert index.query("SELECT * FROM state") == before


def test_a_line_still_being_written_is_left_for_the_next_time(root: Path) -> None:
    run = Timeline(root, 1)
    data = line(run.id, 1, "note.added", {"text": "x"})
    with Index(root) as index:
        run.append(data[:-1])
        run.note("open")
        found = index.get(run.id)
        assert found is not None
        assert (found["events"], found["bad_lines"]) == (1, 0)
        run.append(data[-1:])
        run.note("open")
        found = index.get(run.id)
        assert found is not None
        assert (found["events"], found["bad_lines"]) == (2, 0)


@pytest.mark.parametrize("change", ["shorter", "other content", "same length"])
def test_a_timeline_that_is_not_the_one_read_before_is_read_again(root: Path, change: str) -> None:
    run = rich(root)
    with Index(root) as index:
        index.catch_up()
        lines = run.path.read_bytes().splitlines(keepends=True)
        if change == "shorter":
            run.path.write_bytes(b"".join(lines[:3]))
        elif change == "other content":
            run.path.write_bytes(b"".join(line(run.id, seq, "note.added", {"text": "x" * 400}) for seq in range(90)))
        else:
            other = line(run.id, 17, "run.finished", {"status": "ok", "output": "y"}, span="root")
            run.path.write_bytes(b"".join(lines[:-1]) + other)
            assert run.path.stat().st_size == sum(map(len, lines))
        run.note("open")
        after = every_row(index)
        index.rebuild()
        assert after == every_row(index)
        assert index.query("SELECT count(*) FROM events")[1] == [(run.path.read_bytes().count(b"\n"),)]


def test_a_run_whose_directory_is_gone_leaves_the_index(root: Path) -> None:
    run, kept = rich(root, 1), rich(root, 2)
    with Index(root) as index:
        index.catch_up()
        run.path.unlink()
        run.directory.rmdir()
        assert index.get(run.id) is None
        run.note("close")
        assert [found["id"] for found in index.list_runs()] == [kept.id]
        assert index.query("SELECT DISTINCT run FROM events")[1] == [(kept.id,)]


def test_a_forgotten_run_leaves_no_row(root: Path) -> None:
    run, kept = rich(root, 1), rich(root, 2)
    with Index(root) as index:
        index.forget(run.id)
        assert {row[0] for rows in every_row(index).values() for row in rows} == {kept.id}


def test_a_run_that_nobody_noted_is_found_by_its_id(root: Path) -> None:
    with Index(root) as index:
        index.catch_up()
        run = rich(root)
        layout.journal(root).unlink()
        assert index.list_runs() == []
        assert index.head(run.id) == (17, run.path.read_bytes()[-67:-3].decode())
        assert index.head(run_id(9)) is None
        assert index.get("../../etc") is None


def test_a_torn_note_is_left_and_one_glued_to_it_still_counts(root: Path) -> None:
    with Index(root) as index:
        index.catch_up()
        first = Timeline(root, 1)
        layout.journal(root).write_text(f"{first.id} ope")
        assert index.list_runs() == []
        with open(layout.journal(root), "a") as file:
            file.write("n\nrun_01hf7")
        assert [run["id"] for run in index.list_runs()] == [first.id]
        second = Timeline(root, 2)  # appends right after the torn note
        assert [run["id"] for run in index.list_runs()] == [second.id, first.id]


@pytest.mark.parametrize("journal", ["", "longer", None])
def test_a_journal_that_was_replaced_is_read_from_its_start(root: Path, journal: str | None) -> None:
    first, second = Timeline(root, 1).finish(), Timeline(root, 2).finish()
    with Index(root) as index:
        index.catch_up()
        third = Timeline(root, 3).finish()
        first.add("note.added")
        if journal is None:
            layout.journal(root).unlink()
        else:
            layout.journal(root).write_text(f"{first.id} close\n" * (9 if journal else 0))
        counts = [(run["id"], run["events"]) for run in index.list_runs()]
        assert counts == [(third.id, 2), (second.id, 2), (first.id, 3)]


def test_names_in_the_journal_never_lead_out_of_the_store(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "timeline.jsonl").write_bytes(line(run_id(1), 0, "run.started", {"name": "x"}))
    layout.journal(root).write_text("../../outside open\n/etc open\n\0 open\nrun_ open\n")
    with Index(root) as index:
        assert index.list_runs() == []


def test_a_pipe_in_the_place_of_a_timeline_does_not_stop_anything(root: Path) -> None:
    directory = layout.run_dir(root, run_id(1))
    directory.mkdir(parents=True)
    os.mkfifo(layout.timeline(directory))
    kept = rich(root, 2)
    with Index(root) as index:
        assert [run["id"] for run in index.list_runs()] == [kept.id]


LISTER = """
import sys
from pathlib import Path
from playhead import _limits
from playhead.store.index import Index
_limits.INDEX_BATCH_EVENTS = 20
with Index(Path(sys.argv[1])) as index:
    print(len(index.list_runs(limit=-1)), index.query("SELECT count(*) FROM events")[1][0][0])
"""


def test_processes_that_catch_up_at_once_agree(root: Path) -> None:
    for number in range(60):
        rich(root, number)
    command = [sys.executable, "-c", LISTER, str(root)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert answers == [("60 1080\n", "")] * 4
    with Index(root) as index:
        together = every_row(index)
        index.rebuild()
        assert together == every_row(index)


def test_a_catch_up_that_is_killed_is_finished_by_the_next(root: Path) -> None:
    for number in range(30):
        rich(root, number)
    die = "import os\ndone = lambda n, of: n == 20 and os.kill(os.getpid(), 9)\n"
    code = LISTER.replace("with Index", f"{die}with Index")
    code = code.replace("print(", "index.rebuild(done); print(")
    killed = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    with Index(root) as index:
        assert index.query("SELECT count(*), sum(status = 'ok') FROM runs")[1] == [(30, 30)]
        resumed = every_row(index)
        assert index.rebuild() == 30
        assert resumed == every_row(index)


def test_a_rebuild_tells_its_progress(root: Path) -> None:
    for number in range(3):
        rich(root, number)
    told: list[tuple[int, int]] = []
    with Index(root) as index:
        assert index.rebuild(lambda done, total: told.append((done, total))) == 3
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_threads_and_a_forked_child_may_use_one_index(root: Path) -> None:
    run = Timeline(root, 1)
    with Index(root) as index:
        counts: list[int] = []
        threads = [threading.Thread(target=lambda: counts.append(len(index.list_runs()))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [1] * 8
        run.finish()
        child = os.fork()
        if child == 0:
            os._exit(0 if index.list_runs()[0]["status"] == "ok" else 1)
        assert os.waitpid(child, 0)[1] == 0
        run.add("note.added").note("close")
        assert index.list_runs()[0]["events"] == 3


def test_a_long_run_is_read_in_batches(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "INDEX_BATCH_EVENTS", 7)
    run = Timeline(root, 1)
    for _ in range(50):
        run.call("tool.called", {"name": "t"}, "tool.returned", {"status": "ok"})
    run.finish()
    between: set[str] = set()

    def look(seconds: float) -> None:
        connection = sqlite3.connect(layout.index(root))
        between.update(status for (status,) in connection.execute("SELECT status FROM runs"))
        connection.close()

    monkeypatch.setattr(index_follow, "_sleep", look)
    with Index(root) as index:
        assert index.list_runs()[0]["events"] == 102
        assert between == {"running"}  # what is half read is not called crashed
        assert index.query("SELECT count(*), sum(latency_us), sum(status = 'ok') FROM calls")[1] == [(50, 50_000, 50)]
