"""Servers that a test runs itself are neither recorded, nor answered, nor refused, whoever asks them and however."""

from __future__ import annotations

import socket

import pytest
from tests.pytest_plugin.conftest import Project

SERVER = """
import http.server, threading

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"mine")

    def log_message(self, *args):
        pass

@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("{bound}", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://{name}:{made.server_port}/nothing"
        made.shutdown()
        thread.join()

@pytest.mark.cassette(allow="{allow}")
def test_plan(server):
"""
ASKING = {
    "httpx": "import httpx; assert httpx.get(server).text == 'mine'",
    "requests": "import requests; assert requests.get(server).text == 'mine'",
    "urllib": "import urllib.request; assert urllib.request.urlopen(server).read() == b'mine'",
    "aiohttp": """
    import asyncio, aiohttp
    async def get():
        async with aiohttp.ClientSession() as session, session.get(server) as answer:
            return await answer.text()
    assert asyncio.run(get()) == 'mine'""",
    "asynchronous httpx": """
    import asyncio, httpx
    async def get():
        async with httpx.AsyncClient(timeout=60) as client:
            return (await client.get(server)).text
    assert asyncio.run(get()) == 'mine'""",
    "a socket": """
    import socket
    host, port = server.split("/")[2].split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        assert connection.makefile("rb").read().endswith(b"mine")""",
}


def _asks(
    project: Project, body: str, allow: str = "127.0.0.1", bound: str = "127.0.0.1", name: str = "127.0.0.1"
) -> None:
    server = SERVER.replace("{allow}", allow).replace("{bound}", bound).replace("{name}", name)
    project.test(f"{server}    {body}\n")
    project.record()
    assert b"/nothing" not in b"".join(project.cassettes().values())
    assert project.run("--playhead=none").ret == 0


@pytest.mark.parametrize("client", ASKING)
def test_a_server_that_is_started_in_the_test_can_be_asked_by(client: str, project: Project) -> None:
    _asks(project, ASKING[client])


@pytest.mark.parametrize(
    ("allow", "bound", "name"),
    [("localhost", "127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.1", "localhost"), ("localhost", "", "localhost")],
)
def test_this_machine_is_the_same_by_all_its_names(allow: str, bound: str, name: str, project: Project) -> None:
    _asks(project, ASKING["a socket"], allow, bound, name)


def test_one_port_can_be_allowed_and_the_provider_is_answered_beside_it(project: Project) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    project.test(f"""
import httpx
from playhead.testing import ScriptedProvider

@pytest.mark.cassette(allow=["127.0.0.1:{port}"])
def test_plan():
    with ScriptedProvider("mine", port={port}) as own:
        assert httpx.get(own.root_url + "/nothing").status_code == 404
        assert ask("Plan.")
""")
    project.record()
    assert b"/nothing" not in b"".join(project.cassettes().values())
    assert project.run("--playhead=none").ret == 0
