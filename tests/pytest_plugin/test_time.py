"""Time jumps over what a test sleeps, and never past something that is still on its way."""

from __future__ import annotations

from tests.pytest_plugin.conftest import Project, outcomes

BUSY = """
import asyncio, time
import playhead._limits

playhead._limits.BUSY_S_MAX = 0.05

def work():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        sum(range(1000))

def slow():
    time.sleep(0.3)
"""
WAITS = """
@pytest.mark.cassette
def test_{name}():
    async def main():
        async with asyncio.timeout({limit}):
            assert await ask_async("one")
            {wait}
            assert await ask_async("two")
    asyncio.run(main())
"""
WORKS = {
    "at_work": "await asyncio.to_thread(work)",
    "asleep": "await asyncio.to_thread(time.sleep, 0.3)",
    "asleep_in_a_function_of_its_own": "await asyncio.to_thread(slow)",
}


def test_a_timeout_does_not_expire_while_a_thread_is_at_work_or_asleep(project: Project) -> None:
    project.test(BUSY + "".join(WAITS.format(name=name, limit=600, wait=wait) for name, wait in WORKS.items()))
    project.record()
    assert outcomes(project.run("-v", "--playhead=none")) == {f"test_{name}": "PASSED" for name in WORKS}


def test_a_sleep_takes_no_time_beside_threads_that_have_nothing_to_do(project: Project) -> None:
    code = "if {}:\n                await asyncio.to_thread(int)\n                await asyncio.sleep(86400)"
    project.test(BUSY + WAITS.format(name="plan", limit="None", wait=code.format("False")))
    project.record()
    project.test(BUSY + WAITS.format(name="plan", limit="None", wait=code.format("True")))
    assert project.run("--playhead=none").ret == 0


def test_a_timeout_does_not_expire_before_a_server_of_ones_own_has_answered(project: Project) -> None:
    project.test("""
import asyncio, subprocess, sys, httpx

SERVER = '''
import http.server, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.3)
        self.send_response(204)
        self.end_headers()

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
'''

@pytest.fixture(scope="module")
def server():
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        process.terminate()

@pytest.mark.cassette(allow="127.0.0.1")
def test_plan(server):
    async def main():
        async with httpx.AsyncClient(timeout=600) as client:
            return (await client.get(server)).status_code
    assert asyncio.run(main()) == 204
""")
    project.record()
    assert project.run("--playhead=none").ret == 0
