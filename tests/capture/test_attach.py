"""Attaching: any Python program is recorded without a line of its own, and does not notice."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import pytest
import uv
from tests.capture.launching import assert_whole, clean_environment, finished, launched, only_run, python

import playhead
from playhead.capture import hooks
from playhead.capture.naming import is_python
from playhead.store.files import FileStore
from playhead.testing import ScriptedProvider

# The tools stand for what a client library reports of a program that knows nothing of Playhead.
ACTS = """
import playhead
@playhead.tool
def act(name):
    return name
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Make a program that acts once with its arguments, and prints them."""
    path = tmp_path / "program.py"
    path.write_text(f"#!{sys.executable}\nimport sys\n{ACTS}\nprint(act(' '.join(sys.argv[1:])))\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def acts(run: playhead.Run) -> list[tuple[str, str]]:
    """Return what the tools of a run were called with, and in which lane."""
    return [(event.data["input"]["name"], event.lane) for event in run.events() if event.kind == "tool.called"]


def attached(run: playhead.Run) -> list[dict[str, Any]]:
    """Return the Pythons that attached to a run."""
    data = [event.data.get("data") or {} for event in run.events() if event.kind == "note.added"]
    return [item["attached"] for item in data if "attached" in item]


def gaps(run: playhead.Run) -> list[dict[str, Any]]:
    return [event.data for event in run.events() if event.kind == "gap.noted"]


def runs(store: Path) -> dict[str, playhead.Run]:
    """Return the runs of a store by the name of their program."""
    files = FileStore(store)
    loaded = [playhead.load(run, store=store) for run in files.runs()]
    return {next(iter(run.events())).data["name"]: run for run in loaded}


def old_pythons() -> list[str]:
    folders = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
    return [str(path) for path in folders if path.parent.parent.name.startswith(("2.7", "3.6", "3.9", "3.10"))]


def pythons_like(minor: int) -> list[str]:
    found = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))
    return [str(path) for path in found]


# Ways to start


def test_a_python_program_is_attached_and_says_which_interpreter_it_runs_in(store: Path, program: Path) -> None:
    code, out, err = launched(store, [sys.executable, str(program), "a"])
    assert (code, out, err) == (0, b"a\n", b"")
    run = only_run(store)
    assert_whole(run)
    assert acts(run) == [("a", "0")]
    (one,) = attached(run)
    assert (one["python"]["executable"], one["argv"]) == (sys.executable, [sys.executable, str(program), "a"])
    assert one["packages"]["orjson"]
    assert not gaps(run)
    assert finished(run)["output"] == {"exit_code": 0}


def test_a_module_a_shebang_and_a_variable_before_it_are_ways_to_start(store: Path, program: Path) -> None:
    module = [sys.executable, "-m", "program", "module"]
    launched(store, module, cwd=program.parent)
    launched(store, [str(program), "shebang"])
    launched(store, ["env", "X=1", sys.executable, str(program), "env"])
    launched(store, ["sh", "-c", f"cd / && {sys.executable} {program} shell"])
    found = [acts(playhead.load(run, store=store)) for run in FileStore(store).runs()]
    assert found == [[("module", "0")], [("shebang", "0")], [("env", "0")], [("shell", "0")]]


def test_a_program_that_becomes_another_stays_in_its_run(store: Path, program: Path, tmp_path: Path) -> None:
    launcher = tmp_path / "poetry.py"
    launcher.write_text(
        f"import os, sys\n{ACTS}\nact('launcher')\n"
        "os.execvpe(sys.executable, [sys.executable, *sys.argv[1:]], dict(os.environ))"
    )
    code, out, _ = launched(store, [sys.executable, str(launcher), str(program), "inner"])
    assert (code, out) == (0, b"inner\n")
    run = only_run(store)
    assert_whole(run)
    assert acts(run) == [("launcher", "0"), ("inner", "1")]


@pytest.mark.parametrize("call", ["os.execv(sys.executable, argv)", "os.execl(sys.executable, *argv)"])
def test_it_stays_there_whatever_it_becomes_it_with(store: Path, program: Path, call: str) -> None:
    code, _, err = launched(store, python(f"import os, sys\nargv = [sys.executable, {str(program)!r}, 'x']\n{call}"))
    assert (code, err) == (0, b"")
    assert acts(only_run(store)) == [("x", "1")]


def test_pythons_that_a_shell_starts_one_after_the_other_join_in_lanes_of_their_own(store: Path, program: Path) -> None:
    command = f"{sys.executable} {program} a && {sys.executable} {program} b; {program} c"
    code, out, _ = launched(store, ["sh", "-c", command])
    assert (code, out) == (0, b"a\nb\nc\n")
    run = only_run(store)
    assert_whole(run)
    assert acts(run) == [("a", "0"), ("b", "1"), ("c", "2")]
    assert [one["argv"][-1] for one in attached(run)] == ["a", "b", "c"]


def test_pythons_that_run_side_by_side_have_a_lane_each(store: Path, program: Path) -> None:
    command = "; ".join(f"{program} {number} &" for number in range(4)).replace("&;", "&") + " wait"
    assert launched(store, ["sh", "-c", command])[0] == 0
    run = only_run(store)
    assert_whole(run)
    lanes = dict(acts(run))
    assert sorted(lanes) == ["0", "1", "2", "3"]
    assert sorted(lanes.values()) == ["0", "1", "2", "3"]
    for number, one in enumerate(attached(run)):  # the n-th that attached speaks in lane n
        assert lanes[one["argv"][-1]] == str(number)


def test_uv_run_is_a_way_to_start(store: Path, program: Path, tmp_path: Path) -> None:
    command = [uv.find_uv_bin(), "run", "--no-project", "--offline", "--python", sys.executable, str(program), "uv"]
    code, out, err = launched(store, command, cwd=tmp_path)
    assert (code, out) == (0, b"uv\n"), err
    assert acts(only_run(store)) == [("uv", "0")]


# Children


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run(argv)",
        "subprocess.run(argv, close_fds=False)",
        "subprocess.run(argv, env={'PATH': os.environ['PATH']})",
        "subprocess.run(argv, env=os.environb)",
        "subprocess.run(argv, env={'PLAYHEAD_ATTACH': '', 'PYTHONPATH': '/elsewhere'})",
        "os.system(' '.join(argv))",
        "os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)",
        "os.spawnve(os.P_WAIT, argv[0], argv, {})",
    ],
)
def test_a_python_that_a_python_starts_is_a_child_run_from_its_first_event_on(
    store: Path, program: Path, tmp_path: Path, start: str
) -> None:
    (tmp_path / "outer.py").write_text(
        f"import os, subprocess, sys\n{ACTS}\nact('outer')\nargv = [sys.executable, {str(program)!r}, 'inner']\n{start}"
    )
    code, out, err = launched(store, [sys.executable, str(tmp_path / "outer.py")])
    assert (code, out, err) == (0, b"inner\n", b"")
    found = runs(store)
    assert acts(found["outer"]) == [("outer", "0")]
    assert acts(found["program"]) == [("inner", "0")]
    assert_whole(found["program"])
    first = next(iter(found["program"].events()))
    called = [event.seq for event in found["outer"].events() if event.kind == "process.started"][1:]
    at = called[0] if called else 0  # what is no call is told by the span that it was started in: here the run
    origin = first.data["origin"]
    assert origin.pop("pid") > 0
    assert origin == {"run": found["outer"].id, "mode": "child", "at": at}
    assert first.data["entrypoint"]["argv"][-1] == "inner"


@pytest.mark.parametrize(
    "start",
    [
        "os.system(' '.join(argv))",
        "os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)",
        "os.spawnv(os.P_WAIT, argv[0], argv)",
        "os.waitpid(os.fork() or os.execv(argv[0], argv), 0)",
    ],
)
def test_what_a_python_does_that_a_tool_started_in_any_way_is_the_tool_s_doing(
    store: Path, tmp_path: Path, start: str
) -> None:
    inner = tmp_path / "inner.py"
    inner.write_text("open('made.txt', 'w').close()")
    start = (
        f"import os, sys, playhead\nargv = [sys.executable, {str(inner)!r}]\n@playhead.tool\ndef go(): {start}\ngo()"
    )
    assert launched(store, python(start))[0] == 0
    found = playhead.audit(runs(store).values())
    assert any("go declares nothing, and wrote" in one.detail for one in found.findings), found.findings


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("print(sum(range(9)))", ["python"]),
        ("print(open(__file__).read())", ["helper", "python"]),
        ("open('left.txt', 'w').write('x')", ["helper", "python"]),
        ("import os; os.environ['A'] = 'b'", ["helper", "python"]),
    ],
)
def test_a_helper_that_neither_reads_nor_does_anything_leaves_no_run(
    store: Path, tmp_path: Path, act: str, expected: list[str]
) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text(act)
    code, _, err = launched(store, python(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(helper)!r}])"))
    assert (code, err) == (0, b"")
    found = runs(store)
    assert sorted(found) == expected
    if "helper" in found:
        assert next(iter(found["helper"].events())).data["origin"]["run"] == found["python"].id


@pytest.mark.parametrize(
    ("ends", "status", "code"), [("", "ok", None), ("sys.exit(3)", "error", 3), ("raise ValueError", "error", 1)]
)
def test_a_helper_that_only_reads_has_a_run_that_says_how_it_ended(
    store: Path, tmp_path: Path, ends: str, status: str, code: int | None
) -> None:
    if code == 3 and hooks.compiled is None:
        pytest.skip("the code of sys.exit is only seen by the compiled part")
    helper = tmp_path / "helper.py"
    helper.write_text(f"import sys, time\nprint(time.time_ns())\n{ends}")
    start = f"import subprocess, sys\nsubprocess.run([sys.executable, {str(helper)!r}], stderr=subprocess.DEVNULL)"
    _, out, err = launched(store, python(start))
    assert err == b""
    run = runs(store)["helper"]
    assert (run.status, list(run.events())[-1].data.get("metadata", {}).get("exit_code")) == (status, code)
    assert int(out) in [read.value for read in run.reads() if read.of == "time.time_ns"]


def test_a_helper_that_starts_a_process_is_a_run_in_between(store: Path, program: Path, tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(program)!r}, 'grandchild'])")
    code, _, err = launched(store, python(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(helper)!r}])"))
    assert (code, err) == (0, b"")
    found = runs(store)
    assert sorted(found) == ["helper", "program", "python"]
    for child, parent in (("helper", "python"), ("program", "helper")):
        at = [event.seq for event in found[parent].events() if event.kind == "process.started"][-1]
        origin = next(iter(found[child].events())).data["origin"]
        assert origin.pop("pid") > 0
        assert origin == {"run": found[parent].id, "mode": "child", "at": at}


def test_the_child_of_a_child_that_records_comes_from_that_child(store: Path, program: Path, tmp_path: Path) -> None:
    middle = tmp_path / "middle.py"
    middle.write_text(
        f"import subprocess, sys\n{ACTS}\nact('middle')\nsubprocess.run([sys.executable, {str(program)!r}, 'x'])"
    )
    launched(store, python(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(middle)!r}])"))
    found = runs(store)
    origins = {name: next(iter(run.events())).data.get("origin", {}).get("run") for name, run in found.items()}
    assert origins == {"python": None, "middle": found["python"].id, "program": found["middle"].id}


def test_an_agent_in_a_child_is_a_run_of_its_own_that_says_where_it_came_from(store: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner.py"
    inner.write_text("import playhead\nwith playhead.record('agent') as run: run.output = 7")
    launched(store, python(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(inner)!r}])"))
    found = runs(store)
    assert sorted(found) == ["agent", "python"]
    assert found["agent"].playback().payload == 7
    at = [event.seq for event in found["python"].events() if event.kind == "process.started"][-1]
    origin = next(iter(found["agent"].events())).data["origin"]
    assert origin.pop("pid") > 0
    assert origin == {"run": found["python"].id, "mode": "child", "at": at}


def test_a_child_that_raises_ends_its_run_with_the_error(store: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner.py"
    inner.write_text(f"{ACTS}\nact('x')\nraise ValueError('no')")
    launched(store, python(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(inner)!r}])"))
    last = finished(runs(store)["inner"])
    assert (last["status"], last["error"]["type"], last["error"]["message"]) == ("error", "ValueError", "no")


def test_a_recorder_inside_a_recorded_program_is_a_child_and_its_program_belongs_to_it(
    store: Path, program: Path
) -> None:
    inner = [sys.executable, "-m", "playhead", "record", "--quiet", "--", sys.executable, str(program), "x"]
    code, out, err = launched(store, inner)
    assert (code, out, err) == (0, b"x\n", b"")
    found = runs(store)
    assert next(iter(found["program"].events())).data["origin"] == {"run": found["playhead"].id, "mode": "child"}
    assert acts(found["program"]) == [("x", "0")]
    assert acts(found["playhead"]) == []


# What the program sees

LOOKS = """
import json, os, sys, threading
main = sys.modules["__main__"]
print(json.dumps({
    "path": sys.path, "argv": sys.argv, "orig_argv": sys.orig_argv, "flags": list(sys.flags), "name": main.__name__,
    "file": getattr(main, "__file__", None), "spec": str(main.__spec__), "dict": sorted(vars(main)),
    "hooks": [str(sys.excepthook), str(sys.displayhook)],
    "threads": [thread.name for thread in threading.enumerate()],
    "environ": dict(os.environ),
    "custom": "sitecustomize" in sys.modules, "caches": sorted(sys.path_importer_cache)[:0],
    "next file": os.open("/dev/null", os.O_RDONLY),
}, sort_keys=True))
"""


@pytest.mark.parametrize(
    ("search", "options"),
    [
        (None, []),
        (None, ["-s", "-P"]),
        ("", ["-B", "-W", "error"]),
        ("{}/lib", ["-X", "dev"]),
        ("{}/lib:", []),
        ("{}/lib:{}/other", ["-O"]),
    ],
)
def test_the_program_sees_what_it_sees_without_us(
    store: Path, tmp_path: Path, search: str | None, options: list[str]
) -> None:
    (tmp_path / "looks.py").write_text(LOOKS)
    argv = [sys.executable, *options, str(tmp_path / "looks.py"), "x"]
    env = {} if search is None else {"PYTHONPATH": search.replace("{}", str(tmp_path))}
    for name in ("lib", "other"):
        (tmp_path / name).mkdir()
    plain = subprocess.run(argv, env=clean_environment(**env), capture_output=True, check=True)
    code, out, err = launched(store, argv, env=env)
    assert (code, err) == (plain.returncode, plain.stderr)
    seen, expected = json.loads(out), json.loads(plain.stdout)
    if search == "":
        expected["environ"].pop("PYTHONPATH")  # which means the same
    assert seen == expected
    assert len(attached(only_run(store))) == 1


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("raise ValueError('no')", 1),
        ("import sys; sys.exit(7)", 7),
        ("import sys; sys.exit('words')", 1),
        ("import os; os._exit(9)", 9),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM),
        ("import os, signal; signal.raise_signal(signal.SIGINT)", 128 + signal.SIGINT),
        ("import atexit; atexit.register(print, 'bye'); print('hi')", 0),
        ("import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()", 0),
        ("import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", 0),
        ("import os, sys; os.closerange(3, 1 << 20); print(os.open('/dev/null', 0))", 0),
        ("import os; pid = os.fork(); os.waitpid(pid, 0) if pid else None; print(bool(pid), flush=True)", 0),
        ("x = (", 1),
    ],
)
def test_a_program_ends_and_complains_as_it_does_without_us(store: Path, tmp_path: Path, code: str, ends: int) -> None:
    (tmp_path / "it.py").write_text(code)
    argv = [sys.executable, str(tmp_path / "it.py")]
    plain = subprocess.run(argv, env=clean_environment(), capture_output=True, check=False)
    assert launched(store, argv) == (ends, plain.stdout, plain.stderr)
    run = only_run(store)
    assert len(attached(run)) == 1
    assert_whole(run)
    assert finished(run)["metadata"]["exit_code"] == plain.returncode


@pytest.mark.parametrize("pure", ["", "1"])
def test_what_c_calls_at_the_exit_is_called(store: Path, tmp_path: Path, pure: str) -> None:
    (tmp_path / "it.py").write_text(
        "import atexit, os, queue, random, subprocess, sys, threading, time\n"
        "atexit.register(subprocess.Popen, ['true'])\n"
        "atexit.register(os.system, 'echo by a shell')\n"
        "atexit.register(threading.Event().wait, 0.01)\n"
        "atexit.register(queue.Queue().put, None)\n"
        "atexit.register(os.remove, 'missing')\n"
        "atexit.register(time.time)\n"
        "atexit.register(random.random)\n"
    )
    argv = [sys.executable, str(tmp_path / "it.py")]
    plain = subprocess.run(argv, env=clean_environment(), capture_output=True, check=False)
    assert launched(store, argv, env=clean_environment(PLAYHEAD_PURE=pure)) == (0, plain.stdout, plain.stderr)
    run = only_run(store)
    assert_whole(run)
    started = [event.data["argv"] for event in run.events() if event.kind == "process.started"]
    assert started[1:] == [["echo by a shell"], ["true"]]


def test_what_the_program_did_before_it_raised_is_there(store: Path) -> None:
    code, _, err = launched(store, python(f"{ACTS}\nact('x')\nraise ValueError('no')"))
    assert (code, err.count(b"Traceback"), b"playhead" in err) == (1, 1, False)
    assert acts(only_run(store)) == [("x", "0")]


def test_stdin_and_large_output_are_the_programs(store: Path) -> None:
    echo = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    data = os.urandom(3_000_000)
    code, out, err = launched(store, python(echo), input=data)
    assert (code, out == data, err) == (0, True, b"")


# The launcher is a Python too, and has the same sitecustomize.
IN_PROGRAM = "import sys\nif 'open_run' not in ' '.join(sys.orig_argv)"


def test_the_sitecustomize_of_the_user_runs_and_is_the_one_that_is_imported(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text(f"{IN_PROGRAM}: print('custom', __name__, __file__)\nhere = 1")
    argv = python("import sys, sitecustomize; print(sitecustomize.here, sys.modules['sitecustomize'].__spec__.origin)")
    env = {"PYTHONPATH": str(tmp_path / "mine")}
    plain = subprocess.run(argv, env=clean_environment(**env), capture_output=True, check=True)
    assert plain.stdout.startswith(b"custom sitecustomize ")
    assert launched(store, argv, env=env) == (0, plain.stdout, plain.stderr)
    assert len(attached(only_run(store))) == 1


@pytest.mark.parametrize("wrong", ["raise ValueError('mine')", "import nothing_of_this_name", "exec('x = (')"])
def test_an_error_in_the_sitecustomize_of_the_user_is_told_as_without_us(
    store: Path, tmp_path: Path, wrong: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"{IN_PROGRAM}: {wrong}")
    argv, env = python("print('on')"), {"PYTHONPATH": str(tmp_path)}
    plain = subprocess.run(argv, env=clean_environment(**env), capture_output=True, check=True)
    assert b"sitecustomize" in plain.stderr
    assert launched(store, argv, env=env) == (0, plain.stdout, plain.stderr)
    assert len(attached(only_run(store))) == 1


def test_a_setting_of_the_users_own_is_seen_and_one_of_the_launcher_is_not(store: Path, tmp_path: Path) -> None:
    shows = "import os; print(sorted(name for name in os.environ if name.startswith('PLAYHEAD_')), flush=True)"
    below = f"{shows}\nimport subprocess, sys\nfor more in ({{}}, {{'env': {{'A': 'b'}}}}):\n"
    below += f"    subprocess.run([sys.executable, '-c', {shows!r}], **more)"
    assert launched(store, python(below))[1] == b"[]\n" * 3
    _, out, _ = launched(store, python(below), env={"PLAYHEAD_GIT": "0", "PLAYHEAD_DIR": str(tmp_path / "no")})
    assert out == b"['PLAYHEAD_DIR', 'PLAYHEAD_GIT']\n" * 3
    assert not (tmp_path / "no").exists()


def test_a_setting_that_the_program_gives_to_a_child_is_seen_there(store: Path, tmp_path: Path) -> None:
    shows = "import os; print(os.environ.get('PLAYHEAD_DIR'))"
    given = {"PLAYHEAD_DIR": str(tmp_path / "given")}
    start = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {shows!r}], env={given})"
    assert launched(store, python(start))[1].decode().strip() == str(tmp_path / "given")


def test_an_agent_in_the_program_records_where_the_launcher_does(store: Path, tmp_path: Path) -> None:
    here = tmp_path / "elsewhere"
    here.mkdir()
    records = "import playhead\nwith playhead.record('a'): pass"
    agent = f"import os, subprocess, sys\nos.chdir({str(here)!r})\n{records}\n"
    agent += f"subprocess.run([sys.executable, '-c', {records!r}], env={{'A': 'b'}})"
    launched(store, python(agent))
    assert list(here.iterdir()) == []
    assert len(list(FileStore(store).runs())) == 2, "of the program, and of what it started"


# What cannot be attached


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_a_python_that_was_told_to_load_nothing_is_named_as_a_gap(store: Path, program: Path, option: str) -> None:
    code, out, err = launched(store, [sys.executable, option, "-c", "print(1)"])
    assert (code, out, err) == (0, b"1\n", b"")
    (gap,) = gaps(only_run(store))
    assert (gap["reason"], gap["detail"]["executable"]) == ("python_not_attached", sys.executable)
    assert option in gap["detail"]["why"]
    assert only_run(store).readiness().replayable


def test_programs_that_are_no_python_are_not_expected_to_attach(store: Path) -> None:
    launched(store, ["sh", "-c", "true"])
    launched(store, [sys.executable, "--version"])
    assert [gaps(playhead.load(run, store=store)) for run in FileStore(store).runs()] == [[], []]


def test_a_python_is_known_by_its_name_or_by_its_script(program: Path, tmp_path: Path) -> None:
    (tmp_path / "script.sh").write_text("#!/bin/sh\npython x")
    (tmp_path / "script.sh").chmod(0o755)
    assert is_python(["python3.12", "x.py"])
    assert is_python([str(program)])
    assert not is_python([str(tmp_path / "script.sh")])
    assert not is_python(["sh", "-c", "python"])
    assert not is_python(["python", "-VV"])
    assert not is_python(["no-such-program"])


@pytest.mark.parametrize("old", old_pythons() or [pytest.param("", marks=pytest.mark.skip("no old Python here"))])
def test_a_python_that_is_too_old_runs_untouched_and_is_named(store: Path, old: str) -> None:
    argv = [old, "-c", "import os, sys; print(sys.version_info[0] > 1, os.environ.get('PYTHONPATH'))"]
    assert launched(store, argv) == (0, b"True None\n" if "2.7" not in old else b"(True, None)\n", b"")
    (gap,) = gaps(only_run(store))
    assert gap["reason"] == "python_not_attached"
    assert f"/{gap['detail']['version']}/" in old
    assert "3.11" in gap["detail"]["why"]


def test_a_run_that_cannot_be_joined_costs_the_recording_and_not_the_program(store: Path, program: Path) -> None:
    command = f"mv {store} {store}.away; {program} x; mv {store}.away {store}"
    code, out, err = launched(store, ["sh", "-c", command])
    assert (code, out, err) == (0, b"x\n", b"")
    run = only_run(store)
    assert_whole(run)
    assert (acts(run), attached(run)) == ([], [])


def test_a_program_that_is_disabled_is_not_attached_and_named(store: Path, program: Path) -> None:
    code, out, _ = launched(store, ["env", "PLAYHEAD_DISABLED=1", str(program), "x"])
    assert (code, out) == (0, b"x\n")
    run = only_run(store)
    assert acts(run) == attached(run) == []
    assert "PLAYHEAD_DISABLED" in gaps(run)[0]["detail"]["why"]


def test_a_python_that_outlives_its_run_adds_nothing_to_it(store: Path, program: Path, tmp_path: Path) -> None:
    late = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; {program} late; touch {tmp_path}/gone"
    code, _, _ = launched(store, ["sh", "-c", f"({late}) > /dev/null 2>&1 &"])
    assert code == 0
    (tmp_path / "go").touch()
    while not (tmp_path / "gone").exists():
        time.sleep(0.05)
    run = only_run(store)
    assert_whole(run)
    assert list(run.events())[-1].kind == "run.finished"


def test_a_child_that_cannot_be_recorded_runs_on_and_is_named(store: Path, program: Path, tmp_path: Path) -> None:
    argv = [sys.executable, str(program), "x"]
    start = f"import os, subprocess\nenv = {{**os.environ, 'PLAYHEAD_DIR': {str(program)!r}}}\nsubprocess.run({argv}, env=env)"
    assert launched(store, python(start)) == (0, b"x\n", b"")
    (gap,) = gaps(only_run(store))
    assert gap["reason"] == "python_not_attached"
    assert str(program) in gap["detail"]["why"]


def test_a_child_that_is_disabled_leaves_no_run(store: Path, program: Path) -> None:
    argv = [sys.executable, str(program), "x"]
    start = f"import os, subprocess\nsubprocess.run({argv}, env={{**os.environ, 'PLAYHEAD_DISABLED': '1'}})"
    assert launched(store, python(start)) == (0, b"x\n", b"")
    assert not gaps(only_run(store))


# Another environment


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment without Playhead, with a small package that has a console script."""
    root = tmp_path_factory.mktemp("bare")
    venv.create(root / "env", with_pip=False)
    site = next((root / "env" / "lib").glob("python3*/site-packages"))
    (site / "tiny.py").write_text("import sys\ndef main():\n    print('tiny', sys.argv[1:])\n")
    script = root / "env" / "bin" / "tiny"
    script.write_text(f"#!{root / 'env' / 'bin' / 'python'}\nimport sys\nfrom tiny import main\nsys.exit(main())\n")
    script.chmod(0o755)
    return root / "env"


