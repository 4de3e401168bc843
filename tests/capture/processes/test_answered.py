"""In a replay no process is started: the tape answers, and the program cannot tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.capture.processes.replaying import Again, again

CASES = {
    "run": """
from subprocess import run
done = run(["sh", "-c", "cat; echo oops >&2; exit 3"], input="hello ü\\n", capture_output=True, text=True)
print(done.returncode, repr(done.stdout), repr(done.stderr))
""",
    "check_output": """
import subprocess
print(subprocess.check_output(["printf", r"a\\r\\nb"]), subprocess.check_output("echo $0 'a  b' | cat", shell=True))
print(subprocess.getstatusoutput("echo x; exit 4"), subprocess.call(["true"]))
try:
    subprocess.check_call(["false"])
except subprocess.CalledProcessError as error:
    print(error)
""",
    "popen": """
import os
with os.popen("cat > /dev/null", "w") as out:
    out.write("in")
read = os.popen("echo said; exit 2")
print(repr(read.read()), read.close())
""",
    "system": """
import os
print(os.system("exit 3"), os.system("kill -9 $$"), os.system("true"))
""",
    "conversation": """
from subprocess import PIPE, Popen
with Popen(["cat"], stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as server:
    for turn in range(3):
        server.stdin.write(f"{turn}\\n")
        print(repr(server.stdout.readline()))
    server.stdin.close()
    print(repr(server.stdout.read()), server.wait())
print(server.returncode, server.pid > 0, server)
""",
    "binary": """
from subprocess import PIPE, STDOUT, Popen, run
print(run(["printf", r"\\377\\000\\001"], capture_output=True).stdout, run(["sh", "-c", "echo o; echo e >&2"], stdout=PIPE, stderr=STDOUT))
print(run(["printf", r"a\\r\\nb\\r"], capture_output=True, text=True).stdout.encode(), run(["printf", r"\\374"], capture_output=True, encoding="latin-1"))
process = Popen(["sh", "-c", "head -c 100000 /dev/zero; echo end"], stdout=PIPE, bufsize=0)
sizes = []
while data := process.stdout.read(70_000):
    sizes.append(len(data))
print(sizes, process.wait())
""",
    "large": """
import hashlib, sys
from subprocess import PIPE, Popen, run
code = "import os, sys; data = os.urandom(2_500_000).hex().encode(); sys.stdout.buffer.write(data); sys.stderr.write('e' * 100_000)"
done = run([sys.executable, "-c", code], capture_output=True)
print(hashlib.sha256(done.stdout).hexdigest(), len(done.stdout), len(done.stderr))
with Popen(["sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"], stdout=PIPE, text=True) as many:
    print(hash(tuple(many.stdout)) == hash(tuple(f"line {n}\\n" for n in range(3000))))
print(hashlib.sha256(run(["cat"], input=b"x" * 3_000_000, stdout=PIPE).stdout).hexdigest())
""",
    "missing": """
import os, subprocess
for argv, options in [(["no-such-program"], {}), (["true"], {"cwd": "no-such-folder"}), (["/etc"], {}), (["a\\0b"], {}), ([], {}),
                      (["true", 5], {}), (["true"], {"stdout": "x"}), ("no-such-command", {"shell": True, "stderr": -3})]:
    try:
        print(subprocess.run(argv, **options).returncode)
    except Exception as error:
        print(type(error), error, getattr(error, "filename", None), getattr(error, "errno", None))
""",
    "killed": """
import os, signal, subprocess, time
process = subprocess.Popen(["sleep", "60"])
process.send_signal(signal.SIGSTOP)
print(process.poll())
process.kill()
print(process.wait(), process.poll())
process.kill()
group = subprocess.Popen(["sleep", "60"], start_new_session=True)
os.killpg(os.getpgid(group.pid), signal.SIGTERM)
print(group.wait())
other = subprocess.Popen(["sleep", "60"])
os.kill(other.pid, signal.SIGINT)
print(other.wait())
try:
    os.kill(other.pid, 0)
except ProcessLookupError as error:
    print(error)
""",
    "timeouts": """
import subprocess
from subprocess import PIPE, Popen, TimeoutExpired
process = Popen(["sh", "-c", "echo first; sleep .9; echo second"], stdout=PIPE, stderr=PIPE)
for ask in (lambda: process.wait(0.05), lambda: process.communicate(timeout=0.4)):
    try:
        ask()
    except TimeoutExpired as error:
        print(error, error.output)
print(process.poll(), process.communicate(), process.returncode)
try:
    subprocess.run(["sleep", "60"], timeout=0.1)
except TimeoutExpired as error:
    print(error)
try:
    subprocess.run(["sh", "-c", "echo partly; exec sleep 60"], timeout=0.5, capture_output=True)
except TimeoutExpired as error:
    print(error, error.output)
""",
    "polls": """
import subprocess, time
process, asked = subprocess.Popen(["sleep", "0.3"]), 0
while process.poll() is None:
    asked += 1
    time.sleep(.02)
print(asked, process.returncode)
""",
    "waits by hand": """
import os, subprocess
process = subprocess.Popen(["sh", "-c", "exit 7"])
print(os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT).si_status, process.wait())
try:
    os.waitpid(process.pid, 0)
