from __future__ import annotations

import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.capture.launching import assert_whole, finished, launched, only_run, python, start, written

from playhead.capture.naming import program_name
from playhead.store.files import FileStore
from playhead.store.index import Index

PIPE = subprocess.PIPE


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["./bin/agent"], "agent"),
        (["agent.sh", "--x"], "agent.sh"),
        (["python", "agents/fix_login.py", "--issue", "3"], "fix_login"),
        (["/usr/bin/python3.12", "-u", "-X", "dev", "-Wignore", "run.py"], "run"),
        (["python", "-W", "error", "run.py"], "run"),
        (["python3", "-m", "agents.fix"], "agents.fix"),
        (["python3", "-um", "agents.fix"], "agents.fix"),
        (["python3", "-magents"], "agents"),
        (["python", "-c", "print(1)"], "python"),
        (["python", "app/__main__.py"], "app"),
        (["python"], "python"),
        (["pypy3", "-"], "pypy3"),
    ],
)
def test_a_run_is_named_after_its_program(argv: list[str], name: str) -> None:
    assert program_name(argv) == name


def test_the_record_says_what_was_run_what_it_wrote_and_how_it_ended(store: Path, tmp_path: Path) -> None:
    code, out, err = launched(store, ["sh", "-c", "echo out; echo err >&2; exit 3"], cwd=tmp_path)
    assert (code, out, err) == (3, b"out\n", b"err\n")
    run = only_run(store)
    assert_whole(run)
    events = list(run.events())
    assert {event.kind for event in events} == {
        "run.started", "process.started", "output.written", "process.exited", "run.finished",
    }  # fmt: skip
    first, process, last = events[0].data, events[1], events[-1].data
    argv = ["sh", "-c", "echo out; echo err >&2; exit 3"]
    assert (first["name"], first["input"]["intent"], first["input"]["payload"]) == ("sh", "sh", {"argv": argv})
    assert first["entrypoint"]["argv"] == argv
    assert first["entrypoint"]["cwd"] == str(tmp_path)
    assert first["entrypoint"]["executable"].endswith("/sh")
    assert (process.data["argv"], process.data["cwd"], process.parent) == (argv, str(tmp_path), "0")
    assert process.key is not None
    exited = next(event for event in events if event.kind == "process.exited")
    assert (exited.span, exited.data["exit_code"], exited.data["status"]) == (process.span, 3, "error")
    assert all(event.parent == process.span for event in events if event.kind == "output.written")
    assert (last["status"], last["output"], last["metadata"]) == ("error", {"exit_code": 3}, {"exit_code": 3})
    assert (written(run, "stdout"), written(run, "stderr")) == (b"out\n", b"err\n")


def test_large_output_on_both_streams_passes_unchanged_and_is_recorded_whole(store: Path) -> None:
    program = """
import os
for number in range(160):
    for stream in (1, 2):
        data = (b"%d %d " % (stream, number) + "grün ".encode() * 16) * 330
        data = data[:32767] + b"\\n"
        while data:
            data = data[os.write(stream, data):]
"""
    plain = subprocess.run(python(program), capture_output=True, check=True)
    assert len(plain.stdout) > 5_000_000 < len(plain.stderr)
    code, out, err = launched(store, python(program))
    assert (code, out == plain.stdout, err == plain.stderr) == (0, True, True)
    run = only_run(store)
    assert_whole(run)
    assert written(run, "stdout") == plain.stdout
    assert written(run, "stderr") == plain.stderr


def test_binary_output_passes_unchanged_and_is_recorded_as_bytes(store: Path, tmp_path: Path) -> None:
    data = os.urandom(400_000)
    (tmp_path / "data").write_bytes(data)
    code, out, _ = launched(store, ["cat", str(tmp_path / "data")])
    assert (code, out == data) == (0, True)
    assert written(only_run(store), "stdout") == data


