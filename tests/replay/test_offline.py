"""A replay uses no network: not in a thread, not in a forked process, not by a library with sockets of its own."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import playhead
from playhead.errors import NetworkRefused
from playhead.replay import namespace, offline
from playhead.replay.blocked import Blocked


@pytest.fixture
def server() -> Iterator[Any]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()


@pytest.fixture
def blocked(tmp_path: Path, server: Any) -> Iterator[Blocked]:
    """Refuse the network in this process; return what keeps what was refused."""
    offline.install(tmp_path)
    try:
        yield Blocked(tmp_path)
    finally:
        offline.uninstall()


def test_connections_datagrams_names_and_servers_are_refused_with_line_and_target(
    blocked: Blocked, server: Any, tmp_path: Path
) -> None:
    with pytest.raises(NetworkRefused) as caught:
        socket.create_connection(server)
    assert isinstance(caught.value, ConnectionRefusedError)
    assert caught.value.errno == errno.ECONNREFUSED
    with socket.socket() as one, pytest.raises(NetworkRefused):
        one.connect(server)
    with socket.socket() as one, pytest.raises(NetworkRefused):
        one.connect_ex(server)
    with socket.socket() as one, pytest.raises(NetworkRefused):
        one.bind(("127.0.0.1", 0))
    with socket.socket(type=socket.SOCK_DGRAM) as one, pytest.raises(NetworkRefused):
        one.sendto(b"x", server)
    with socket.socket(socket.AF_UNIX) as one, pytest.raises(NetworkRefused):
        one.connect("/run/docker.sock")
    with pytest.raises(NetworkRefused):
        socket.getaddrinfo("example.com", 443)
    with pytest.raises(NetworkRefused):
        socket.gethostbyname("example.com")
    address = f"127.0.0.1:{server[1]}"
    assert [(block.what, block.target) for block in blocked.all()] == [
        ("socket.getaddrinfo", address),
        ("socket.connect", address),
        ("socket.connect", address),
        ("socket.bind", "127.0.0.1:0"),
        ("socket.sendto", address),
        ("socket.connect", "/run/docker.sock"),
        ("socket.getaddrinfo", "example.com:443"),
        ("socket.gethostbyname", "example.com"),
    ]
    assert all(block.at.startswith(f"{__file__}:") for block in blocked.all())


def test_pairs_of_sockets_and_event_loops_work(blocked: Blocked) -> None:
    one, other = socket.socketpair()
    one.sendall(b"told")
    assert other.recv(4) == b"told"
    one.sendmsg([b"more"])
    assert other.recv(4) == b"more"
    one.close()
    other.close()
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"
    assert blocked.all() == []


def test_sockets_in_the_scratch_folder_are_between_processes_of_the_replay(blocked: Blocked, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as one:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        one.connect(str(tmp_path / "s"))
    assert blocked.all() == []


def test_threads_and_forked_processes_are_refused_too(blocked: Blocked, server: Any) -> None:
    problems: list[BaseException] = []

    def connect() -> None:
        try:
            socket.create_connection(server)
        except OSError as problem:
            problems.append(problem)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        connect()
        os._exit(len(problems))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert isinstance(problems[0], NetworkRefused)
    assert len(blocked.all()) == 2


def test_the_recorder_keeps_what_was_tried(blocked: Blocked, server: Any) -> None:
    with playhead.record("run"), socket.socket() as one, pytest.raises(NetworkRefused):
        one.connect(server)
    (event,) = [event for event in playhead.load("@last").events() if event.kind == "effect.observed"]
    assert event.data["what"] == "socket.connected"
    assert event.data["detail"]["attempted"] is True


def test_the_loop_of_uvloop_is_refused(blocked: Blocked, server: Any) -> None:
    uvloop = pytest.importorskip("uvloop")
    loop = uvloop.new_event_loop()
    try:
        for start in (loop.create_connection, loop.create_server):
            with pytest.raises(NetworkRefused):
                loop.run_until_complete(start(asyncio.Protocol, *server))
    finally:
        loop.close()
    assert [block.what for block in blocked.all()] == ["uvloop create_connection", "uvloop create_server"]


class Call:
    """What grpc has for one method."""

    _target, _method = b"models.example:443", b"/service/method"

    def __call__(self, request: Any) -> Any:
        raise AssertionError("called")


class Session:
    """What curl_cffi has for requests."""

    def request(self, method: str, url: str) -> Any:
        raise AssertionError("requested")


def test_grpc_and_curl_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Both are heavy: what is patched here has the names and the arguments of the real ones.
    channel, session = ModuleType("grpc._channel"), ModuleType("curl_cffi.requests.session")
    kind = type("UnaryMultiCallable", (), {**vars(Call), "__module__": "grpc._channel"})
    channel.UnaryMultiCallable = kind  # type: ignore[attr-defined]
    session.Session = session.AsyncSession = type("Session", (), dict(vars(Session)))  # type: ignore[attr-defined]
    for module in (channel, session):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    offline.install(tmp_path)
    try:
        with pytest.raises(NetworkRefused):
            kind()(b"")
        with pytest.raises(NetworkRefused):
            session.Session().request("GET", "https://me:pass@host.example/?key=secret")  # type: ignore[attr-defined]
    finally:
        offline.uninstall()
    told = [(block.what, block.target) for block in Blocked(tmp_path).all()]
    assert told == [("grpc", "models.example:443/service/method"), ("curl_cffi", "https://host.example")]
    with pytest.raises(AssertionError, match="called"):
        kind()(b"")


MANAGED = """
import multiprocessing, sys
from pathlib import Path
from playhead.replay import offline, overlay
laid = overlay.install(Path(sys.argv[1]), Path(sys.argv[1] + "-store"))
offline.install(Path(sys.argv[1]))
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        shared = manager.dict()
        child = context.Process(target=shared.update, args=({"a": 1},))
        child.start()
        child.join()
        print(dict(shared), laid.blocked(), [change.path for change in laid.changes()])