except ChildProcessError as error:
    print(error)
""",
    "broken pipe": """
import time
from subprocess import PIPE, Popen, run
print(run(["true"], input=b"x" * 500_000, stdout=PIPE))
process = Popen(["true"], stdin=PIPE)
process.wait()
try:
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()
except BrokenPipeError as error:
    print(error)
try:
    process.stdin.close()
except BrokenPipeError as error:
    print(error)
""",
    "slow input": """
from subprocess import PIPE, Popen, TimeoutExpired
process = Popen(["sleep", "60"], stdin=PIPE, stdout=PIPE)
try:
    process.communicate(b"x" * 1_000_000, timeout=.2)
except TimeoutExpired as error:
    print(error)
process.kill()
print(process.communicate(), process.returncode)
""",
    "pipeline": """
from subprocess import PIPE, Popen
one = Popen(["printf", "b\\na\\n"], stdout=PIPE)
two = Popen(["sort"], stdin=one.stdout, stdout=PIPE)
one.stdout.close()
print(two.communicate(), one.wait())
""",
    "options": """
import os
from subprocess import PIPE, run
print(run(["pwd"], cwd="/", stdout=PIPE, text=True).stdout, run(["sh", "-c", "echo $GIVEN"], env={**os.environ, "GIVEN": "1"}, stdout=PIPE))
print(run("echo $0", shell=True, executable="/bin/bash", stdout=PIPE).stdout, run(["true"], umask=0o77, start_new_session=True))
with open(os.devnull, "wb") as out:
    print(run(["echo", "x"], stdout=out, stdin=-3))
""",
    "selectors": """
import os, selectors
from subprocess import PIPE, Popen
process = Popen(["sh", "-c", "echo out; echo err >&2"], stdout=PIPE, stderr=PIPE)
left, said = {process.stdout, process.stderr}, {}
with selectors.DefaultSelector() as selector:
    for pipe in left:
        selector.register(pipe, selectors.EVENT_READ)
    while left:
        for key, _ in selector.select():
            line = key.fileobj.readline()
            if not line:
                selector.unregister(key.fileobj)
                left.discard(key.fileobj)
            said[key.fileobj is process.stdout] = said.get(key.fileobj is process.stdout, b"") + line
print(sorted(said.items()), process.wait())
""",
    "threads": """
import queue, threading
from subprocess import PIPE, Popen
lines = queue.Queue()
process = Popen(["sh", "-c", "for n in 1 2 3; do echo $n; echo e$n >&2; done"], stdout=PIPE, stderr=PIPE, text=True)
def read(pipe):
    for line in pipe:
        lines.put(line)
readers = [threading.Thread(target=read, args=(pipe,)) for pipe in (process.stdout, process.stderr)]
[reader.start() for reader in readers]
[reader.join() for reader in readers]
print(sorted(lines.get() for _ in range(6)), process.wait())
""",
    "unread": """
