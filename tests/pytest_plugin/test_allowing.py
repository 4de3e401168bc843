"""Servers that a test runs itself are neither recorded, nor answered, nor refused, whoever asks them and however."""

from __future__ import annotations

import socket

from tests.pytest_plugin.conftest import Project, outcomes

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
def server(request):
    bound, name = getattr(request, "param", ("127.0.0.1", "127.0.0.1"))
    with http.server.ThreadingHTTPServer((bound, 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://{name}:{made.server_port}/nothing"
        made.shutdown()
        thread.join()
"""
CLIENTS = """
import asyncio, socket, urllib.request

def by_httpx(url):
    import httpx
    return httpx.get(url).text

def by_asynchronous_httpx(url):
    import httpx
    async def get():
        async with httpx.AsyncClient(timeout=60) as client:
            return (await client.get(url)).text
    return asyncio.run(get())

def by_requests(url):
    import requests
    return requests.get(url).text

def by_urllib(url):
    return urllib.request.urlopen(url).read().decode()

def by_aiohttp(url):
    import aiohttp
    async def get():
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text()
    return asyncio.run(get())

def by_a_socket(url):
    host, port = url.split("/")[2].split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        return connection.makefile("rb").read()[-4:].decode()
"""
KINDS = ["by_httpx", "by_asynchronous_httpx", "by_requests", "by_urllib", "by_aiohttp", "by_a_socket"]
ASKED = """
@pytest.mark.cassette(allow="127.0.0.1")
@pytest.mark.parametrize("client", [{kinds}])
def test_client(client, server):
    assert client(server) == "mine"
"""
NAMED = """
@pytest.mark.cassette(allow="{allow}")
@pytest.mark.parametrize("server", [("{bound}", "{name}")], indirect=True, ids=["{name} as {allow}"])
def test_named_{number}(server):
    assert by_a_socket(server) == "mine"
"""


def test_a_server_that_is_started_in_the_test_can_be_asked_by_clients_of_all_kinds_and_by_all_its_names(
    project: Project,
) -> None:
    names = [("localhost", "127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.1", "localhost")]
    names.append(("localhost", "", "localhost"))
    named = [
        NAMED.format(allow=allow, bound=bound, name=name, number=number)
        for number, (allow, bound, name) in enumerate(names)
    ]
    project.test("".join([SERVER, CLIENTS, ASKED.format(kinds=", ".join(KINDS)), *named]))
    project.record()
    assert not [name for name, content in project.cassettes().items() if b"/nothing" in content]
    tests = [f"test_client[{kind}]" for kind in KINDS]
    tests += [f"test_named_{number}[{name} as {allow}]" for number, (allow, _, name) in enumerate(names)]
    assert len(project.cassettes()) == len(tests)
    assert outcomes(project.run("-v", "--playhead=none")) == dict.fromkeys(tests, "PASSED")


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
