"""Threads, tasks, forks and processes write one run: one dense chain, nothing lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson
from tests.store.children import command, declared, environment, events, judge, only_run, run_child, texts

FORKS = """
import asyncio, os, sys, threading, playhead
from concurrent.futures import ThreadPoolExecutor

def notes(run, name, count):
    for number in range(count):
        run.record("note.added", {"text": f"{name} {number}", "pad": "p" * (number % 5 * 100), "shared": "s" * 500})

async def task(run, name):
    for number in range(10):
        run.record("note.added", {"text": f"{name} {number}"})
        await asyncio.sleep(0)

async def tasks(run, name):
    await asyncio.gather(*(task(run, f"{name}.task{number}") for number in range(5)))

def work(run, name):
    threads = [threading.Thread(target=notes, args=(run, f"{name}.thread{number}", 40)) for number in range(3)]
    for thread in threads:
        thread.start()
    asyncio.run(tasks(run, name))
    for thread in threads:
        thread.join()

with playhead.record("many", store="store") as run:
    notes(run, "before", 3)
    children = []
    for number in range(4):
        pid = os.fork()
        if not pid:
            work(run, f"fork{number}")
            if number % 2:
                sys.exit(0)  # falls out of the `with`: the run is the parent's to finish
            os._exit(0)
        children.append(pid)
    work(run, "parent")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda number: notes(run, f"pool{number}", 5), range(6)))
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
"""


def test_four_forks_with_three_threads_and_tasks_each_make_one_dense_chain() -> None:
    run_child(FORKS)
    store, run = only_run(Path("store"))
    found = judge(store, run)
    assert (found.integrity.verdict, found.completeness.verdict, found.gaps) == ("intact", "complete", {})
    got = events(store, run)
    assert [event.seq for event in got] == list(range(len(got)))
    assert [event.elapsed_us for event in got] == sorted(event.elapsed_us for event in got)
    names = [f"before {n}" for n in range(3)] + [f"pool{p} {n}" for p in range(6) for n in range(5)]
    for who in ("parent", "fork0", "fork1", "fork2", "fork3"):
        names += [f"{who}.thread{t} {n}" for t in range(3) for n in range(40)]
        names += [f"{who}.task{t} {n}" for t in range(5) for n in range(10)]
    assert sorted(texts(got)) == sorted(names)
    assert [event.kind for event in got].count("run.finished") == 1
    assert all(event.data["shared"] == "s" * 500 for event in got if "shared" in (event.data or {}))
    lanes = {event.data["text"].split()[0]: event.lane for event in got if event.kind == "note.added"}
    assert len({lane for name, lane in lanes.items() if "thread" in name or "task" in name}) == 5 * 8


JOIN = """
import sys, playhead
from playhead.capture.opening import default_settings, open_recording
from playhead.store.files import FileStore
run, name = sys.argv[1:]
recording = open_recording(FileStore("store"), default_settings(), run=run)
for number in range(60):
    recording.record("note.added", {"text": f"{name} {number}", "pad": "p" * 400})
recording.leave()
"""


def test_several_processes_append_to_one_run_by_its_id() -> None:
    start = run_child("import playhead\nwith playhead.record('joined', store='store') as run: print(run.id)")
    run = start.stdout.strip()
    children = [subprocess.Popen(command(JOIN, run, name), env=environment()) for name in "abcd"]
    assert [child.wait(60) for child in children] == [0, 0, 0, 0]
    store, only = only_run(Path("store"))
    assert only == run
    found = judge(store, run)
    assert (found.integrity.verdict, found.completeness.verdict, found.open_tail) == ("intact", "complete", 240)
    assert sorted(texts(events(store, run))) == sorted(f"{name} {number}" for name in "abcd" for number in range(60))
    assert declared(events(store, run)) == 0
    for name in "abcd":
        own = [text for text in texts(events(store, run)) if text.startswith(name)]
        assert own == [f"{name} {number}" for number in range(60)]


def test_a_reference_never_leads_to_a_line_of_another_process() -> None:
    run_child(FORKS)
    store, run = only_run(Path("store"))
    writers: list[str] = []  # by seq; the four forks come first, so their lanes are 0.1 to 0.4
    references = 0
    for line in store.lines(run):
        fields = orjson.loads(line)
        branch = [*fields["lane"].split("."), "0"][1]
        writers.append(branch if branch in ("1", "2", "3", "4") else "parent")
        shared = (fields["data"] or {}).get("shared")
        if isinstance(shared, dict):
            references += 1
            assert writers[int(shared["$same"].partition("#")[0])] == writers[-1]
    assert set(writers) == {"1", "2", "3", "4", "parent"}
    assert references > 400


RACE = """
import linecache, os, sys, threading, playhead
playhead.record  # loaded before: from 3.12 on Python itself gets stuck when it warns of a fork beside an import
stop = threading.Event()

def runs():
    while not stop.is_set():
        with playhead.record("short", store="store") as run:
            run.record("note.added", {"text": "x"})

threads = [threading.Thread(target=runs, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(150):
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
stop.set()
for thread in threads:
    thread.join(20)
    assert not thread.is_alive(), "a run that ended while another thread forked is stuck"
"""


def test_runs_that_begin_and_end_while_another_thread_forks_are_not_stuck() -> None:
    run_child(RACE, timeout=60)
