"""In a replay a program sees its own files as it did then, also where another thread of it was slow to write them."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from tests.replay.again import Recorded, playhead, record


@pytest.mark.parametrize("look", ["os.path.exists(path)", "os.stat(path)", "open(path).close()"])
def test_a_file_that_another_thread_was_slow_to_write_is_seen_at_the_same_look(tmp_path: Path, look: str) -> None:
    """In a replay nothing is slow, and the file is there sooner than it was."""
    recorded = record(
        tmp_path,
        f"""
        import os, threading, time
        path = os.path.abspath("ready")

        def write():
            time.sleep(0.02)
            for _ in range(5_000_000):
                pass
            with open(path, "w") as file:
                file.write("ready")

        def is_there():
            try:
                return {look} is not False
            except FileNotFoundError:
                return False

        threading.Thread(target=write).start()
        looks = 0
        while not is_there():
            looks += 1
            time.sleep(0.01)
        print(looks)
        """,
    )
    (tmp_path / "ready").unlink()
    found = recorded.faithful()
    assert int(found.output) > 3
    assert not (tmp_path / "ready").exists()


def test_a_file_is_read_as_far_as_another_thread_had_written_it(tmp_path: Path) -> None:
    program = """
        import threading, time

        def write():
            for number in range(3):
                time.sleep(0.01)
                for _ in range(1_000_000):
                    pass
                with open("log", "a" if number else "w") as file:
                    file.write(f"line {number}\\n")

        threading.Thread(target=write).start()
        read = ""
        while len(read) < 21:
            time.sleep(0.01)
            try:
                with open("log") as file:
                    read = file.read()
            except FileNotFoundError:
                continue
            print(len(read))
        """
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        recorded = record(folder, program)
        # The recorder reads the file just before the program does: the other thread may have written in between.
        if _lengths_read(recorded) == set(recorded.output.split()):
            break
    (folder / "log").unlink()
    # How long a thread takes to write is not on record: with all cores taken, a replay may see another length.
    if recorded.replay().report["fidelity"]["verdict"] != "faithful":
        recorded.faithful()
    (folder / "program.py").write_text(textwrap.dedent(program).replace("line", "word"))
    assert "written with another content" in recorded.replay().first["text"]


def _lengths_read(recorded: Recorded) -> set[str]:
    told = playhead(recorded.folder, "show", recorded.run, "--reads", "--json", "--source", "open", "--grep", "log")
    return {str(read["value"]["size"]) for read in json.loads(told.stdout) if "size" in read["value"]}


@pytest.mark.parametrize("alive", [False, True])
def test_more_of_a_file_than_was_written_then_is_named(tmp_path: Path, alive: bool) -> None:
    """Of one who has ended it is a change; of one who has not it may be that, or that it was slower then."""
    program = f"""
        import os, threading
        written, read = threading.Event(), threading.Event()

        def write():
            with open("part", "w") as file:
                file.write("line")
            written.set()
            if {alive}:
                read.wait()

        thread = threading.Thread(target=write)
        thread.start()
        written.wait()
        if not {alive}:
            thread.join()
        with open("part") as file:
            print(file.read(), os.stat("part").st_size)
        os.unlink("part")
        read.set()
        thread.join()
        """
    recorded = record(tmp_path, program)
    assert recorded.output == "line 4\n"
    assert not recorded.faithful().report["surface"]["drift"]
    (tmp_path / "program.py").write_text(textwrap.dedent(program).replace('"line"', '"lines"'))
    found = recorded.replay()
    if alive:
        assert {"files"} == {one["source"] for one in found.report["surface"]["drift"]}
    else:
        assert "written with another content" in found.first["text"]