from subprocess import PIPE, Popen
process = Popen(["sh", "-c", "echo first; echo second; exec sleep 60"], stdout=PIPE)
print(process.stdout.readline())
process.terminate()
print(process.wait())
left = Popen(["true"])
""",
}

ASYNCIO = """
import asyncio
from asyncio.subprocess import PIPE, STDOUT
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=PIPE, stdout=PIPE)
    for turn in (b"one\\n", b"two\\n"):
        process.stdin.write(turn)
        await process.stdin.drain()
        print(await process.stdout.readline())
    process.stdin.close()
    print(await process.stdout.read(), await process.wait(), len(asyncio.all_tasks()))
    shell = await asyncio.create_subprocess_shell("echo out; echo err >&2; exit 5", stdout=PIPE, stderr=PIPE)
    print(await shell.communicate(), shell.returncode)
    both = await asyncio.create_subprocess_shell("cat; echo err >&2", stdin=PIPE, stdout=PIPE, stderr=STDOUT)
    print(await both.communicate(b"in\\n"))
    big = await asyncio.create_subprocess_exec("head", "-c", "1000000", "/dev/zero", stdout=PIPE)
    print(len((await big.communicate())[0]))
    slow = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        await asyncio.wait_for(slow.wait(), .05)
    except asyncio.TimeoutError:
        slow.kill()
    print(await slow.wait())
    try:
        await asyncio.create_subprocess_exec("no-such-program")
    except FileNotFoundError as error:
        print(error)
    several = [await asyncio.create_subprocess_exec("echo", str(n), stdout=PIPE) for n in range(4)]
    print(await asyncio.gather(*(each.communicate() for each in several)))
"""
RUN = {"asyncio": "asyncio.run(main())\n", "uvloop": "import uvloop\nuvloop.run(main())\n"}


def assert_same(found: Again) -> None:
    """Check that the replay said what the recording said, and started nothing."""
    assert found.told["outcome"] == "ended", (found.told, found.errors.decode())
    assert found.replayed == found.recorded, found.errors.decode()
    assert not found.told["started"]
    assert found.told["differed"] == found.told["refused"] == found.told["blocked"] == []
    assert found.told["unused"] == 0
    assert b"Traceback" not in found.errors, found.errors.decode()


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_what_was_recorded_comes_back_and_nothing_is_started(code: str, tmp_path: Path) -> None:
    found = again(tmp_path, code, cwd=tmp_path)
    assert found.recorded, "it says something"
    assert_same(found)
    for (asked, came), (asked_again, came_again) in zip(*found.processes(), strict=True):
        assert asked_again["argv"] == asked["argv"]
        assert _facts(came_again) == _facts(came)


def _facts(came: dict[str, Any]) -> dict[str, Any]:
    """Return what is not about time."""
    facts = {name: came.get(name) for name in ("status", "exit_code", "stdin", "stdout", "stderr", "pid", "polls")}
    signals = [sent["signal"] for sent in came.get("signals") or ()]
    return {
        **facts,
        "signals": signals,
        "unwritten": came.get("unwritten"),
        "error": (came.get("error") or {}).get("message"),
    }


TRIO = """
import trio
from subprocess import PIPE
async def main():
    async with trio.open_nursery() as nursery:
        process = await nursery.start(lambda task_status: trio.run_process(["cat"], stdin=PIPE, stdout=PIPE, task_status=task_status))
        for turn in (b"one\\n", b"two\\n"):
            await process.stdin.send_all(turn)
            print(await process.stdout.receive_some())
        await process.stdin.aclose()
        print(await process.stdout.receive_some())
    print(process.returncode)
    print(await trio.run_process("cat; echo e >&2; exit 3", shell=True, stdin=b"in", capture_stdout=True, capture_stderr=True, check=False))
    with trio.move_on_after(.1):
        await trio.run_process(["sleep", "60"])
    print("over")
    try:
        await trio.run_process(["no-such-program"])
    except FileNotFoundError as error:
        print(error)
trio.run(main)
"""


_SAYS = """
from subprocess import PIPE, Popen, run
with Popen(["cat"], stdin=PIPE, stdout=PIPE) as process:
    process.stdin.write(b"first ")
    process.stdin.flush()
    process.stdin.write(b"second")
    process.stdin.close()
    print(process.stdout.read())
