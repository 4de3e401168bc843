"""What goes over MCP is in the timeline once, in its place, whichever transport and whichever release carries it."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="mcp is not installed here; `make test-matrix` runs these tests with mcp 1 and mcp 2")

from tests.capture.frameworks import mcp_agent
from tests.capture.frameworks.mcp_agent import GENERATION, TRANSPORTS, connected, sampled, serving, words

import playhead
from playhead.capture import clients
from playhead.capture.dialects.base import Answered, ToolAsked
from playhead.capture.scope import current
from playhead.event.envelope import Event

ADD = {"left": 1, "right": 2}


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(transport: str) -> Iterator[str]:
    with serving(transport) as found:
        yield found


def events(run: Any = "@last") -> list[Event]:
    return list(playhead.load(run).events())


def calls(found: list[Event]) -> list[tuple[Event, Event | None]]:
    """Return what was opened, each with what closed it."""
    closing = {event.span: event for event in found if event.kind in ("tool.returned", "mcp.answered")}
    return [(event, closing.get(event.span)) for event in found if event.kind in ("tool.called", "mcp.requested")]


def tools(found: list[Event]) -> list[tuple[Event, Event | None]]:
    return [pair for pair in calls(found) if pair[0].kind == "tool.called"]


def stored(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (root / ".playhead").rglob("*") if path.is_file())


class Page(http.server.BaseHTTPRequestHandler):
    """Something that the agent itself asks over HTTP."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/page"
        server.shutdown()


async def fetch(address: str) -> str:
    if GENERATION == 1:
        import httpx as client
    else:
        import httpx2 as client  # type: ignore[import-not-found, no-redef, unused-ignore]
    async with client.AsyncClient() as opened:
        return str((await opened.get(address)).text)


def test_every_message_is_recorded_once_and_its_http_is_not(transport: str, address: str) -> None:
    async def agent() -> Any:
        async with connected(transport, address) as session:
            named = [tool.name for tool in (await session.list_tools()).tools]
            await session.read_resource("note://today")
            return named, words(await session.call_tool("add", ADD))

    with playhead.record("agent"):
        named, said = asyncio.run(agent())
    assert "add" in named
    assert said == ["3"]

    found = events()
    assert [event.data.get("method", event.data.get("name")) for event, _ in calls(found)] == [
        "initialize", "tools/list", "resources/read", "add",
    ]  # fmt: skip
    assert [event.data["method"] for event in found if event.kind == "mcp.notified"] == ["notifications/initialized"]
    assert all(closing is not None and closing.data["status"] == "ok" for _, closing in calls(found))
    assert not [event for event in found if event.kind.startswith(("http.", "gap."))]
    (called, returned), = tools(found)  # fmt: skip
    assert called.data["input"] == ADD
    assert returned is not None
    assert returned.data["output"]["content"][0]["text"] == "3"
    server = {event.data["server"] for event, _ in calls(found)}
    assert server == {address} if address else all("mcp_server.py stdio" in text for text in server)
    listed = next(closing for event, closing in calls(found) if event.data.get("method") == "tools/list")
    assert listed is not None
    assert {tool["name"] for tool in listed.data["result"]["tools"]} == set(named)
    assert playhead.load("@last").verify().integrity.verdict == "intact"


def test_the_agents_own_traffic_is_recorded_beside_that_of_the_transport(
    transport: str, address: str, page: str
) -> None:
    async def think(context: Any, params: Any) -> Any:
        return sampled(await fetch(page + "?inside"))

    async def agent() -> Any:
        async with connected(transport, address, sampling_callback=think) as session:
            await fetch(page + "?before")
            said = words(await session.call_tool("think", {}))
            await fetch(page + "?after")
            return said

    with playhead.record("agent"):
        assert asyncio.run(agent()) == ["the model says ok"]
    found = events()
    sent = {event.data["url"].partition("?")[2]: event for event in found if event.kind == "http.sent"}
    assert list(sent) == ["before", "inside", "after"]
    (tool, _), = tools(found)  # fmt: skip
    asked = next(event for event, _ in calls(found) if event.data.get("method") == "sampling/createMessage")
    assert asked.data["from_server"] is True
    assert asked.parent == tool.span
    assert sent["inside"].parent == asked.span
    assert sent["before"].parent == sent["after"].parent == "0"
    answer = next(closing for event, closing in calls(found) if event is asked)
    assert answer is not None
    assert answer.data["result"]["content"]["text"] == "ok"