def test_output_is_passed_on_at_once_not_when_a_line_or_the_program_ends(store: Path) -> None:
    with start(store, ["sh", "-c", "printf 'name? '; read name; echo hello $name"], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert os.read(process.stdout.fileno(), 100) == b"name? "
        process.stdin.write(b"Ada\n")
        process.stdin.close()
        assert process.stdout.read() == b"hello Ada\n"
    assert written(only_run(store), "stdout") == b"name? hello Ada\n"


def test_a_reader_that_takes_one_stream_first_does_not_stop_the_other(store: Path) -> None:
    program = """
import os, threading
def write(stream):
    for _ in range(64):
        os.write(stream, b"x" * 16383 + b"\\n")
threads = [threading.Thread(target=write, args=(stream,)) for stream in (1, 2)]
[thread.start() for thread in threads]
"""
    with start(store, python(program), stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        stop = threading.Timer(30, process.kill)  # where it does stop, fail instead of waiting for ever
        stop.start()
        assert len(process.stderr.read(1 << 20)) == 1 << 20  # while stdout is full and nobody reads it
        assert len(process.stdout.read()) == 1 << 20
        stop.cancel()
    assert process.returncode == 0


def test_stdin_reaches_the_program_untouched(store: Path) -> None:
    data = os.urandom(200_000)
    code, out, _ = launched(store, ["sha256sum"], input=data)
    assert (code, out.split()[0].decode()) == (0, hashlib.sha256(data).hexdigest())


def test_open_files_of_the_caller_reach_the_program(store: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    code, _, _ = launched(store, python(f"import os; os.write({write}, b'through')"), close_fds=False)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert (code, file.read()) == (0, b"through")


def test_a_reader_that_leaves_ends_the_program_as_it_would_without_us(store: Path) -> None:
    with start(store, ["yes"], stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(20) == 128 + signal.SIGPIPE
    assert_whole(only_run(store))


def test_processes_left_behind_keep_their_output_and_do_not_keep_us(store: Path, tmp_path: Path) -> None:
    script = "(while [ ! -e go ]; do sleep 0.02; done; echo late) & echo early"
    with start(store, ["sh", "-c", script], stdout=PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.wait(20) == 0
        (tmp_path / "go").touch()
        assert process.stdout.read() == b"early\nlate\n"
    run = only_run(store)
    assert_whole(run)
    assert written(run, "stdout") == b"early\n"
    assert any("left running" in event.data["text"] for event in run.events() if event.kind == "note.added")


def test_a_program_killed_from_outside_is_recorded_with_its_signal(store: Path) -> None:
    with start(store, ["sh", "-c", "echo $$; exec sleep 30"], stdout=PIPE) as process:
        assert process.stdout is not None
        os.kill(int(process.stdout.readline()), signal.SIGKILL)
        assert process.wait(20) == 128 + signal.SIGKILL
    run = only_run(store)
    assert_whole(run)
    assert finished(run)["error"] == {"type": "ProgramKilled", "message": "the program was killed by SIGKILL"}
    assert finished(run)["metadata"] == {"exit_code": -9}


def test_sigterm_to_the_launcher_reaches_the_program_and_the_end_is_recorded(store: Path) -> None:
    script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    with start(store, ["sh", "-c", script], stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait(20) == 7
        assert process.stdout.read() == b"bye\n"
    run = only_run(store)
    assert_whole(run)
    assert finished(run)["metadata"] == {"exit_code": 7}
    assert written(run, "stdout") == b"ready\nbye\n"


COUNTING = """
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
print("interrupts:", len(seen), flush=True)
sys.exit(9)
"""


def test_sigint_to_the_group_reaches_the_program_once(store: Path) -> None:
    with start(store, python(COUNTING), stdout=PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 9
        assert process.stdout.read() == b"interrupts: 1\n"
    assert_whole(only_run(store))


def test_sigint_to_the_launcher_alone_reaches_the_program_too(store: Path) -> None:
    with start(store, python(COUNTING), stdout=PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 9
        assert process.stdout.read() == b"interrupts: 1\n"


def test_a_killed_launcher_leaves_a_run_that_can_be_read_and_says_what_was_in_flight(store: Path) -> None:
    with start(store, ["sh", "-c", "echo first; exec sleep 30"], stdout=PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        deadline = time.monotonic() + 20
        while written(only_run(store), "stdout") != b"first\n":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
        process.wait(20)
        os.killpg(process.pid, signal.SIGKILL)
    run = only_run(store)
    verification = run.verify()
    assert (verification.integrity.verdict, verification.completeness.verdict) == ("intact", "unfinished")
    assert [item["kind"] for item in run.readiness().in_flight] == ["process.started"]
    with Index(store) as index:
        assert index.list_runs()[0]["status"] == "crashed"


AGENT = """
import os, subprocess, sys, playhead

@playhead.tool
def add(a, b):
    return a + b

@playhead.agent("adder")
def agent(a, b):
    print("working", flush=True)
    assert "PLAYHEAD_RUN" not in os.environ, "programs that an agent starts are no part of its run"
    total = add(a, b)
    if total > 100:
        raise ValueError("too much for me")
    return {"sum": total, "raw": b"\\xff", "pair": (1, 2), "$odd": None}

for pair in sys.argv[1:]:
    agent(*map(int, pair.split("+")))
"""


@pytest.fixture
def agent(tmp_path: Path) -> list[str]:
    (tmp_path / "agent.py").write_text(AGENT)
    return [sys.executable, str(tmp_path / "agent.py")]


def test_an_agent_inside_adopts_the_run_and_its_answer_is_the_runs(store: Path, agent: list[str]) -> None:
    code, out, err = launched(store, [*agent, "1+2"])
    assert (code, out, err) == (0, b"working\n", b"")
    run = only_run(store)
    assert_whole(run)
    assert run.name == "adder"
    assert run.input == {"intent": "adder", "payload": {"a": 1, "b": 2}, "metadata": {}}
    result = run.playback()
    assert result.payload == {"sum": 3, "raw": b"\xff", "pair": (1, 2), "$odd": None}
    assert result.metadata == {"exit_code": 0}
    assert {"tool.called", "output.written", "process.exited"} <= {event.kind for event in run.events()}


def test_of_several_agents_in_one_program_the_first_adopts_the_run(store: Path, agent: list[str]) -> None:
    code, _, _ = launched(store, [*agent, "1+2", "20+22"])
    assert code == 0
    run = only_run(store)
    assert_whole(run)
    assert run.playback().payload["sum"] == 3
    started = [event.data.get("adopts", False) for event in run.events() if event.kind == "step.started"]
    assert started == [True, False]


@pytest.mark.parametrize("attempt", range(4))
def test_of_several_processes_that_begin_at_once_one_adopts_the_run(store: Path, tmp_path: Path, attempt: int) -> None:
    (tmp_path / "program.py").write_text(
        "import os, sys, time, playhead\n"
        "@playhead.agent('worker')\n"
        "def worker(n):\n"
        "    time.sleep(0.01 * (3 - n))\n"
        "    return f'answer {n}'\n"
        "start = time.time() + 0.2\n"
        "for n in range(4):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(max(0, start - time.time()))\n"
        "        worker(n)\n"
        "        os._exit(0)\n"
        "for n in range(4): os.wait()\n"
    )
    code, _, _ = launched(store, [sys.executable, str(tmp_path / "program.py")])
    assert code == 0
    run = only_run(store)
    assert_whole(run)
    adopting = [e for e in run.events() if e.kind == "step.started" and e.data.get("adopts")]
    assert len(adopting) == 1
    asked = adopting[0].data["input"]["payload"]["n"]
    assert run.playback(envelope={"intent": "worker", "payload": {"n": asked}}).payload == f"answer {asked}"


def test_the_error_of_an_agent_is_the_error_of_the_run(store: Path, agent: list[str]) -> None:
    code, _, err = launched(store, [*agent, "99+2"])
    assert code == 1
    assert b"ValueError: too much for me" in err
    last = finished(only_run(store))
    assert (last["status"], last["error"]["type"], last["error"]["message"]) == (
        "error",
        "ValueError",
        "too much for me",
    )


def test_an_agent_in_a_program_that_the_agent_starts_is_a_run_of_its_own(store: Path, tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text("import playhead\nwith playhead.record('inner') as run: run.output = 'in'")
    (tmp_path / "outer.py").write_text(
        "import playhead, subprocess, sys\n"
        "with playhead.record('outer') as run:\n"
        f"    subprocess.run([sys.executable, {str(tmp_path / 'inner.py')!r}], check=True)\n"
        "    run.output = 'out'\n"
    )
    code, _, err = launched(store, [sys.executable, str(tmp_path / "outer.py")])
    assert (code, err) == (0, b"")
    with Index(store) as index:
        assert sorted(run["name"] for run in index.list_runs()) == ["inner", "outer"]


def test_what_an_agent_redacted_is_counted_in_the_run(store: Path) -> None:
    secret = "sk-ant-" + "a1B2" * 8
    program = f"import playhead\nwith playhead.record('quiet', input='{secret}'):\n    print('{secret}')"
    code, out, _ = launched(store, python(program))
    assert (code, out.decode()) == (0, secret + "\n")
    run = only_run(store)
    assert secret not in "".join(
        line.decode() for line in run.lines() if b"output.written" in line or b"adopts" in line
    )
    assert finished(run)["redacted"]["anthropic-key"] >= 3  # the arguments twice, the output, the agent's input


def test_what_was_redacted_in_the_answer_of_an_agent_is_counted(store: Path) -> None:
    program = "import playhead\nwith playhead.record('quiet') as run:\n    run.output = {'password': 'hunter22'}"
    launched(store, python(program))
    run = only_run(store)
    assert run.playback(plain=True).payload == {"password": {"$redacted": "field"}}
    assert finished(run)["redacted"]["field"] == 1


def test_what_was_redacted_in_what_a_program_read_last_is_counted(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "correct-horse-battery-7781")
    launched(store, python("import os, playhead\nplayhead.note('begun')\nos.environ['SHOP_API_KEY']"))
    assert finished(only_run(store))["redacted"] == {"field": 1}


def test_a_secret_written_in_two_halves_is_redacted(store: Path) -> None:
    program = "import os\nos.write(1, b'key sk-ant-a1B2a1B2')\nos.write(1, b'a1B2a1B2a1B2 end\\n')"
    code, out, _ = launched(store, python(program))
    assert (code, out) == (0, b"key sk-ant-a1B2a1B2a1B2a1B2a1B2 end\n")
    assert written(only_run(store), "stdout") == b"key [redacted:anthropic-key] end\n"


def test_several_processes_and_the_launcher_write_one_dense_chain(store: Path, tmp_path: Path) -> None:
    (tmp_path / "writer.py").write_text(
        "import os, playhead, sys\n"
        "with playhead.record(sys.argv[1]):\n"
        "    for number in range(100):\n"
        "        playhead.note(f'note {number}')\n"
        "        os.write(1, b'%d\\n' % number)\n"  # print() makes two writes of it, between which others write
    )
    command = " & ".join(f"{sys.executable} {tmp_path / 'writer.py'} w{number}" for number in range(3)) + " & wait"
    code, out, err = launched(store, ["sh", "-c", command])
    assert (code, len(out.split()), err) == (0, 300, b"")
    run = only_run(store)
    assert_whole(run)
    assert sum(event.kind == "note.added" and event.data["text"].startswith("note") for event in run.events()) == 300
    assert sorted(written(run, "stdout").split()) == sorted(out.split())


def test_a_run_inside_a_recorded_program_knows_where_it_came_from(store: Path) -> None:
    outer = "run_" + "0" * 26
    code, _, _ = launched(store, ["true"], env={"PLAYHEAD_RUN": outer})
    assert code == 0
    assert next(only_run(store).events()).data["origin"] == {"run": outer, "mode": "child"}


def test_a_full_disk_costs_events_and_never_the_program(store: Path, tmp_path: Path) -> None:
    program = "for number in range(2000): print('line', number, 'x' * 40, flush=True)"

    def limit() -> None:  # every write beyond it fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    code, out, _ = launched(store, python(program), preexec_fn=limit)
    assert code == 0
    assert out.count(b"\n") == 2000
    verification = only_run(store).verify()
    assert verification.integrity.verdict == "intact"
    assert verification.completeness.verdict != "complete"


def test_a_store_elsewhere_is_where_the_agent_records_too(tmp_path: Path, agent: list[str]) -> None:
    elsewhere = tmp_path / "deep" / "store"
    code, _, _ = launched(elsewhere, [*agent, "1+1"], cwd=tmp_path)
    assert code == 0
    assert only_run(elsewhere).playback().payload["sum"] == 2
    assert not (tmp_path / ".playhead").exists()
    assert list(FileStore(tmp_path / ".playhead").runs()) == []


def test_without_a_stdout_of_our_own_no_output_ends_up_in_the_record(store: Path) -> None:
    with start(store, ["echo", "hi"], stdout=PIPE, preexec_fn=lambda: os.close(1)) as process:
        assert process.wait(20) == 0
    run = only_run(store)
    assert_whole(run)
    assert written(run, "stdout") == b"hi\n"
