"""What a message of MCP becomes in the timeline; no release of the client is needed to say so."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from pathlib import Path
from typing import Any

import playhead
from playhead.capture.begin import begin
from playhead.capture.frameworks.mcp_messages import Conversation, Server, given_back
from playhead.capture.patches import Patches
from playhead.capture.scope import current, live, muted
from playhead.capture.spans import ToolCall
from playhead.event.envelope import Event
from playhead.event.keys import ASKED


def events() -> list[Event]:
    return [event for event in playhead.load("@last").events() if not event.kind.startswith("run.")]


def ask(conversation: Conversation, method: str, params: Any, result: Any = None) -> None:
    call = conversation.ask(lambda: (method, params))
    assert call is not None
    with call:
        call.answered(result)


def test_what_a_tool_was_sent_beside_its_arguments_is_kept_but_not_what_the_protocol_says_each_time() -> None:
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "mcp"}, "mine": 1}
    with playhead.record("agent"):
        ask(Conversation(), "tools/call", {"name": "t", "_meta": meta, "task": {"ttl": 1}}, {"content": []})
        ask(Conversation(), "tools/call", {"name": "t", "arguments": {"a": 1}})
    first, _, second, _ = events()
    assert first.data == {"name": "t", "input": {}, "params": {"task": {"ttl": 1}, "_meta": {"mine": 1}}}
    assert second.data == {"name": "t", "input": {"a": 1}}


def test_a_call_inside_the_tool_of_a_framework_is_recorded_inside_it() -> None:
    with playhead.record("agent"), ToolCall("add", {"a": 1}, [], "call_1", framework=True) as around:
        ask(Conversation(Server("http://x.test/mcp")), "tools/call", {"name": "add", "arguments": {"a": 1}}, {"r": 1})
    outer, inner, returned, _ = events()
    assert outer.data["call"] == "call_1"
    assert (inner.parent, inner.data["server"]) == (around.span, "http://x.test/mcp")
    assert returned.data["output"] == {"r": 1}


def test_an_error_that_the_agent_answers_with_keeps_its_code() -> None:
    class Refusal:
        code, message, data = -1, "no", {"why": "shy"}

    with playhead.record("agent"):
        call = Conversation().asked(lambda: ("sampling/createMessage", {"maxTokens": 1}))
        assert call is not None
        call.begin()
        call.refused(Refusal())
    asked, answered = events()
    assert asked.data == {"method": "sampling/createMessage", "params": {"maxTokens": 1}, "from_server": True}
    assert answered.data["status"] == "error"
    assert answered.data["error"] == {"type": "McpError", "message": "no", "code": -1, "data": {"why": "shy"}}


def test_a_message_that_belongs_to_no_run_is_not_recorded() -> None:
    conversation = Conversation()
    assert conversation.ask(lambda: ("ping", None)) is None
    conversation.notify(lambda: ("notifications/initialized", None))
    with playhead.record("agent", capture=False):
        assert conversation.ask(lambda: ("ping", None)) is None
    with playhead.record("agent"):
        token = muted.set(True)
        assert conversation.ask(lambda: ("ping", None)) is None
        muted.reset(token)
    assert events() == []


def test_the_question_of_a_request_leaves_out_what_differs_each_time() -> None:
    def question(params: Any, **more: Any) -> Any:
        return ASKED["mcp.requested"]({"method": "tools/list", "params": params, **more})

    plain = question({"cursor": "2"})
    assert question({"cursor": "2", "_meta": {"progressToken": 7, "traceparent": "00-1-2-01"}}) == plain
    assert question({"cursor": "2", "_meta": {"mine": 1}}) != plain
    assert question({"cursor": "3"}) != plain
    assert question({"cursor": "2"}, from_server=True) != plain
    assert question({"cursor": "2"}, server="another") == plain
    assert question(None) == question({})


def test_the_secrets_of_a_command_line_are_known_from_the_first_message_on() -> None:
    secret, other = "zPl4in-word-of-the-flag", "zAn0ther-of-the-variable"
    server = Server.of_command("run it", ["-e", f"TOKEN={other}", "--api-key", secret, "--verbose"], {"PATH": "/bin"})
    with playhead.record("agent") as run:
        ask(Conversation(server), "ping", {"said": f"{secret} {other}"})
        assert run.recording is not None
        redacted = dict(run.recording.redacted)
    asked, _ = events()
    assert asked.data["server"] == "'run it' -e TOKEN=[redacted:env] --api-key [redacted:env] --verbose"
    assert asked.data["params"] == {"said": "[redacted:env] [redacted:env]"}
    assert redacted == {"env": 4}, "the description is counted once, not with each message"


def test_the_keys_of_muted_traffic_are_learned(tmp_path: Path) -> None:
    secret = "zK3y-of-a-request-that-is-not-recorded"
    with playhead.record("agent") as run:
        token = muted.set(True)
        assert begin("GET", "http://x.test/", [("Authorization", f"Bearer {secret}")], b"") is None
        muted.reset(token)
        run.output = f"it was {secret}"
    assert secret.encode() not in b"".join(
        path.read_bytes() for path in (tmp_path / ".playhead").rglob("*") if path.is_file()
    )


def test_tasks_of_a_muted_part_have_no_lanes() -> None:
    async def lane() -> str | None:
        scope = live()
        return None if scope is None else scope.lane.path

    async def agent() -> list[str | None]:
        token = muted.set(True)
        hidden = [await asyncio.create_task(lane()) for _ in range(3)]
        muted.reset(token)
        return [*hidden, await asyncio.create_task(lane())]

    with playhead.record("agent"):
        assert asyncio.run(agent()) == ["0", "0", "0", "0.1"]


def test_a_context_that_comes_back_is_the_agents_in_the_lane_of_the_reader() -> None:
    with playhead.record("agent"):
        scope = current.get()
        assert scope is not None
        token = muted.set(True)
        sent = contextvars.copy_context()
        muted.reset(token)
        sent.run(current.set, scope._replace(span="7"))
        reader = scope._replace(lane=scope.lane.spawn())
        reset = current.set(reader)
        given_back(sent)
        current.reset(reset)
        back = sent.get(current)
        assert back is not None
        assert (back.span, back.lane.path, sent.get(muted)) == ("7", "0.1", False)


def test_what_a_function_closed_over_is_replaced_for_whoever_has_it_and_put_back() -> None:
    @contextlib.contextmanager
    def opened() -> Any:
        yield "before"

    held = opened
    inner = held.__closure__[0].cell_contents  # type: ignore[attr-defined]
    patches = Patches()

    def after() -> Any:
        yield "after"

    patches.replace_inner(opened, "func", lambda original: after)
    with held() as found:
        assert found == "after"
    patches.restore()
    with held() as found:
        assert found == "before"
    assert held.__closure__[0].cell_contents is inner  # type: ignore[attr-defined]