def test_calls_at_once_keep_the_place_of_whoever_made_them(transport: str, address: str) -> None:
    async def one(session: Any, number: int) -> list[str]:
        with playhead.step(f"step {number}"):
            return words(await session.call_tool("add", {"left": number, "right": 0}))

    async def agent() -> Any:
        async with connected(transport, address) as session:
            return await asyncio.gather(*(one(session, number) for number in range(20)))

    def recorded() -> dict[int, tuple[str, str]]:
        with playhead.record("agent"):
            assert asyncio.run(agent()) == [[str(number)] for number in range(20)]
        found = events()
        steps = {event.span: event.data["name"] for event in found if event.kind == "step.started"}
        for called, returned in tools(found):
            assert returned is not None
            assert returned.lane == called.lane
            assert returned.data["output"]["content"][0]["text"] == str(called.data["input"]["left"])
        return {called.data["input"]["left"]: (steps[called.parent], called.lane) for called, _ in tools(found)}

    first = recorded()
    assert [first[number][0] for number in range(20)] == [f"step {number}" for number in range(20)]
    # The session has a task of its own; those of the transport have no lanes, whichever it is.
    assert [first[number][1] for number in range(20)] == [f"0.{number + 2}" for number in range(20)]
    if not (transport == "http" and mcp_agent.VERSION < (1, 10)):  # whose server does not survive the end of a session
        assert first == recorded(), "two runs of the same program have the same lanes"


def test_progress_belongs_to_its_call(transport: str, address: str) -> None:
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async def agent() -> None:
        async with connected(transport, address) as session:
            some = session.call_tool("count", {"upto": 2}, progress_callback=progress)
            more = session.call_tool("count", {"upto": 3}, progress_callback=progress)
            await asyncio.gather(some, more)

    with playhead.record("agent"):
        asyncio.run(agent())
    found = events()
    told = [event for event in found if event.data.get("method") == "notifications/progress"]
    assert len(told) == len(seen) == 5
    by_call = {called.span: called.data["input"]["upto"] for called, _ in tools(found)}
    assert sorted(by_call[event.parent] for event in told) == [2, 2, 3, 3, 3]
    assert {event.data["params"]["total"] for event in told if by_call[event.parent] == 2} == {2}


def test_what_the_server_says_belongs_to_the_call_that_it_says_it_for(transport: str, address: str) -> None:
    async def agent() -> None:
        async with connected(transport, address) as session:
            await session.call_tool("mumble", {})
            await asyncio.gather(session.call_tool("mumble", {}), session.call_tool("mumble", {}))

    with playhead.record("agent"):
        asyncio.run(agent())
    found = events()
    told = [event.parent for event in found if event.data.get("method") == "notifications/message"]
    first, *at_once = (called.span for called, _ in tools(found))
    assert told[0] == first
    if GENERATION > 1 and transport == "http":
        assert sorted(told[1:]) == sorted(at_once)
    else:  # nothing in the message or its way says which of the two
        assert set(told[1:]) <= {"0", *at_once}


def test_a_tool_that_fails_is_an_error_with_its_words(transport: str, address: str) -> None:
    async def agent() -> Any:
        async with connected(transport, address) as session:
            return await session.call_tool("fail", {"why": "boom"})

    with playhead.record("agent"):
        said = words(asyncio.run(agent()))
    (_, returned), = tools(events())  # fmt: skip
    assert returned is not None
    assert returned.data["status"] == "error"
    assert returned.data["output"]["isError"] is True
    assert returned.data["error"] == {"type": "ToolError", "message": said[0]}


def test_an_error_of_the_protocol_keeps_its_code(transport: str, address: str) -> None:
    async def agent() -> None:
        async with connected(transport, address) as session:
            await session.read_resource("note://never")

    error: Any = None
    with playhead.record("agent"):
        try:
            asyncio.run(agent())
        except Exception as raised:
            error = _innermost(raised).error  # type: ignore[attr-defined]
    answer = next(closing for event, closing in calls(events()) if event.data.get("method") == "resources/read")
    assert answer is not None
    assert answer.data["status"] == "error"
    assert (answer.data["error"]["code"], answer.data["error"]["message"]) == (error.code, error.message)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def test_a_call_that_is_cancelled_is_cancelled_and_one_that_takes_too_long_is_an_error(
    transport: str, address: str
) -> None:
    async def agent() -> None:
        async with connected(transport, address) as session:
            slow = asyncio.create_task(session.call_tool("wait", {"seconds": 0.5}))
            await asyncio.sleep(0.2)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            timeout: Any = 0.1
            if GENERATION == 1:
                import datetime

                timeout = datetime.timedelta(seconds=timeout)
            with pytest.raises(Exception, match=r"(?i)timed out"):
                await session.call_tool("wait", {"seconds": 0.4}, read_timeout_seconds=timeout)
            await session.call_tool("add", ADD)  # behind the late answers, which mcp 1 does not expect after the end

    with playhead.record("agent"):
        asyncio.run(agent())
    cancelled, late, _ = (returned for _, returned in tools(events()))
    assert cancelled is not None
    assert cancelled.data["status"] == "cancelled"
    assert late is not None
    assert late.data["status"] == "error"
    assert isinstance(late.data["error"]["code"], int)
    assert not [event for event in events() if event.kind == "gap.noted"]


