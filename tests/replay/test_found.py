"""What reviews found: each of these was once a replay that hung, lied, or touched the world."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest
from tests.replay.again import ASKING, playhead, record


def test_a_file_that_was_written_otherwise_is_read_as_it_was_written_and_named(tmp_path: Path) -> None:
    program = """
    import os
    from pathlib import Path
    Path("note.txt").write_text("version one")
    print(Path("note.txt").read_text(), os.path.getsize("note.txt"))
    """
    recorded = record(tmp_path, program)
    recorded.faithful()
    changed = (tmp_path / "program.py").read_text().replace("version one", "another version")
    (tmp_path / "program.py").write_text(changed)
    found = recorded.replay()
    assert found.output == "another version 15\n"
    assert found.first["type"] == "write"
    assert "note.txt" in found.first["text"]


POLLS = {
    "thread": """
        import threading, time
        flag = []
        threading.Thread(target=lambda: (time.sleep(0.05), flag.append(1))).start()
        while not flag:
            pass
        print("seen")
    """,
    "loop": """
        import asyncio, time
        async def main():
            task = asyncio.create_task(asyncio.to_thread(time.sleep, 0.05))
            while not task.done():
                await asyncio.sleep(0)
            print("seen")
        asyncio.run(main())
    """,
    "queue": """
        import queue, threading, time
        q = queue.Queue()
        threading.Thread(target=lambda: (time.sleep(0.05), q.put("seen"))).start()
        while True:
            try:
                print(q.get_nowait())
                break
            except queue.Empty:
                pass
    """,
}


@pytest.mark.parametrize("program", POLLS.values(), ids=POLLS)
def test_a_program_that_polls_does_not_hang(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, program)
    found = recorded.report()
    assert found["exit_code"] == 0
    assert found["fidelity"]["verdict"] == "faithful", found["deviations"]


BEATS = {"sleep": "time.sleep(s)", "wait": "stop.wait(s)"}


@pytest.mark.parametrize("beats", BEATS.values(), ids=BEATS)
def test_a_thread_that_was_killed_while_it_waited_does_not_wake_in_the_place_of_another(
    tmp_path: Path, beats: str
) -> None:
    recorded = record(
        tmp_path,
        f"""
        import threading, time
        stop = threading.Event()
        def beat(name, s):
            for _ in range(5):
                {beats}
                print(name, flush=True)
        for name, s in (("slow", 30), ("fast", 0.02)):
            threading.Thread(target=beat, args=(name, s), daemon=True).start()
        time.sleep(1)
        print("end", flush=True)
        """,
    )
    found = recorded.faithful()
    assert "slow" not in found.output
    assert not found.report["surface"]["drift"]


def test_threads_that_ask_a_provider_end_in_the_same_order(tmp_path: Path) -> None:
    program = ASKING + (
        "import random, time\n"
        "from concurrent.futures import ThreadPoolExecutor, as_completed\n"
        "def one(n):\n"
        "    time.sleep(random.random() * 0.02)\n"
        '    return n, ask("same")\n'
        "with ThreadPoolExecutor(5) as pool:\n"
        "    for each in as_completed([pool.submit(one, n) for n in range(10)]):\n"
        "        print(each.result())\n"
    )
    recorded = record(tmp_path, program, answers=list("abcdefghij"))
    for _ in range(3):
        recorded.faithful()


def test_as_many_are_done_after_a_timeout_as_were_then(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import random, time
        from concurrent.futures import ThreadPoolExecutor, wait
        with ThreadPoolExecutor(6) as pool:
            all_of_them = [pool.submit(time.sleep, random.random() * 0.02) for _ in range(12)]
            done, rest = wait(all_of_them, timeout=0.01)
            print(len(done), len(rest))
        """,
    )
    for _ in range(3):
        recorded.faithful()