"""


def test_processes_of_multiprocessing_talk_to_each_other(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short:  # the path of a socket may not be long
        command = [sys.executable, "-c", MANAGED, f"{short}/s"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "{'a': 1} [] []\n"), done.stderr


def test_it_is_refused_also_where_that_cannot_be_kept(tmp_path: Path, server: Any) -> None:
    offline.install(tmp_path / "missing")
    try:
        with pytest.raises(NetworkRefused):
            socket.create_connection(server)
    finally:
        offline.uninstall()


def test_the_network_is_there_again_afterwards(tmp_path: Path, server: Any) -> None:
    offline.install(tmp_path)
    with pytest.raises(RuntimeError):
        offline.install(tmp_path)
    offline.uninstall()
    socket.create_connection(server).close()


PROGRAM = """
import json, os, pathlib, signal, socket
def refused():
    try:
        socket.create_connection(("127.0.0.1", {port}), timeout=5)
    except OSError as problem:
        return problem.errno
path = pathlib.Path("made")
path.write_text("x")
facts = path.stat()
print(json.dumps([refused(), os.getuid(), os.getgid(), facts.st_uid, facts.st_gid, sorted(signal.pthread_sigmask(0, []))]))
"""


@pytest.mark.skipif(namespace.isolation() != "namespace", reason="the system allows no namespaces")
def test_a_namespace_takes_the_network_and_nothing_else(server: Any, tmp_path: Path) -> None:
    import json

    def said(**options: Any) -> Any:
        command = [sys.executable, "-c", PROGRAM.format(port=server[1])]
        done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=True, **options)
        return json.loads(done.stdout)

    with_network, *plain = said()
    without, *isolated = said(preexec_fn=namespace.enter)
    assert with_network is None
    assert without in (errno.ENETUNREACH, errno.ECONNREFUSED)
    assert isolated == plain


def test_where_namespaces_are_not_allowed_the_hooks_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(flags: int) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(namespace, "_unshare", lambda: denied)
    assert namespace.isolation() == "hooks"
    monkeypatch.setattr(namespace, "_unshare", lambda: None)
    assert namespace.isolation() == "hooks"
    with pytest.raises(OSError, match="namespaces"):
        namespace.enter()