def test_a_server_that_dies_in_the_middle_leaves_an_error() -> None:
    async def agent() -> None:
        async with connected("stdio", "") as session:
            with pytest.raises(Exception, match="Connection closed"):
                await session.call_tool("leave", {})

    with playhead.record("agent"):
        asyncio.run(agent())
    (_, returned), = tools(events())  # fmt: skip
    assert returned is not None
    assert returned.data["status"] == "error"
    assert returned.data["error"]["code"] == -32000


@pytest.mark.skipif(GENERATION > 1, reason="mcp 2 keeps what a server prints away from its messages")
def test_what_is_no_message_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def agent() -> list[str]:
        async with connected("stdio", "") as session:
            return words(await session.call_tool("mumble", {}))

    with playhead.record("agent"):
        assert asyncio.run(agent()) == ["mumbled"]
    odd, logged = (event for event in events() if event.kind == "mcp.notified" and event.parent != "0")
    assert "this is no message" in odd.data["error"]["message"]
    assert logged.data["params"]["data"] == "mumbling"


def test_a_session_that_was_opened_before_the_run_is_recorded_in_it(transport: str, address: str) -> None:
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async def agent() -> None:
        async with connected(transport, address) as session:
            for name in ("first", "second"):
                with playhead.record(name):
                    await session.call_tool("count", {"upto": 2}, progress_callback=progress)
            assert words(await session.call_tool("add", ADD)) == ["3"]

    asyncio.run(agent())
    assert seen == [1, 2, 1, 2]
    for name in ("first", "second"):
        found = events(name)
        (called, returned), = tools(found)  # fmt: skip
        assert returned is not None
        assert returned.data["status"] == "ok"
        assert [event.parent for event in found if event.kind == "mcp.notified"] == [called.span, called.span]
        assert not [event for event in found if event.kind.startswith(("http.", "gap."))]


def test_secrets_of_the_server_are_not_on_the_disk(tmp_path: Path) -> None:
    secrets = {"env": "zTr0ub4dor-and-3-environment", "flag": "zPl4in-flag-word-17", "equals": "zEqu4ls-word-23"}

    async def agent() -> Any:
        args = ("--api-key", secrets["flag"], f"--token={secrets['equals']}")
        async with connected("stdio", "", *args, env={"TOWN_API_KEY": secrets["env"]}) as session:
            return words(await session.call_tool("say", {"name": "TOWN_API_KEY"}))

    with playhead.record("agent") as run:
        run.output = said = asyncio.run(agent())
    assert all(secret in said[0] for secret in secrets.values()), "the agent itself sees them"
    (called, returned), = tools(events())  # fmt: skip
    assert "--api-key [redacted:env] '--token=[redacted:env]'" in called.data["server"].replace('"', "'") or (
        "--api-key [redacted:env] --token=[redacted:env]" in called.data["server"]
    )
    assert returned is not None
    assert returned.data["output"]["content"][0]["text"].count("[redacted:") == 3
    kept = stored(tmp_path)
    assert kept
    assert not [secret for secret in secrets.values() if secret.encode() in kept]


def test_the_keys_of_a_server_that_is_reached_over_http_are_not_on_the_disk(tmp_path: Path) -> None:
    secret, parameter = "zH34der-word-that-nobody-knows", "zQu3ry-word-that-nobody-knows"

    async def agent(address: str) -> Any:
        opened = mcp_agent.sse_client(f"{address}?api_key={parameter}", headers={"Authorization": f"Bearer {secret}"})
        async with opened as (read, write), mcp_agent.ClientSession(read, write) as session:
            await session.initialize()
            return await session.call_tool("fail", {"why": f"{secret} {parameter}"})

    with serving("sse") as address, playhead.record("agent"):
        asyncio.run(agent(address))
    (called, _), = tools(events())  # fmt: skip
    assert called.data["server"].startswith(f"{address}?api_key=[redacted:")
    assert "[redacted:" in called.data["input"]["why"]
    kept = stored(tmp_path)
    assert kept
    assert secret.encode() not in kept
    assert parameter.encode() not in kept