def test_a_console_script_of_an_environment_without_playhead_is_attached(store: Path, bare: Path) -> None:
    code, out, err = launched(store, [str(bare / "bin" / "tiny"), "a"])
    assert (code, out, err) == (0, b"tiny ['a']\n", b"")
    run = only_run(store)
    (one,) = attached(run)
    assert one["python"]["executable"] == str(bare / "bin" / "python")
    assert "orjson" not in one["packages"]
    assert not gaps(run)


def test_playhead_is_lent_to_it_and_nothing_else(store: Path, bare: Path) -> None:
    program = (
        "import importlib.util as u\n"
        f"{ACTS}\n"
        "act('lent')\n"
        "print([name for name in ('rich', 'pytest', 'argcomplete', 'openai', 'pip') if u.find_spec(name)])"
    )
    code, out, err = launched(store, [str(bare / "bin" / "python"), "-c", program])
    assert (code, out, err) == (0, b"[]\n", b"")
    assert acts(only_run(store)) == [("lent", "0")]


def test_what_playhead_is_made_of_is_no_part_of_that_environment(store: Path, bare: Path) -> None:
    """A library that uses orjson where it finds it must find what it finds without us."""
    program = (
        "def there(name):\n"
        "    try: return bool(__import__(name))\n"
        "    except ImportError: return False\n"
        f"{ACTS}\n"
        "print([there(name) for name in ('orjson', 'msgspec', 'rfc8785', 'msgspec.json')])\n"
        "act('x')\n"
        "print([there(name) for name in ('orjson', 'msgspec', 'rfc8785')])\n"
    )
    code, out, err = launched(store, [str(bare / "bin" / "python"), "-c", program])
    assert (code, out, err) == (0, b"[False, False, False, False]\n[False, False, False]\n", b"")
    assert acts(only_run(store)) == [("x", "0")]


