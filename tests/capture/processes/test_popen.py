"""Every process that is started with `subprocess` is a call in the timeline, whole, and the agent notices nothing."""

from __future__ import annotations

import gc
import os
import platform
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen, TimeoutExpired, run  # bound before any run, as in most programs
from typing import Any

import pytest
from tests.capture.processes.seen import events, gaps, only, processes

import playhead
from playhead.capture.scope import muted
from playhead.store.index import Index

PY = sys.executable


def wait_for_end(process: Any) -> None:
    """Return when a process has ended, and nobody has asked it how."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_a_process_is_asked_and_answered(tmp_path: Path) -> None:
    with playhead.record("x"):
        done = run(["sh", "-c", "cat; echo oops >&2; exit 3"], input="hello ü\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "hello ü\n", "oops\n")
    asked, came = only()
    assert asked == {
        "argv": ["sh", "-c", "cat; echo oops >&2; exit 3"],
        "cwd": str(tmp_path),
        "streams": {"stdin": "pipe", "stdout": "pipe", "stderr": "pipe"},
    }
    assert (came["status"], came["exit_code"]) == ("error", 3)
    assert (came["stdin"], came["stdout"], came["stderr"]) == ("hello ü\n", "hello ü\n", "oops\n")
    assert {name: sum(told["sizes"]) for name, told in came["chunks"].items()} == {"stdin": 9, "stdout": 9, "stderr": 5}
    assert came["pid"] > 0
    assert came["exit_us"] >= max(came["chunks"]["stdout"]["at_us"])


def test_times_count_from_the_first_event_on_a_machine_that_has_no_time_for_us(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(numbers: list[int]) -> None:
        time.sleep(0.2)

    monkeypatch.setattr("playhead.capture.processes.call.inherit", slowly)
    with playhead.record("x"):
        run(["true"], check=True)
    assert only()[1]["exit_us"] >= 200_000


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.call(["true"]),
        lambda: subprocess.check_call(["true"]),
        lambda: subprocess.check_output(["true"]),
        lambda: subprocess.getoutput("true"),
        lambda: subprocess.getstatusoutput("true"),
        lambda: os.popen("true").close(),
        lambda: Popen(("true",)).wait(),
        lambda: Popen([b"true"]).communicate(),
        lambda: Popen(Path("/bin/true")).wait(),
    ],
)
def test_all_that_is_built_on_popen_is_covered(start: Any) -> None:
    with playhead.record("x"):
        start()
    asked, came = only()
    assert asked["argv"][0].endswith("true")
    assert came["exit_code"] == 0


def test_a_command_for_the_shell_is_kept_as_it_is() -> None:
    with playhead.record("x"):
        subprocess.check_output("echo $0 'a  b' | cat", shell=True)
        run(["echo $1", "x", "y"], shell=True, stdout=PIPE, executable="/bin/bash")
    (one, came), (two, _) = processes()
    assert (one["argv"], one["shell"], came) == (["echo $0 'a  b' | cat"], True, came)
    assert came is not None
    assert came["stdout"] == "/bin/sh a  b\n"
    with Index(Path(".playhead")) as index:  # calls of one sort have one name
        assert index.query("SELECT name FROM calls ORDER BY seq")[1] == [("echo",), ("echo",)]
    assert (two["argv"], two["shell"], two["options"]) == (["echo $1", "x", "y"], True, {"executable": "/bin/bash"})


def test_of_the_environment_only_the_difference_is_kept_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAKEN_AWAY", "1")
    secret = "correct-horse-battery-staple-7781"
    env = {**os.environ, "ADDED": "2", "DB_PASSWORD": secret}
    del env["TAKEN_AWAY"]
    with playhead.record("x"):
        done = run(["sh", "-c", "echo $DB_PASSWORD"], env=env, capture_output=True, text=True)
        run(["true"], env=os.environ)
    assert done.stdout == secret + "\n"
    (asked, came), (same, _) = processes()
    assert came is not None
    assert set(asked["env"]) == {"ADDED", "DB_PASSWORD", "TAKEN_AWAY"}
    assert (asked["env"]["ADDED"], asked["env"]["TAKEN_AWAY"]) == ("2", None)
    assert "env" not in same
    assert secret not in str(asked) + str(came)


def test_a_conversation_is_recorded_in_its_order() -> None:
    with playhead.record("x"), Popen(["cat"], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for turn in range(3):
            server.stdin.write(f"{turn}\n")
            assert server.stdout.readline() == f"{turn}\n"
            assert not any(event.kind == "process.exited" for event in events()), "it goes on"
    _asked, came = only()
    assert (came["stdin"], came["stdout"], came["exit_code"]) == ("0\n1\n2\n", "0\n1\n2\n", 0)
    assert came["chunks"]["stdin"]["sizes"] == came["chunks"]["stdout"]["sizes"] == [2, 2, 2]
    told = zip(came["chunks"]["stdin"]["at_us"], came["chunks"]["stdout"]["at_us"], strict=True)
    order = [at for pair in told for at in pair]
    assert order == sorted(order)


@pytest.mark.parametrize("timeout", [None, 60])
def test_what_communicate_reads_comes_in_the_pieces_in_which_it_was_written(timeout: float | None) -> None:
    code = "import os, time\nfor n in b'0', b'1', b'2': os.write(1, n + b'\\n'); time.sleep(.05)"
    with playhead.record("x"):
        process = Popen([PY, "-c", code], stdin=PIPE, stdout=PIPE, stderr=PIPE)
        assert process.communicate(b"in", timeout=timeout) == (b"0\n1\n2\n", b"")
    _, came = only()
    chunks = came["chunks"]
    assert (chunks["stdin"]["sizes"], chunks["stdout"]["sizes"]) == ([2], [2, 2, 2])
    first, second, third = chunks["stdout"]["at_us"]
    assert chunks["stdin"]["at_us"][0] <= first < second < third <= came["exit_us"]


@pytest.mark.parametrize(
    ("argv", "options", "error"),
    [
        (["no-such-program"], {}, FileNotFoundError),
        (["true"], {"cwd": "no-such-folder"}, FileNotFoundError),
        (["/etc"], {}, PermissionError),
        (["a\0b"], {}, ValueError),
        ([], {}, IndexError),
        (["true", 5], {}, TypeError),
        (5, {}, TypeError),
        (["true"], {"stdout": "x"}, AttributeError),
        (["true"], {"bufsize": "x"}, TypeError),
        (["true"], {"no_such_option": 1}, TypeError),
    ],
)
def test_a_process_that_cannot_be_started_is_closed_with_the_error(
    argv: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as bare:
        Popen(argv, **options)
    with playhead.record("x"), pytest.raises(error) as recorded:
        Popen(argv, **options)
    assert (type(recorded.value), str(recorded.value)) == (type(bare.value), str(bare.value))
    _, came = only()
    assert (came["status"], came["error"]["type"], came["error"]["message"]) == (
        "error",
        error.__name__,
        str(bare.value),
    )


def test_what_is_kept_are_the_bytes_of_the_pipe() -> None:
    with playhead.record("x"):
        done = run(["printf", r"a\r\nb\r"], capture_output=True, text=True)
        binary = run(["printf", r"\377\000\001"], capture_output=True)
        latin = run(["printf", r"\374"], capture_output=True, encoding="latin-1")
    assert (done.stdout, binary.stdout, latin.stdout) == ("a\nb\n", b"\xff\0\1", "ü")
    assert [came and came["stdout"] for _, came in processes()] == ["a\r\nb\r", b"\xff\0\1", b"\xfc"]


def test_streams_that_lead_elsewhere_are_named(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo out; echo err >&2"]
    with playhead.record("x"), open("log", "wb") as log:
        assert run(command, stdout=PIPE, stderr=STDOUT).stdout == b"out\nerr\n"
        run(command, stdout=log, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        run(["true"])
    assert Path("log").read_bytes() == b"out\n"
    (both, came), (file, nothing), (ours, _) = processes()
    assert came is not None
    assert nothing is not None
    assert (both["streams"], came["stdout"], "stderr" in came) == (
        {"stdout": "pipe", "stderr": "stdout"},
        "out\nerr\n",
        False,
    )
    assert file["streams"] == {"stdin": "null", "stdout": "log", "stderr": "null"}
    assert not {"stdout", "stderr", "streams"} & {*nothing, *ours}
    assert gaps() == []


def test_a_timeout_is_the_callers_and_the_process_goes_on() -> None:
    with playhead.record("x"):
        process = Popen(["sh", "-c", "echo first; sleep .7; echo second"], stdout=PIPE, stderr=PIPE)
        with pytest.raises(TimeoutExpired):
            process.wait(0.05)
        with pytest.raises(TimeoutExpired) as caught:
            process.communicate(timeout=0.3)
        assert caught.value.output == b"first\n"
        assert process.poll() is None
        assert process.communicate() == (b"first\nsecond\n", b"")
    _, came = only()
    assert (came["status"], came["exit_code"], came["stdout"]) == ("ok", 0, "first\nsecond\n")
    assert came["chunks"]["stdout"]["sizes"] == [6, 7]
    assert came["polls"] == 3


def test_of_input_only_what_was_written_is_told() -> None:
    given = os.urandom(500_000).hex().encode()
    with playhead.record("x"), Popen(["sleep", "60"], stdin=PIPE, stdout=PIPE) as process:
        with pytest.raises(TimeoutExpired):
            process.communicate(given, timeout=0.2)
        process.kill()
        process.communicate()
    _, came = only()
    assert 0 < len(came["stdin"]) < len(given)
    assert given.startswith(came["stdin"].encode())


def test_signals_that_the_agent_sends_are_told() -> None:
    with playhead.record("x"):
        process = Popen(["sleep", "60"])
        process.send_signal(signal.SIGSTOP)
        process.kill()
        process.wait()
        process.kill()  # too late, and does nothing
        with pytest.raises(TimeoutExpired):
            run(["sleep", "60"], timeout=0.05)
    (_, one), (_, two) = processes()
    assert one is not None
    assert two is not None
    assert (one["status"], one["exit_code"]) == ("error", -9)
    assert [sent["signal"] for sent in one["signals"]] == [signal.SIGSTOP, signal.SIGKILL]
    assert (two["exit_code"], [sent["signal"] for sent in two["signals"]]) == (-9, [signal.SIGKILL])


def test_the_end_is_told_when_exit_and_output_are_at_their_end() -> None:
    def closed() -> bool:
        return any(event.kind == "process.exited" for event in events())

    with playhead.record("x"):
        process = Popen(["echo", "later"], stdout=PIPE)
        assert process.wait() == 0
        assert not closed(), "its output has not been read"
        assert process.stdout is not None
        assert process.stdout.read() == b"later\n"
        assert closed()
        process.stdout.close()
    assert only()[1]["stdout"] == "later\n"


def test_a_pipe_that_outlives_its_popen_is_read_to_the_end() -> None:
    with playhead.record("x"):
        out = Popen(["sh", "-c", "sleep .1; echo a; echo b"], stdout=PIPE).stdout
        assert out is not None
        gc.collect()
        assert [*out] == [b"a\n", b"b\n"]
        out.close()
        run(["true"])  # which asks after those that were left
    assert [came and came.get("stdout") for _, came in processes()] == ["a\nb\n", None]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_process_that_nobody_waits_for_is_closed_when_it_is_collected() -> None:
    with playhead.record("x"):
        process = Popen(["true"])
        wait_for_end(process)
        del process
        circle: list[Any] = [Popen(["sleep", ".2"])]
        circle.append(circle)
        del circle
        gc.collect()
    (_, one), (_, two) = processes()
    assert one is not None
    assert two is not None
    assert (one["status"], one["exit_code"]) == ("ok", 0)
    assert (two["status"], two["error"]["type"]) == ("cancelled", "LeftRunning")


def test_a_process_that_outlives_the_run_is_closed_with_what_was_read() -> None:
    with playhead.record("x"):
        process = Popen(["cat"], stdin=PIPE, stdout=PIPE, bufsize=0)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"during")
        assert process.stdout.read(6) == b"during"
    assert process.communicate(b" and after") == (b" and after", None)
    _, came = only()
    assert (came["status"], came["error"]["type"], came["stdin"], came["stdout"]) == (
        "cancelled",
        "RunEnded",
        "during",
        "during",
    )


def test_a_pipeline_is_two_processes_and_what_flows_between_them_is_theirs() -> None:
    with playhead.record("x"):
        one = Popen(["echo", "text"], stdout=PIPE)
        two = Popen(["tr", "a-z", "A-Z"], stdin=one.stdout, stdout=PIPE)
        assert one.stdout is not None
        one.stdout.close()
        assert two.communicate()[0] == b"TEXT\n"
        one.wait()
    assert [came and came["stdout"] for _, came in processes()] == ["", "TEXT\n"]
    assert gaps() == []


def test_long_output_is_kept_up_to_a_limit_and_the_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead._limits.PROCESS_BYTES_MAX", 100_000)
    for read in (lambda p: p.communicate()[0], lambda p: p.stdout.read(), lambda p: b"".join(p.stdout)):
        with playhead.record("x"), Popen(["seq", "50000"], stdout=PIPE, stderr=PIPE) as process:
            out = read(process)
        _, came = only()
        assert len(out) > 200_000
        assert came["stdout"].encode() == out[:100_000]
        assert gaps() == [("process_output_too_large", None)]
        assert playhead.load("@last").readiness().replayable is False


def test_long_output_is_kept_beside_the_timeline() -> None:
    with playhead.record("x") as recorded:
        text = run(["seq", "20000"], stdout=PIPE).stdout
        binary = run(["head", "-c", "100000", "/dev/urandom"], capture_output=True).stdout
    (_, one), (_, two) = processes()
    assert one is not None
    assert two is not None
    assert (one["stdout"].encode(), two["stdout"]) == (text, binary)
    assert sum(one["chunks"]["stdout"]["sizes"]) == len(text)
    assert recorded.path is not None
    assert (recorded.path / "timeline.jsonl").stat().st_size < 20_000
    assert playhead.verify("@last").integrity.verdict == "intact"


def test_a_secret_is_found_where_it_lies_in_two_pieces() -> None:
    secret = "sk-proj-" + "Ab3dE6gH9" * 5
    halves = secret[:20][::-1], secret[20:][::-1]  # in the command it does not stand
    code = (
        "import sys, time; w = sys.stdout; w.write({!r}[::-1]); w.flush(); time.sleep(.1); w.write({!r}[::-1] + ' end')"
    )
    with playhead.record("x"):
        assert run([PY, "-c", code.format(*halves)], capture_output=True, text=True).stdout == secret + " end"
        long = run(["cat"], input=("line\n" * 10_000) + secret, stdout=PIPE, text=True)
    assert long.stdout.endswith(secret)
    for _, came in processes():
        assert came is not None
        assert came["stdout"].endswith("end") or came["stdout"].startswith("line\n" * 10_000)
        assert secret[20:] not in str(came)
        assert sum(came["chunks"]["stdout"]["sizes"]) == len(came["stdout"])


# Whose process it is.


def test_what_infrastructure_starts_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import platform, subprocess; platform._uname_cache = None; platform.uname().processor"
    with playhead.record("x"):
        exec(code)
        assert platform.libc_ver()
        token = muted.set(True)
        run(["true"])
        muted.reset(token)
    with playhead.record("y", capture=False):
        run(["true"])
    assert processes("x") == processes("y") == []


@pytest.mark.usefixtures("with_git")
def test_the_recorders_own_git_is_not_recorded(tmp_path: Path) -> None:
    run(["git", "init", "-q", str(tmp_path)], check=True)
    with playhead.record("x"):
        run(["true"])
    assert [asked["argv"] for asked, _ in processes()] == [["true"]]


def test_a_process_belongs_to_the_tool_and_the_lane_that_started_it() -> None:
    @playhead.tool
    def work() -> None:
        threads = [threading.Thread(target=run, args=(["true"],)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with playhead.record("x"):
        work()
    all_of = events()
    (tool,) = [event for event in all_of if event.kind == "tool.called"]
    told = [event for event in all_of if event.kind.startswith("process.")]
    assert {event.parent for event in told} == {tool.span}
    by_lane: dict[str, list[str]] = {}
    for event in told:
        by_lane.setdefault(event.lane, []).append(event.kind)
    assert by_lane == {lane: ["process.started", "process.exited"] for lane in ("0.1", "0.2")}


def test_two_runs_at_once_have_their_own() -> None:
    def agent(name: str) -> None:
        with playhead.record(name):
            for _ in range(5):
                assert run(["echo", name], stdout=PIPE, text=True).stdout == f"{name}\n"

    threads = [threading.Thread(target=agent, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("one", "two"):
        assert [came and came["stdout"] for _, came in processes(name)] == [f"{name}\n"] * 5


def test_the_key_is_of_the_command_and_how_it_is_run() -> None:
    with playhead.record("x"):
        for options in ({}, {"env": {}}, {"stdout": PIPE}, {"cwd": "/"}, {"shell": True}, {"start_new_session": True}):
            run(["true"], **options)  # type: ignore[call-overload]
    one, env, piped, cwd, shell, session = (event.key for event in events() if event.kind == "process.started")
    assert one == env == piped
    assert len({one, cwd, shell, session}) == 4


# What the agent may not notice.

QUESTIONS: list[Any] = [
    lambda: run(["echo", "x"], capture_output=True),
    lambda: run("echo $((1+1))", shell=True, capture_output=True, text=True),
    lambda: run(["cat"], input=b"\0\xff" * 100_000, capture_output=True),
    lambda: run(["cat"], input=memoryview(b"view"), capture_output=True),
    lambda: run(["cat"], input=bytearray(b"array"), capture_output=True),
    lambda: run(["sh", "-c", "exit 7"], check=True),
    lambda: run(["sh", "-c", "echo x; kill -9 $$"], check=True, stdout=PIPE),
    lambda: run(["sh", "-c", "echo partly; exec sleep 60"], capture_output=True, timeout=0.3),
    lambda: run(["true"], input=b"x" * 1_000_000, capture_output=True).returncode,  # nobody reads it
    lambda: run(["no-such-program"]),
    lambda: run(iter(["echo", "once"]), stdout=PIPE).stdout,
    lambda: run(["sh", "-c", "echo $$ >/dev/null; ps -o sid= -p $$"], stdout=PIPE, start_new_session=True).returncode,
    lambda: run(["sh", "-c", "umask"], stdout=PIPE, umask=0o27).stdout,
    lambda: run(["pwd"], stdout=PIPE, cwd="/").stdout,
    lambda: run(["true"], preexec_fn=lambda: None).returncode,
    lambda: run(["sh", "-c", "exit 1"], preexec_fn=os.setpgrp, stdout=PIPE).returncode,
    lambda: run(["true"], preexec_fn=lambda: 1 / 0),
    lambda: run(["true"], process_group=0, close_fds=False).returncode,
    lambda: subprocess.getstatusoutput("echo x; exit 3"),
    lambda: os.popen("exit 3").close(),
    lambda: os.popen("echo x").read(),
    lambda: (pipe := os.popen("cat >/dev/null", "w")).write("x") and pipe.close(),
    lambda: subprocess.check_output(["sh", "-c", "echo x; echo y >&2"], stderr=STDOUT),
]


def outcome(question: Any) -> Any:
    try:
        answer = question()
    except Exception as error:
        return type(error), str(error), vars(error) if isinstance(error, subprocess.SubprocessError) else None
    return (type(answer), vars(answer)) if isinstance(answer, subprocess.CompletedProcess) else answer


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_the_same_bare_and_recorded(question: Any) -> None:
    bare = outcome(question)
    with playhead.record("x"):
        recorded = outcome(question)
    if isinstance(bare, tuple) and isinstance(bare[1], dict):
        bare[1].pop("args", None), recorded[1].pop("args", None)
    assert recorded == bare
    assert gaps() == []
    assert len(processes()) == 1


def described(process: Any) -> list[Any]:
    out: list[Any] = [type(process), sorted(vars(process))]
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            inner = getattr(stream, "buffer", stream)
            raw = getattr(inner, "raw", inner)
            out += [repr(type(stream)), repr(type(inner)), inner.__sizeof__() if inner is not raw else None, raw.mode]
            out += [repr(raw).partition("name")[0], stream.closed, raw.isatty(), raw.seekable(), raw.closefd]
            if inner is not stream:
                out += [stream.encoding, stream.errors, stream.line_buffering, stream.write_through]
    return out


@pytest.mark.parametrize(
    "options",
    [{}, {"bufsize": 0}, {"bufsize": 77}, {"bufsize": -7}, {"text": True}, {"text": True, "bufsize": 1}, {"encoding": "latin-1"},
     {"pipesize": 8192}],
)  # fmt: skip
def test_the_objects_are_the_same_bare_and_recorded(options: dict[str, Any]) -> None:
    def look() -> list[Any]:
        with Popen(["true"], stdin=PIPE, stdout=PIPE, stderr=PIPE, **options) as process:
            return described(process)

    bare = look()
    with playhead.record("x"):
        recorded = look()
    assert recorded == bare


def test_line_buffering_of_bytes_warns_as_ever() -> None:
    with pytest.warns(RuntimeWarning) as bare:
        Popen(["true"], stdout=PIPE, bufsize=1).communicate()
    with playhead.record("x"), pytest.warns(RuntimeWarning) as recorded:
        Popen(["true"], stdout=PIPE, bufsize=1).communicate()
    told = [[(str(one.message), one.filename, one.lineno) for one in warned] for warned in (bare, recorded)]
    assert told[0] == told[1]


def test_a_pipe_that_does_not_block_answers_as_ever() -> None:
    with playhead.record("x"), Popen(["cat"], stdin=PIPE, stdout=PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        assert process.stdout.read() is None
        assert process.stdout.read(5) is None
        buffer = bytearray(5)
        assert process.stdout.readinto(buffer) is None  # type: ignore[attr-defined]
        process.stdin.write(b"abc")
        process.stdin.close()
        process.wait()
        assert process.stdout.readinto(buffer) == 3  # type: ignore[attr-defined]
        assert process.stdout.read() == b""
    assert only()[1]["stdout"] == "abc"
    assert gaps() == []


def test_everything_is_put_back() -> None:
    before, module = dict(Popen.__dict__), dict(subprocess.__dict__)
    with playhead.record("x"):
        assert Popen.__dict__["__init__"] is not before["__init__"]
    assert dict(Popen.__dict__) == before
    assert dict(subprocess.__dict__) == module


def test_a_popen_of_another_shape_is_left_alone_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Popen):  # type: ignore[type-arg]
        pass

    monkeypatch.setattr(subprocess, "Popen", Other)
    with playhead.record("x"):
        assert subprocess.run(["echo", "x"], stdout=PIPE).stdout == b"x\n"
    assert processes() == []
    ((reason, detail),) = gaps()
    assert (reason, detail["source"]) == ("not_captured", "subprocess")


def test_output_that_the_agent_reads_past_its_files_is_named() -> None:
    with playhead.record("x"):
        process = Popen(["echo", "x"], stdout=PIPE)
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 10) == b"x\n"
        process.wait()
        process.stdout.close()
        outer, inner = pty.openpty()
        Popen(["echo", "on a terminal"], stdout=inner).wait()
        os.read(outer, 100), os.close(outer), os.close(inner)
        outer, inner = os.pipe()
        run(["true"], stdout=inner)
        os.close(outer), os.close(inner)
    told = [detail["where"] for reason, detail in gaps() if reason == "not_captured"]
    assert told == ["stdout of echo, by its descriptor", "stdout of true, by its descriptor"]


def test_a_disk_that_fails_does_not_reach_the_agent(failing: Any) -> None:
    with playhead.record("x"):
        failing(1)
        assert run(["echo", "x"], stdout=PIPE).stdout == b"x\n"
        failing(10**9)


# Rough weather.


def test_a_forked_child_says_nothing_about_the_processes_of_its_parent() -> None:
    with playhead.record("x"):
        process = Popen(["cat"], stdin=PIPE, stdout=PIPE)
        pid = os.fork()
        if pid == 0:
            process.poll()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
            run(["echo", "child"], stdout=PIPE)
            os._exit(0)
        os.waitpid(pid, 0)
        assert process.communicate(b"parent") == (b"parent", None)
    (_, one), (child, two) = processes()
    assert one is not None
    assert two is not None
    assert (one["stdout"], two["stdout"], child["argv"]) == ("parent", "child\n", ["echo", "child"])
    assert [event.lane for event in events() if event.kind == "process.exited"] == ["0.1", "0"]


def test_a_killed_agent_leaves_the_evidence(tmp_path: Path) -> None:
    code = (
        "import os, playhead, signal, subprocess\n"
        "with playhead.record('x'):\n"
        "    subprocess.Popen(['sleep', '.2'])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert run([PY, "-c", code]).returncode == -9
    ((asked, came),) = processes("x")
    assert (asked["argv"], came) == (["sleep", ".2"], None)


def test_an_interpreter_that_ends_with_open_pipes_ends_quietly() -> None:
    code = (
        "import playhead, subprocess\n"
        "with playhead.record('x'):\n"
        "    kept = subprocess.Popen(['cat'], stdin=-1, stdout=-1)\n"
        "    kept.stdin.write(b'buffered')\n"
        "import builtins; builtins.kept = kept.stdin, kept.stdout\n"
    )
    done = run([PY, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_many_processes_in_many_threads_are_all_there() -> None:
    def work(number: int) -> None:
        for turn in range(25):
            assert run(["echo", f"{number} {turn}"], stdout=PIPE, text=True).stdout == f"{number} {turn}\n"

    with playhead.record("x"):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    told = [came["stdout"] for _, came in processes() if came is not None]
    assert sorted(told) == sorted(f"{number} {turn}\n" for number in range(8) for turn in range(25))
    assert gaps() == []


@pytest.mark.hard
def test_a_thousand_processes_and_a_hundred_megabytes() -> None:
    with playhead.record("x"):
        for number in range(1000):
            assert run(["echo", str(number)], stdout=PIPE, text=True).stdout == f"{number}\n"
        assert len(run(["head", "-c", "100000000", "/dev/zero"], capture_output=True).stdout) == 100_000_000
    found = processes()
    assert len(found) == 1001
    assert all(came is not None and came["exit_code"] == 0 for _, came in found)
    assert gaps() == [("process_output_too_large", None)]


def test_threads_that_read_both_outputs_at_once_mix_nothing() -> None:
    code = "import sys\nfor n in range(3000): print('o', n); print('e', n, file=sys.stderr)"
    out: dict[str, bytes] = {}
    with playhead.record("x"), Popen([PY, "-c", code], stdout=PIPE, stderr=PIPE) as process:

        def read(name: str) -> None:
            out[name] = b"".join(getattr(process, name))

        threads = [threading.Thread(target=read, args=(name,)) for name in ("stdout", "stderr")]
        for thread in threads:
            thread.start()
        while process.poll() is None:
            time.sleep(0.01)
        for thread in threads:
            thread.join()
    _, came = only()
    assert {name: came[name].encode() for name in ("stdout", "stderr")} == out
