"""What a tool does is compared with what it declares: in it, below it, in threads, in programs that it starts."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.views.audit.told import Told, found

import playhead

GET = {"method": "GET", "url": "https://example.com/"}


def act(port: int) -> None:
    Path("written.txt").write_text("x")
    socket.create_connection(("127.0.0.1", port)).close()
    subprocess.run(["true"], check=True)


def in_a_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.mark.parametrize("run_it", [lambda function: function(), in_a_thread], ids=["here", "thread"])
def test_a_tool_that_declares_nothing_is_caught_writing_connecting_and_starting_a_process(
    run_it: Callable[[Callable[[], None]], None],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        @playhead.tool
        def sneaky() -> None:
            run_it(lambda: act(port))

        with playhead.record("run") as run:
            sneaky()
    audit = playhead.audit(run.id)
    caught = {one.what: one for one in audit.findings if one.rule == "undeclared"}
    assert set(caught) == {"write", "network", "process"}
    assert all("tool sneaky declares nothing" in one.detail for one in caught.values())
    events = list(playhead.load(run.id).events())
    assert events[caught["write"].seq].data["target"].endswith("/written.txt")
    assert events[caught["network"].seq].data["target"] == f"127.0.0.1:{port}"
    assert events[caught["process"].seq].data["argv"] == ["true"]
    for rule in ("write", "network", "process"):
        assert [one.path for one in audit.findings if one.rule == rule] == ["tool sneaky"]
    assert audit.integrity["verdict"] == "intact"


def sorts(run: Told) -> list[tuple[str, str]]:
    return [(one.what, one.severity) for one in found("undeclared", run)]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ([], [("write", "medium"), ("delete", "medium"), ("process", "medium"), ("network", "medium")]),
        (["read"], [("write", "high"), ("delete", "high"), ("process", "high"), ("network", "high")]),
        (["write"], []),
        (["read", "write"], []),
        (["irreversible"], []),
    ],
)
def test_what_a_declaration_covers(declared: list[str], expected: list[tuple[str, str]]) -> None:
    run = Told()
    with run.tool("t", *declared):
        run.effect("file.written", "/repo/a", mode="w")
        run.effect("file.deleted", "/repo/b")
        run.call("process.started", {"argv": ["make"]})
        run.effect("socket.connected", "10.0.0.1:9")
    assert sorts(run) == expected


def test_a_tool_that_reads_may_ask_the_network_and_connect_for_it() -> None:
    run = Told()
    with run.tool("search", "read"):
        run.effect("socket.connected", "93.184.216.34:443")
        run.call("http.sent", GET)
    assert not sorts(run)


def test_a_connection_to_another_host_is_not_that_of_a_request_though_the_port_is() -> None:
    for name, expected in (("example.com", []), ("evil.example", [("network", "high")])):
        run = Told()
        with run.tool("search", "read"):
            run.call("http.sent", GET)
            run.effect("socket.connected", "93.184.216.34:443", names=[name])
        assert sorts(run) == expected


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("http.sent", {**GET, "method": "POST"}),
        ("model.invoked", {"model": "gpt-5", "http": {"url": GET["url"]}}),
        ("effect.observed", {"what": "socket.connected", "target": "93.184.216.34:22"}),
        ("effect.observed", {"what": "socket.bound", "target": "0.0.0.0:80"}),
    ],
)
def test_it_may_do_nothing_else_there(kind: str, data: dict[str, object]) -> None:
    run = Told()
    with run.tool("search", "read"):
        run.call("http.sent", GET)
        run.add(kind, data, span="x" if kind != "effect.observed" else None)
    assert sorts(run) == [("network", "high")]


def test_what_an_inner_tool_does_or_declares_is_done_by_the_outer_one_too() -> None:
    run = Told()
    with run.tool("outer", "read"), run.within("step.started", {"name": "s"}):
        with run.tool("pay", "irreversible"):
            run.effect("file.written", "/repo/a", mode="w")
        with run.tool("save", "write"):
            pass
    one, other = sorted(found("undeclared", run), key=lambda finding: finding.what)
    assert one.detail == "tool outer declares read, and called tool pay, which declares irreversible"
    assert (other.what, other.seqs) == ("write", [4, 6])
    assert one.path == other.path == "tool outer"


def test_irreversible_is_more_than_write() -> None:
    run = Told()
    with run.tool("outer", "write"), run.tool("pay", "irreversible"):
        pass
    assert sorts(run) == [("irreversible", "high")]


def test_what_a_program_does_that_a_tool_started_is_the_tool_s_doing() -> None:
    parent = Told("run_a")
    with parent.tool("script", "read"):
        started = parent.call("process.started", {"argv": ["python", "x.py"]})
    child = Told("run_b", origin={"run": "run_a", "mode": "child", "at": started}, agent=None, git=None)
    at = child.effect("file.written", "/repo/a", mode="w")
    one, other = found("undeclared", parent, child)
    assert (one.run, one.what) == ("run_a", "process")
    assert (other.run, other.what, other.seq) == ("run_b", "write", at)
    (written,) = found("write", parent, child)
    assert written.detail.startswith("repo write: a,")  # of the parent's repository
    assert written.path == "tool script / process python x.py"


def test_a_database_that_was_opened_is_not_said_to_be_written() -> None:
    run = Told()
    with run.tool("look", "read"):
        run.effect("file.written", "/repo/x.db", mode="sqlite")
    with run.tool("change", "read"):
        run.effect("file.written", "/repo/x.db", mode="sqlite")
        run.effect("file.written", "/repo/a", mode="w")
    assert [one.detail for one in found("undeclared", run)] == [
        "tool look declares read, and opened to be written: x.db",
        "tool change declares read, and wrote a",
    ]


def test_a_process_that_could_not_be_started_was_not_started() -> None:
    run = Told()
    with run.tool("look", "read"):
        for argv in (["absent"], ["true"]):
            span = str(run.add("process.started", {"argv": argv}, span=str(len(run.events)), key=f"k1:{argv}"))
            ended = (
                {"status": "error", "error": {"type": "FileNotFoundError"}} if argv == ["absent"] else {"exit_code": 0}
            )
            run.add("process.exited", ended, span=span)
            (one,) = found("undeclared", run)
            expected = [("low", "tried to start absent"), ("high", "started true")]
            assert (one.severity, one.detail.partition(", and ")[2]) == expected[argv == ["true"]]


def test_temporary_files_of_a_tool_are_caught_and_not_grave() -> None:
    run = Told()
    with run.tool("t", "read"):
        run.effect("file.written", "/tmp/x", mode="x", created=True)
    assert sorts(run) == [("write", "low")]


def test_a_tool_that_nobody_saw_running_and_how_an_mcp_tool_is_reached_are_not_counted() -> None:
    run = Told()
    with run.within("tool.called", {"name": "t", "inferred": True}):
        run.effect("file.written", "/repo/a", mode="w")
    with run.within("tool.called", {"name": "mcp", "server": "https://mcp.example.com/x"}):
        run.effect("socket.connected", "93.184.216.34:443")
    assert not sorts(run)
    assert "mcp.example.com:443" in [one.target for one in found("network", run)]