@pytest.mark.parametrize(
    "other",
    [path for minor in (12, 13) if minor != sys.version_info[1] for path in pythons_like(minor)]
    or [pytest.param("", marks=pytest.mark.skip("no other Python here"))],
)
def test_another_minor_version_without_playhead_runs_untouched_and_is_named(store: Path, other: str) -> None:
    code, out, err = launched(store, [other, "-c", "import sys; print(sys.path_importer_cache is not None)"])
    assert (code, out, err) == (0, b"True\n", b"")
    (gap,) = gaps(only_run(store))
    assert gap["reason"] == "python_not_attached"
    assert sys.implementation.cache_tag in gap["detail"]["why"]


# What is seen

ASKS = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="sk-not-a-real-key-0123456789", max_retries=0)
answer = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "Hello?"}])
print(answer.choices[0].message.content)
"""


def models(run: playhead.Run) -> list[tuple[str, str]]:
    return [(event.kind, event.lane) for event in run.events() if event.kind.startswith("model.")]


def test_a_program_that_knows_nothing_of_playhead_is_recorded_with_its_model_calls(store: Path, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    with ScriptedProvider(["Hi."]) as provider:
        code, out, err = launched(store, [sys.executable, str(tmp_path / "asks.py"), provider.base_url])
    assert (code, out, err) == (0, b"Hi.\n", b"")
    run = only_run(store)
    assert_whole(run)
    assert models(run) == [("model.invoked", "0"), ("model.responded", "0")]


def test_the_first_model_call_of_a_child_opens_its_run_and_is_in_it(store: Path, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    start = f"import subprocess, sys\nsubprocess.run([sys.executable, {str(tmp_path / 'asks.py')!r}, sys.argv[1]])"
    with ScriptedProvider(["Hi."]) as provider:
        code, out, err = launched(store, [*python(start), provider.base_url])
    assert (code, out, err) == (0, b"Hi.\n", b"")
    found = runs(store)
    assert sorted(found) == ["asks", "python"]
    assert_whole(found["asks"])
    assert models(found["asks"]) == [("model.invoked", "0"), ("model.responded", "0")]
    assert models(found["python"]) == []


@pytest.mark.parametrize("start", ["cd inner && {python} {program} badge 445566", "{python} {outer}"])
def test_rules_of_the_launcher_hold_in_whichever_folder_a_program_runs(
    store: Path, program: Path, tmp_path: Path, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "playhead.toml").write_text(
        "[redact]\npatterns = { badge = 'badge (?P<secret>[0-9]+)' }\nfields = ['pin']"
    )
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "playhead.toml").write_text("[redact]\npatterns = { colour = '#[0-9a-f]{6}' }")
    (tmp_path / "outer.py").write_text(
        f"import subprocess, sys\n{ACTS}\nact('badge 778899')\n"
        f"subprocess.run([sys.executable, {str(program)!r}, 'badge 445566', '#ff00ff', 'pin=4711'], cwd='inner', env={{}})\n"
    )
    line = start.format(python=sys.executable, program=f"{program} '#ff00ff' pin=4711", outer=tmp_path / "outer.py")
    code, _, _ = launched(store, ["sh", "-c", line])
    assert code == 0
    kept = b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file() and path.suffix != ".json")
    assert b"[redacted:badge]" in kept
    events = [event for run in runs(store).values() for event in run.events() if event.kind == "tool.called"]
    said = " ".join(event.data["input"]["name"] for event in events)
    assert "445566" not in said
    assert "778899" not in said
    assert "ff00ff" not in said
    assert "4711" not in said


def test_what_a_program_could_not_even_declare_as_lost_its_launcher_declares(store: Path, tmp_path: Path) -> None:
    code = f"""{ACTS}
act('seen')
from playhead.errors import WriteFailed
from playhead.store.file_log import FileLog
def full(*_): raise WriteFailed('no space left on the device')
FileLog.append = full
act('lost')
"""
    exit_code, _, err = launched(store, python(code))
    assert exit_code == 0
    assert b"could not even be declared" in err
    run = only_run(store)
    assert [(gap["reason"], gap["count"]) for gap in gaps(run)] == [("write_failed", 1), ("unopened_span", 1)]
    assert run.verify().completeness.verdict == "missing"
