"""An unmodified program runs again with zero live calls, and either everything is the same or the first difference is named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.replay.again import ASKING, playhead, record

WORLD = """
import datetime, os, random, secrets, sys, time, uuid
print(time.time(), time.monotonic_ns(), time.strftime("%Y-%m-%d %H:%M:%S"), time.localtime().tm_sec)
print(datetime.datetime.now(), datetime.datetime.now(datetime.UTC), datetime.date.today())
print(random.random(), random.randint(0, 10**9), random.choice("abcdef"), random.Random().random())
print(uuid.uuid4(), uuid.uuid1(), secrets.token_hex(8), os.urandom(4))
print(sorted({"a", "b"}), {"x", "y", "z", "w"}, hash("text"))
print(os.environ.get("HOME"), os.environ.get("SURE_TO_BE_MISSING"), "PATH" in os.environ)
print(os.getpid(), os.getcwd(), os.cpu_count(), os.uname().nodename)
"""


def test_what_a_program_reads_of_the_world_is_what_it_read_then(tmp_path: Path) -> None:
    recorded = record(tmp_path, WORLD)
    found = recorded.faithful()
    assert found.report["surface"]["drift"] == []
    assert found.report["surface"]["code_changed"] == []


def test_a_model_is_answered_from_the_tape_with_the_provider_gone(tmp_path: Path) -> None:
    recorded = record(tmp_path, ASKING + 'print(ask("one"), ask("two"))', answers=["first", "second"])
    assert recorded.output == "first second\n"
    found = recorded.faithful()
    assert found.report["surface"]["taped"] == 2
    assert "faithful over the recorded surface" in found.errors


def test_identical_questions_get_their_own_answers(tmp_path: Path) -> None:
    recorded = record(tmp_path, ASKING + 'print([ask("same") for _ in range(3)])', answers=["1", "2", "3"])
    assert recorded.output == "['1', '2', '3']\n"
    recorded.faithful()


def test_stdin_comes_from_the_tape(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import sys\nprint(input(), [line for line in sys.stdin])", stdin="one\ntwo\nthree\n")
    assert recorded.output == "one ['two\\n', 'three\\n']\n"
    recorded.faithful()


def test_stdin_that_an_event_loop_waits_for_comes_from_the_tape(tmp_path: Path) -> None:
    program = """
    import asyncio, sys
    async def main():
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
        while line := await reader.readline():
            print(line)
        print("end")
    asyncio.run(main())
    """
    record(tmp_path, program, stdin="one\ntwo\n").faithful()


def test_files_and_listings_are_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("as it was")
    recorded = record(
        tmp_path,
        """
        import os, pathlib
        print(open("notes.txt").read(), pathlib.Path("notes.txt").read_text(), os.path.getsize("notes.txt"))
        print(sorted(name for name in os.listdir(".") if name.endswith(".txt")), os.path.exists("other.txt"))
        print([entry.name for entry in os.scandir(".") if entry.is_file() and entry.name.endswith(".txt")])
        """,
    )
    (tmp_path / "notes.txt").write_text("something else by now")
    (tmp_path / "other.txt").write_text("new")
    recorded.faithful()


def test_a_file_that_changed_while_it_was_polled_changes_at_the_same_look(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import os, threading, time
        threading.Timer(0.15, lambda: open("ready", "w").close()).start()
        looks = 0
        while not os.path.exists("ready"):
            looks += 1
            time.sleep(0.01)
        print(looks)
        """,
    )
    (tmp_path / "ready").unlink()
    recorded.faithful()


@pytest.mark.parametrize(("what", "sort"), [("change", "changed"), ("add", "added"), ("third", "repeated")])
def test_a_question_that_is_not_on_the_tape_is_one_deviation(tmp_path: Path, what: str, sort: str) -> None:
    program = ASKING + (
        'what = open("what").read()\n'
        'print(ask("one"))\n'
        'print(ask("the year is 2026 now" if what == "change" else "the year is 2025 now"))\n'
        'print(ask("three"))\n'
        'if what == "add": print(ask("four, which is new"))\n'
        'if what == "third": print(ask("three"))\n'
    )
    (tmp_path / "what").write_text("none")
    recorded = record(tmp_path, program, answers=["1", "2", "3"])
    # Its own code is not the recorded one any more: what it reads of this file is on the tape.
    (tmp_path / "program.py").write_text(program.replace('open("what").read()', repr(what)))
    found = recorded.replay()
    assert found.exit_code == 1
    assert found.report["fidelity"]["verdict"] == "deviated"
    assert found.report["fidelity"]["count"] == 1, found.report["deviations"]
    assert found.report["surface"]["code_changed"] == [str(tmp_path / "program.py")]
    assert found.first["type"] == sort
    assert found.report["completeness"]["verdict"] == "complete", "what the replay did is recorded whole"
    if what == "change":
        assert "2025" in found.first["text"]
        assert "2026" in found.first["text"]