def test_the_time_zone_is_that_of_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    recorded = record(tmp_path, "import time\nprint(time.strftime('%H:%M %z'), time.localtime(0).tm_hour)")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    recorded.faithful()


def test_logs_have_the_times_of_then(tmp_path: Path) -> None:
    recorded = record(
        tmp_path,
        """
        import logging, sys
        logging.basicConfig(stream=sys.stdout, format="%(asctime)s.%(msecs)f %(process)d %(message)s")
        logging.warning("something happened")
        """,
    )
    recorded.faithful()


@pytest.mark.parametrize("pure", ["", "1"])
def test_logs_of_what_runs_below_the_agent_have_the_times_of_then(
    tmp_path: Path, pure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYHEAD_PURE", pure)
    recorded = record(
        tmp_path,
        f"""{ASKING}
import logging
logging.basicConfig(stream=sys.stdout, format="%(asctime)s.%(msecs)f %(process)d %(name)s %(message)s")
logging.getLogger("httpx").setLevel("INFO")
ask("a question")
logging.warning("something happened")
""",
        answers=["an answer"],
    )
    assert "httpx HTTP Request" in recorded.output
    recorded.faithful()


@pytest.mark.parametrize("pure", ["", "1"])
def test_a_library_that_logs_less_in_a_replay_shifts_no_times_of_the_others(
    tmp_path: Path, pure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYHEAD_PURE", pure)
    recorded = record(
        tmp_path,
        f"""{ASKING}
import logging
times = []
class Handler(logging.Handler):
    def emit(self, record):
        if not record.name.startswith("httpcore"):
            times.append((record.name, record.created))
logging.basicConfig(handlers=[Handler()], level="DEBUG")
for number in range(3):
    ask(f"question {{number}}")
    logging.warning("something happened")
print(times)
""",
        answers=["one", "two", "three"],
    )
    recorded.faithful()


def test_the_generator_of_numpy_goes_on_from_the_state_of_then(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    recorded = record(tmp_path, "import numpy\nprint(numpy.random.rand(3), numpy.random.randint(0, 100, 4))")
    recorded.faithful()


def test_a_program_that_ends_at_once_is_compared_too(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import os, time\nprint(time.time(), flush=True)\nos._exit(0)")
    recorded.faithful()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="Linux")
def test_paths_of_the_system_that_lead_to_files_are_turned_too(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("kept")
    recorded = record(
        tmp_path,
        """
        import os
        open("/proc/self/cwd/kept.txt", "a").write(" and more")
        number = os.open("kept.txt", os.O_RDONLY)
        with open(f"/proc/self/fd/{number}", "a") as file:
            file.write(", and more")
        print(open("kept.txt").read())
        """,
    )
    (tmp_path / "kept.txt").write_text("kept")
    found = recorded.replay()
    assert (tmp_path / "kept.txt").read_text() == "kept"
    assert found.output == recorded.output


def test_a_question_asked_too_often_gets_its_last_answer_where_the_nearest_is_wanted(tmp_path: Path) -> None:
    program = ASKING + 'for _ in range(COUNT): print(ask("again"))'
    recorded = record(tmp_path, program.replace("COUNT", "2"), answers=["one", "two"])
    (tmp_path / "program.py").write_text(program.replace("COUNT", "3"))
    found = recorded.replay("--on-deviation", "nearest")
    assert found.output == "one\ntwo\ntwo\n"
    assert found.report["fidelity"]["verdict"] == "deviated"


def test_of_several_alike_the_last_is_the_one_that_is_missing(tmp_path: Path) -> None:
    program = ASKING + 'for _ in range(COUNT): print(ask("again"))'
    recorded = record(tmp_path, program.replace("COUNT", "3"), answers=["1", "2", "3"])
    (tmp_path / "program.py").write_text(program.replace("COUNT", "2"))
    found = recorded.report()
    assert found["fidelity"]["first"]["seq"] == found["surface"]["unasked"][0]


def test_a_program_that_is_not_there_is_said_before_anything_is_started(tmp_path: Path) -> None:
    recorded = record(tmp_path, "print(1)")
    (tmp_path / "program.py").unlink()
    done = playhead(tmp_path, "replay", recorded.run, "--mode", "exact")
    assert done.returncode == 2
    assert "there is no program.py" in done.stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["sh", "-c", "echo hi"], "is not Python"),
        ([sys.executable, "-I", "program.py"], "no sitecustomize"),
        (["./isolated"], "no sitecustomize"),
    ],
)
def test_what_could_not_be_answered_is_not_started(tmp_path: Path, command: list[str], told: str) -> None:
    recorded = record(tmp_path, "print(1)")
    (tmp_path / "isolated").write_text(f"#!{sys.executable} -I\nopen('touched', 'w')\n")
    (tmp_path / "isolated").chmod(0o755)
    done = playhead(tmp_path, "replay", recorded.run, "--mode", "exact", "--", *command)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert not (tmp_path / "touched").exists()


def test_another_command_is_started_in_the_present_folder(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    recorded = record(there, "print('there')")
    (here / "program.py").write_text("print('here')")
    done = playhead(
        here, "replay", str(there / ".playhead" / "runs" / recorded.run), "--mode", "exact", "--", sys.executable, "program.py"
    )  # fmt: skip
    assert done.stdout == "here\n"


def test_folders_are_copied_and_removed_as_they_were(tmp_path: Path) -> None:
    program = """
    import os, shutil
    os.makedirs("made/a/b")
    for name in ("made/x", "made/a/x", "made/a/b/x"):
        open(name, "w").write(name)
    shutil.copytree("made", "copy")
    shutil.rmtree("made")
    print(sorted(os.listdir()), [sorted(names) for _, _, names in os.walk("copy")])
    with os.scandir("copy/a") as entries:
        print([(entry.name, entry.is_dir(), isinstance(entry, os.DirEntry)) for entry in entries if entry.is_dir()])
    """
    found = record(tmp_path, program).faithful()
    assert "answered from elsewhere" not in found.errors


MIXED = r"""
import os, subprocess
subprocess.run("echo first > log.txt", shell=True)
with open("log.txt", "a") as file:
    file.write("mine\n")
subprocess.run("echo second >> log.txt", shell=True)
with open("log.txt", "a") as file:
    file.write("and mine\n")
print(os.path.getsize("log.txt"), open("log.txt").read())
"""


def test_a_file_of_a_process_that_the_program_added_to_is_read_as_it_was(tmp_path: Path) -> None:
    recorded = record(tmp_path, MIXED)
    assert recorded.output == "27 first\nmine\nsecond\nand mine\n\n"
    (tmp_path / "log.txt").unlink()
    recorded.faithful()
    (tmp_path / "log.txt").write_text(recorded.output)
    recorded.faithful()
    (tmp_path / "program.py").write_text(MIXED.replace("and mine", "and yours"))
    found = recorded.replay()
    assert found.first["type"] == "write"
    assert "log.txt" in found.first["text"]


@pytest.mark.parametrize("left", ["it", "nothing", "something else"])
def test_a_file_that_was_there_and_was_added_to_is_read_as_it_was(tmp_path: Path, left: str) -> None:
    program = """
    import os
    for line in ("one", "two"):
        with open("log.txt", "a") as file:
            file.write(line + os.linesep)
    print(os.path.getsize("log.txt"), open("log.txt").read())
    """
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    recorded = record(tmp_path, program)
    assert recorded.output == "15 before\none\ntwo\n\n"
    if left == "nothing":
        log.unlink()
    elif left == "something else":
        log.write_text("now\n")
    recorded.faithful()
    for words in ('"one", "too"', '"two",'):
        (tmp_path / "program.py").write_text(textwrap.dedent(program.replace('"one", "two"', words)))
        assert recorded.report()["fidelity"]["verdict"] == "deviated", words