def test_a_call_names_the_model_that_asked_for_it() -> None:
    async def agent() -> None:
        async with connected("stdio", "") as session:
            wanted = ToolAsked(id="call_7", name="add", input=ADD)
            scope = current.get()
            assert scope is not None
            scope.recording.turns.answered(scope, "99", Answered(None, calls=(wanted,)), "ok")
            await session.call_tool("add", ADD)
            await session.call_tool("add", ADD)

    with playhead.record("agent"):
        asyncio.run(agent())
    first, second = (called for called, _ in tools(events()))
    assert (first.data["call"], first.data["asked_by"]) == ("call_7", "99")
    assert "asked_by" not in second.data


def test_the_same_question_has_the_same_key_over_any_transport() -> None:
    async def progress(done: float, total: float | None, message: str | None) -> None:
        """Take note of nothing."""

    async def agent(transport: str, address: str) -> None:
        async with connected(transport, address) as session:
            await session.list_tools()
            await session.list_tools()
            await session.call_tool("add", ADD, progress_callback=progress)

    keys = []
    for transport in TRANSPORTS:
        with serving(transport) as address, playhead.record("agent"):
            asyncio.run(agent(transport, address))
        keys.append([event.key for event, _ in calls(events())])
    assert keys[0] == keys[1] == keys[2]
    assert all(key is not None for key in keys[0])
    assert keys[0][1] == keys[0][2] != keys[0][0]


def test_a_run_that_captures_nothing_has_no_messages(transport: str, address: str) -> None:
    async def agent() -> list[str]:
        async with connected(transport, address) as session:
            return words(await session.call_tool("add", ADD))

    with playhead.record("agent", capture=False):
        assert asyncio.run(agent()) == ["3"]
    assert [event.kind for event in events()] == ["run.started", "run.finished"]


def test_everything_is_as_it_was_after_the_run() -> None:
    def state() -> list[Any]:
        import mcp.client.session as session

        functions = [mcp_agent.stdio_client, mcp_agent.sse_client, mcp_agent.streamable_http_client]
        owners = [session.ClientSession, getattr(session, "BaseSession", None) or session.JSONRPCDispatcher]  # type: ignore[attr-defined, unused-ignore]
        inner = [cell.cell_contents for function in functions for cell in function.__closure__ or ()]
        return [*inner, *(value for owner in owners for value in vars(owner).values())]

    before = state()
    with playhead.record("agent"):
        during = state()
        assert clients._open == 1
    after = state()
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert sum(one is not other for one, other in zip(before, during, strict=True)) >= 7


@pytest.mark.skipif(GENERATION < 2, reason="mcp 1 always speaks through streams")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_inside_the_process_is_recorded_and_what_it_does_too(mode: str, page: str) -> None:
    from mcp import Client  # type: ignore[attr-defined, unused-ignore]
    from mcp.server.mcpserver import MCPServer  # type: ignore[import-not-found, unused-ignore]

    server: Any = MCPServer("inside")

    @server.tool()  # type: ignore[untyped-decorator, unused-ignore]
    async def look() -> str:
        """Look at the page."""
        return await fetch(page)

    async def agent() -> list[str]:
        async with Client(server, mode=mode) as client:
            return words(await client.call_tool("look", {}))

    with playhead.record("agent"):
        assert asyncio.run(agent()) == ["ok"]
    found = events()
    (called, returned), = tools(found)  # fmt: skip
    assert returned is not None
    assert returned.data["status"] == "ok"
    sent, = (event for event in found if event.kind == "http.sent")  # fmt: skip
    assert sent.parent == called.span


@pytest.mark.skipif(GENERATION < 2, reason="mcp 1 has no such client")
def test_the_stateless_protocol_is_recorded(transport: str, address: str) -> None:
    from mcp import Client, StdioServerParameters  # type: ignore[attr-defined, unused-ignore]
    from tests.capture.frameworks.mcp_agent import SERVER

    if transport == "sse":
        pytest.skip("the client takes a command or an address of streamable HTTP")
    import sys

    target: Any = address or StdioServerParameters(command=sys.executable, args=[str(SERVER), "stdio"])

    async def agent() -> list[str]:
        async with Client(target) as client:
            await client.list_tools()
            return words(await client.call_tool("add", ADD, meta={"mine": 1}))

    with playhead.record("agent"):
        assert asyncio.run(agent()) == ["3"]
    found = events()
    assert [event.data.get("method", event.data.get("name")) for event, _ in calls(found)] == [
        "server/discover", "tools/list", "add",
    ]  # fmt: skip
    assert tools(found)[0][0].data["params"] == {"_meta": {"mine": 1}}
    assert not [event for event in found if event.kind.startswith(("http.", "gap."))]