print(run(["cat"], input=b"given", stdout=PIPE).stdout)
"""
_TELLS = """
from subprocess import PIPE, Popen
process = Popen(["sh", "-c", "read x; read y; echo $x"], stdin=PIPE, stdout=PIPE, bufsize=0)
process.stdin.write(b"one\\ntwo\\n")
print(process.stdout.readline())
process.stdout.close()
process.stdin.close()
print(process.wait())
"""
_ENDS = """
from subprocess import Popen
process = Popen(["sleep", "60"])
process.terminate()
print(process.wait())
"""


@pytest.mark.parametrize(
    ("code", "was", "now", "path"),
    [
        (_SAYS, 'b"second"', 'b"another"', "/stdin"),
        (_SAYS, 'b"second"', 'b"seco"', "/stdin"),
        (_SAYS, 'b"second"', 'b"second and more"', "/stdin"),
        (_SAYS, 'input=b"given"', 'input=b"taken"', "/stdin"),
        (_SAYS, 'input=b"given"', 'input=b"given more"', "/stdin"),
        (_TELLS, "process.stdout.close()", "process.stdout.read()", "/stdout"),
        (_ENDS, "process.terminate()", "process.kill()", "/signals"),
    ],
)
def test_whoever_tells_a_process_something_else_deviates(
    code: str, was: str, now: str, path: str, tmp_path: Path
) -> None:
    found = again(tmp_path, code, changed=code.replace(was, now), cwd=tmp_path)
    assert found.told["outcome"] == f"deviated: {path}"
    assert [told[:2] for told in found.told["differed"]] == [["process.exited", path]]
    assert not found.told["started"]


def test_input_that_holds_a_secret_is_compared_without_it(tmp_path: Path) -> None:
    code = """
import os
from subprocess import PIPE, run
print(len(run(["cat"], input=os.environ["SERVICE_PASSWORD"].encode() + b" and more", stdout=PIPE).stdout) > 9)
"""
    secret = {"SERVICE_PASSWORD": "correct-horse-battery-staple-7781"}
    assert_same(again(tmp_path, code, env=secret, cwd=tmp_path))


def test_what_is_started_for_infrastructure_is_refused_softly_and_named(tmp_path: Path) -> None:
    code = """
import platform
print(repr(platform.uname().node) != "", isinstance(platform.processor(), str))
"""
    found = again(tmp_path, code, cwd=tmp_path)
    assert (found.told["outcome"], found.replayed, found.told["started"]) == ("ended", found.recorded, False)
    assert found.told["blocked"] == [["process", "uname, started by platform"]]


_BY_HAND = {
    "posix_spawn": "os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 0'], os.environ)",
    "posix_spawnp": "os.posix_spawnp('sh', ['sh', '-c', 'exit 0'], os.environ)",
    "exec": "os.execv('/bin/sh', ['sh', '-c', 'exit 0'])",
    "execve": "os.execvpe('/bin/sh', ['sh', '-c', 'exit 0'], os.environ)",
    "kept": "system('exit 0')",
    "another fork_exec": "start()",
}


@pytest.mark.parametrize("by_hand", _BY_HAND.values(), ids=_BY_HAND)
def test_what_no_tape_can_answer_is_not_started(by_hand: str, tmp_path: Path) -> None:
    code = f"""
import os, posix, _posixsubprocess
system = posix.system
def start():
    end, other = os.pipe()
    _posixsubprocess.fork_exec([b"/bin/true"], [b"/bin/true"], True, (other,), None, None, -1, -1, -1, -1, -1, -1, end, other,
        True, False, -1, None, None, None, -1, None, *([False] if __import__("sys").version_info < (3, 14) else []))
if os.environ.get("AGAIN"):
    {by_hand}
print("here")
"""
    found = again(tmp_path, code, replayed={"AGAIN": "1"}, cwd=tmp_path)
    assert found.told["outcome"].startswith("deviated: ")
    assert [what for what, _ in found.told["refused"]] == ["process"]
    assert not found.told["started"]


def test_signals_reach_nobody_but_the_program_itself(tmp_path: Path) -> None:
    code = """
import os, signal, subprocess
signal.signal(signal.SIGUSR1, lambda *_: print("heard"))
os.kill(os.getpid(), signal.SIGUSR1)
other = int(os.environ["OTHER"])
os.kill(other, 0)
print("sent")
"""
    found = again(tmp_path, code, env={"OTHER": str(os.getpid())}, cwd=tmp_path)
    assert (found.told["outcome"], found.replayed) == ("ended", found.recorded)
    assert found.told["blocked"] == [], "a look whether it is there does nothing"