def test_a_question_that_is_not_asked_any_more_is_named(tmp_path: Path) -> None:
    program = ASKING + 'for text in ("one", "two", "three"): print(ask(text))'
    recorded = record(tmp_path, program, answers=["1", "2", "3"])
    (tmp_path / "program.py").write_text(program.replace('"two", ', ""))
    found = recorded.report()
    assert [(one["type"], one["kind"]) for one in found["deviations"] if one["type"] == "removed"] == [
        ("removed", "model.invoked")
    ]
    assert found["fidelity"]["first"]["type"] == "removed"


def test_the_nearest_answer_is_given_where_that_is_asked_for_and_never_called_faithful(tmp_path: Path) -> None:
    program = ASKING + 'print(ask("the year is 2025"))'
    recorded = record(tmp_path, program, answers=["happy new year"])
    (tmp_path / "program.py").write_text(program.replace("2025", "2026"))
    found = recorded.replay("--on-deviation", "nearest")
    assert found.output == "happy new year\n"
    assert found.report["fidelity"]["verdict"] == "deviated"
    assert found.exit_code == 1


CONCURRENT = """
import asyncio, random, sys, threading, time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
import queue
import httpx
URL = sys.argv[1]
def body(text):
    return {"model": "gpt-5", "messages": [{"role": "user", "content": text}]}
def said(answer):
    return answer.json()["choices"][0]["message"]["content"]
"""
IN_A_LOOP = (
    CONCURRENT
    + """
async def tool(n):
    await asyncio.sleep(random.random() * 0.02)
    return f"{n}:{random.randint(0, 999)}"

async def main():
    got = []
    for each in asyncio.as_completed([tool(n) for n in range(5)]):
        got.append(await each)
    tasks = {asyncio.create_task(tool(n)) for n in range(5)}
    while tasks:
        done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        got += [task.result() for task in done]
    done, _ = await asyncio.wait([asyncio.create_task(tool(n)) for n in range(5)])
    got += [task.result() for task in done]
    try:
        await asyncio.wait_for(asyncio.sleep(30), 0.01)
    except TimeoutError:
        got.append("too late")
    async with httpx.AsyncClient(timeout=30) as client:
        same = [client.post(f"{URL}/chat/completions", json=body("same")) for _ in range(3)]
        got += [said(answer) for answer in await asyncio.gather(*same)]
        print(said(await client.post(f"{URL}/chat/completions", json=body(" ".join(got)))), got)

asyncio.run(main())
"""
)
IN_THREADS = (
    CONCURRENT
    + """
def tool(n):
    time.sleep(random.random() * 0.02)
    return f"{n}:{random.randint(0, 999)}"

got = []
with ThreadPoolExecutor(5) as pool:
    for each in as_completed([pool.submit(tool, n) for n in range(5)]):
        got.append(each.result())
    rest = {pool.submit(tool, n) for n in range(5)}
    while rest:
        done, rest = wait(rest, return_when=FIRST_COMPLETED)
        got += [each.result() for each in done]
results = queue.Queue()
for n in range(5):
    threading.Thread(target=lambda n=n: results.put(tool(n))).start()
got += [results.get(timeout=30) for _ in range(5)]
try:
    results.get(timeout=0.05)
except queue.Empty:
    got.append("too late")
client = httpx.Client(timeout=30)
with ThreadPoolExecutor(3) as pool:
    got += pool.map(lambda _: said(client.post(f"{URL}/chat/completions", json=body("same"))), range(3))
print(said(client.post(f"{URL}/chat/completions", json=body(" ".join(got)))), got)
"""
)


@pytest.mark.parametrize("program", [IN_A_LOOP, IN_THREADS], ids=["asyncio", "threads"])
def test_a_race_is_won_by_the_same_one_again(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, program, answers=["a", "b", "c", "the end"])
    for _ in range(2):
        recorded.faithful()


@pytest.mark.hard
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("program", [IN_A_LOOP, IN_THREADS], ids=["asyncio", "threads"])
def test_a_race_is_won_by_the_same_one_a_hundred_times(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, program, answers=["a", "b", "c", "the end"])
    for _ in range(100):
        recorded.faithful()


