"""An MCP client is replayed without its server: no process, no connection, and the agent's callbacks run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.replay.programs import ROOT, assert_faithful, record, replay, run

pytest.importorskip("mcp", reason="mcp is not installed here; `make test-matrix` runs these tests with mcp 1 and mcp 2")

from tests.capture.frameworks.mcp_agent import GENERATION, TRANSPORTS, serving

HEAD = f"""
import asyncio, os, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.capture.frameworks.mcp_agent import connected, sampled, words

def to_server(**options):
    return connected(os.environ["TRANSPORT"], os.environ["ADDRESS"], **options)

"""


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(folder: Path, transport: str, code: str) -> bytes:
    """Record against a server, and replay without it."""
    with serving(transport) as address:
        recorded = record(folder, HEAD + code, {"TRANSPORT": transport, "ADDRESS": address})
    replayed = replay(folder)
    assert_faithful(recorded, replayed)
    assert not replayed.report["blocked"]
    return recorded


def test_past_the_tape_a_server_is_behind_the_session(tmp_path: Path, transport: str) -> None:
    code = """
async def main():
    async with to_server() as session:
        for number in range(4):
            print(words(await session.call_tool("add", {"left": number, "right": number})))

asyncio.run(main())
"""
    with serving(transport) as address:
        variables = {"TRANSPORT": transport, "ADDRESS": address}
        recorded = record(tmp_path, HEAD + code, variables)
        done = run(tmp_path, "fork", "@last", "--at", "add#2", "--live", "all", "--json", env=variables)
    found = json.loads(done.out)
    assert found["outcome"]["same"], (found, done.err)
    assert found["live_calls"] == 2
    assert recorded.count(b"\n") == 4


def test_requests_and_tools_are_answered_from_the_tape(tmp_path: Path, transport: str) -> None:
    out = check(
        tmp_path,
        transport,
        """
async def main():
    async with to_server() as session:
        print([tool.name for tool in (await session.list_tools()).tools])
        print(await session.read_resource("note://today"))
        print(words(await session.call_tool("add", {"left": 1, "right": 2})))
        print(await session.call_tool("fail", {"why": "because"}))
        print(words(await session.call_tool("say", {"name": "HOME"})))
        try:
            await session.read_resource("note://missing")
        except Exception as error:
            print(type(error), error, error.error)
        several = (session.call_tool("add", {"left": number, "right": number}) for number in range(5))
        print([words(result) for result in await asyncio.gather(*several)])

asyncio.run(main())
""",
    )
    assert b"['3']" in out


def test_what_the_server_says_and_asks_by_itself_comes_again(tmp_path: Path, transport: str) -> None:
    out = check(
        tmp_path,
        transport,
        """
async def think(context, params):
    print("asked for", params.max_tokens if hasattr(params, "max_tokens") else params.maxTokens)
    return sampled("a thought")

async def logged(params):
    print("log", params.data)

async def progress(done, total, message):
    print("progress", done, total)

async def main():
    async with to_server(sampling_callback=think, logging_callback=logged) as session:
        print(words(await session.call_tool("count", {"upto": 3}, progress_callback=progress)))
        print(words(await session.call_tool("think", {})))
        print(words(await session.call_tool("mumble", {})))
        counting = (session.call_tool("count", {"upto": upto}, progress_callback=progress) for upto in (2, 3))
        print([words(result) for result in await asyncio.gather(*counting)])

asyncio.run(main())
""",
    )
    assert out.count(b"progress") == 8
    assert b"the model says a thought" in out
    assert b"log mumbling" in out


def test_a_call_that_took_too_long_is_given_up_again(tmp_path: Path) -> None:
    limit = "0.2" if GENERATION == 2 else "datetime.timedelta(seconds=0.2)"
    check(
        tmp_path,
        "stdio",
        f"""
import datetime

async def main():
    async with to_server() as session:
        try:
            await session.call_tool("wait", {{"seconds": 1}}, read_timeout_seconds={limit})
        except Exception as error:
            print(type(error).__name__, error)
        print(words(await session.call_tool("add", {{"left": 1, "right": 2}})))

asyncio.run(main())
""",
    )


def test_another_answer_of_the_agent_to_the_server_is_a_difference(tmp_path: Path) -> None:
    code = """
async def think(context, params):
    return sampled("a thought")

async def main():
    async with to_server(sampling_callback=think) as session:
        print(words(await session.call_tool("think", {})))

asyncio.run(main())
"""
    check(tmp_path, "stdio", code)
    (tmp_path / "agent.py").write_text((HEAD + code).replace("a thought", "another one"))
    replayed = replay(tmp_path)
    assert replayed.verdict == "deviated"
    assert any("mcp.answered" in str(one["kind"]) for one in replayed.report["deviations"])


@pytest.mark.skipif(GENERATION == 1, reason="from mcp 2 on a client can be given a server of the same process")
def test_a_server_in_the_same_process_is_answered_and_its_tools_do_not_run(tmp_path: Path) -> None:
    check(
        tmp_path,
        "stdio",
        """
from mcp.client import Client
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("own")

@server.tool()
async def pay(amount: int, ctx: Context) -> str:
    "Pay."
    with open("ran.txt", "a") as file:
        file.write("x")
    return f"paid {amount} {os.urandom(4).hex()}"

async def main():
    async with Client(server) as client:
        print([tool.name for tool in (await client.list_tools()).tools])
        print(words(await client.call_tool("pay", {"amount": 3})))

asyncio.run(main())
""",
    )
    assert (tmp_path / "ran.txt").read_text() == "x"