def test_fewer_workers_than_recorded_do_not_hang_and_the_report_says_who_waited(tmp_path: Path) -> None:
    program = ASKING + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(int(sys.argv[2])) as pool:\n"
        '    print(list(pool.map(lambda n: ask(f"question {n}"), range(6))))\n'
    )
    recorded = record(tmp_path, program, "6", answers=list("abcdef"))
    with_two = [sys.executable, "program.py", _address(recorded.folder, recorded.run), "2"]
    found = recorded.report(program=with_two)
    assert found["fidelity"]["verdict"] == "faithful", found["deviations"]
    assert found["surface"]["taped"] == 6


def _address(folder: Path, run: str) -> str:
    import playhead as package

    entry = next(iter(package.load(run, folder / ".playhead").events())).data["entrypoint"]
    return str(entry["argv"][2])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing_run_again_with_their_own_part_of_the_tape(tmp_path: Path, method: str) -> None:
    recorded = record(
        tmp_path,
        f"""
        import multiprocessing, os, random, time
        from concurrent.futures import ProcessPoolExecutor, as_completed

        def work(n):
            time.sleep(random.random() * 0.05)
            return n, random.randint(0, 999), os.getpid(), time.time()

        if __name__ == "__main__":
            multiprocessing.set_start_method("{method}")
            with multiprocessing.Pool(3) as pool:
                print(list(pool.imap_unordered(work, range(5))))
            with ProcessPoolExecutor(3) as pool:
                print([each.result() for each in as_completed([pool.submit(work, n) for n in range(5)])])
        """,
    )
    recorded.faithful()


def test_a_program_that_slept_long_replays_in_no_time_and_in_real_time_where_asked(tmp_path: Path) -> None:
    recorded = record(
        tmp_path, "import time\nbefore = time.monotonic()\ntime.sleep(0.3)\nprint(time.monotonic() - before)"
    )
    recorded.faithful()
    recorded.faithful("--speed", "1")


def test_an_error_ends_the_replay_as_it_ended_the_run(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import time\nraise SystemExit(3 if time.time() > 0 else 0)", succeeds=False)
    found = recorded.replay()
    assert found.report["fidelity"]["verdict"] == "faithful"
    assert found.report["exit_code"] == 3


def test_a_run_is_refused_by_name_and_replayed_where_that_is_waived(tmp_path: Path) -> None:
    recorded = record(tmp_path, "print(1)")
    done = playhead(tmp_path, "invalidate", recorded.run, "--why", "stale")
    assert done.returncode == 0, done.stderr
    refused = playhead(tmp_path, "replay", recorded.run, "--mode", "exact")
    assert refused.returncode == 1
    assert "manually_invalidated: stale" in refused.stderr
    assert '`--waive manually_invalidated`, in Python `force=["manually_invalidated"]`' in refused.stderr
    assert recorded.report("--waive", "manually_invalidated")["waived"] == ["manually_invalidated"]
    unknown = playhead(tmp_path, "replay", recorded.run, "--mode", "exact", "--waive", "everything")
    assert unknown.returncode == 2
    assert "no reason 'everything'" in unknown.stderr


def test_with_json_the_report_is_all_that_stdout_holds(tmp_path: Path) -> None:
    recorded = record(tmp_path, "print('words of the program')")
    found = recorded.report()
    for name in ("run", "origin", "mode", "live_calls", "blocked", "surface", "isolation", "cost_saved", "output"):
        assert name in found
    assert found["origin"] == {"run": recorded.run, "mode": "exact", "at": found["origin"]["at"]}
    assert found["integrity"]["verdict"] == "intact"
    assert found["completeness"]["verdict"] == "complete"


def test_the_replay_is_a_run_with_an_origin_that_last_does_not_name(tmp_path: Path) -> None:
    import playhead as package

    recorded = record(tmp_path, "print(1)")
    found = recorded.report()
    assert package.load("@last", tmp_path / ".playhead").id == recorded.run
    replayed = package.load(found["run"], tmp_path / ".playhead")
    assert next(iter(replayed.events())).data["origin"]["mode"] == "exact"


def test_uvloop_is_replayed_by_the_loop_of_asyncio(tmp_path: Path) -> None:
    pytest.importorskip("uvloop")
    recorded = record(
        tmp_path,
        """
        import asyncio, random, uvloop
        async def tool(n):
            await asyncio.sleep(random.random() * 0.02)
            return n
        async def main():
            print([await each for each in asyncio.as_completed([tool(n) for n in range(5)])])
        uvloop.run(main())
        """,
    )
    recorded.faithful()


def test_another_hash_seed_of_ours_changes_nothing(tmp_path: Path) -> None:
    recorded = record(tmp_path, "print({str(n) for n in range(20)})")
    os.environ.pop("PYTHONHASHSEED", None)
    recorded.faithful()
