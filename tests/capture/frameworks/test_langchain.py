"""LangChain and LangGraph: tools, nodes, graphs inside graphs, whatever way they are run."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest
from tests.capture.frameworks.telling import told

import playhead
from playhead.testing import ScriptedProvider, Text, ToolCall, ToolCalls

WHY = "LangChain and LangGraph are not installed here; the matrix has them"
langchain_openai = pytest.importorskip("langchain_openai", reason=WHY)
langgraph_graph = pytest.importorskip("langgraph.graph", reason=WHY)

from langchain_core.tools import BaseTool, ToolException, tool  # noqa: E402
from langgraph.prebuilt import InjectedState, ToolNode  # noqa: E402
from langgraph.types import Command, Send  # noqa: E402


@tool
def weather(city: str) -> str:
    """Say how warm it is."""
    return f"mild in {city}"


@tool
async def people(city: str) -> int:
    """Count the people."""
    await asyncio.sleep(0)
    return len(city)


@tool
def broken(number: int) -> str:
    """Fail."""
    raise ValueError(f"no {number}")


@tool
def secretive(city: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Use what the graph knows."""
    return f"{city} after {len(state['messages'])} messages"


@tool(response_format="content_and_artifact")
def drawn(city: str) -> tuple[str, list[int]]:
    """Draw a map."""
    return f"a map of {city}", [1, 2, 3]


@tool
@playhead.tool("saved", effects=["write"])
def saved(text: str) -> str:
    """Save a text."""
    return text.upper()


class Plain(BaseTool):
    name: str = "plain"
    description: str = "A tool that is a class, without an asynchronous side."

    def _run(self, city: str) -> str:
        return f"plain {city}"


def refused(error: Any) -> str:
    return f"refused: {error}"


@tool
def picky(city: str) -> str:
    """Refuse."""
    raise ToolException(f"not {city}")


picky.handle_tool_error = refused

TOOLS = [weather, people, broken, secretive, drawn, saved, Plain(), picky]


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def model(provider: ScriptedProvider, **options: Any) -> Any:
    return langchain_openai.ChatOpenAI(model="gpt-5", base_url=provider.base_url, api_key="none", **options)


def graph(provider: ScriptedProvider, name: str | None = None, **options: Any) -> Any:
    """Build the loop of an agent by hand, so that it is the same in every release."""
    asking = model(provider, **options).bind_tools(TOOLS)

    def ask(state: State) -> Any:
        return {"messages": [asking.invoke(state["messages"])]}

    async def ask_async(state: State) -> Any:
        return {"messages": [await asking.ainvoke(state["messages"])]}

    def goes_on(state: State) -> str:
        return "tools" if state["messages"][-1].tool_calls else langgraph_graph.END

    from langchain_core.runnables import RunnableLambda

    built = langgraph_graph.StateGraph(State)
    built.add_node("ask", RunnableLambda(ask, ask_async))
    built.add_node("tools", ToolNode(TOOLS, handle_tool_errors=True))
    built.add_edge(langgraph_graph.START, "ask")
    built.add_conditional_edges("ask", goes_on, ["tools", langgraph_graph.END])
    built.add_edge("tools", "ask")
    return built.compile(name=name)


def asked() -> Any:
    return {"messages": [{"role": "user", "content": "go"}]}


def texts(state: Any) -> list[Any]:
    return [getattr(message, "content", message) for message in state["messages"]]


def invoke(provider: ScriptedProvider) -> Any:
    return texts(graph(provider).invoke(asked()))


def ainvoke(provider: ScriptedProvider) -> Any:
    return texts(asyncio.run(graph(provider).ainvoke(asked())))


def stream(provider: ScriptedProvider) -> Any:
    return len(list(graph(provider, streaming=True).stream(asked(), stream_mode="messages"))) > 0


def astream(provider: ScriptedProvider) -> Any:
    async def read() -> bool:
        return (
            len([chunk async for chunk in graph(provider, streaming=True).astream(asked(), stream_mode="messages")]) > 0
        )

    return asyncio.run(read())


WAYS = [pytest.param(way, id=way.__name__) for way in (invoke, ainvoke, stream, astream)]
ASYNC = [pytest.param(way, id=way.__name__) for way in (ainvoke, astream)]


def one(name: str, **arguments: Any) -> list[Any]:
    return [ToolCalls((ToolCall(name, arguments, "call_a"),)), Text("done")]


@pytest.mark.parametrize("way", WAYS)
def test_nodes_are_steps_and_tools_are_inside_theirs(way: Any) -> None:
    seen = told(one("weather", city="Rome"), way)
    assert seen.steps == [["ask", "model"], ["tools", "weather"], ["ask", "model"]]
    assert seen.tool("call_a").input == {"city": "Rome"}
    assert seen.tool("call_a").output == "mild in Rome"


@pytest.mark.parametrize("way", WAYS)
def test_tools_that_run_side_by_side_have_lanes_in_the_order_of_the_answer(way: Any) -> None:
    cities = [f"city {number}" for number in range(5)]
    calls = tuple(ToolCall("weather", {"city": city}, f"call_{city}") for city in cities)
    lanes = []
    for _ in range(2):
        seen = told([ToolCalls(calls), Text("done")], way)
        assert sorted(tool.call or "" for tool in seen.tools) == [f"call_{city}" for city in cities]
        lanes.append(seen.lanes(*(f"call_{city}" for city in cities)))
        assert {seen.names[tool.parent] for tool in seen.tools} == {"tools"}
    assert lanes[0] == lanes[1]
    assert len({tuple(lane) for lane in lanes[0]}) == len(cities)
    assert lanes[0] == sorted(lanes[0])


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_raises_is_told_with_its_error_and_the_model_is_answered(way: Any) -> None:
    seen = told(one("broken", number=7), way)
    assert (seen.tool("call_a").status, seen.tool("call_a").error) == ("error", "ValueError")
    assert seen.result[0] == "returned"


@pytest.mark.parametrize("way", ASYNC)
def test_an_asynchronous_tool_is_told_once(way: Any) -> None:
    assert told(one("people", city="Rome"), way).tool("call_a").output == "4"


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_without_an_asynchronous_side_is_told_once(way: Any) -> None:
    assert told(one("plain", city="Rome"), way).tool("call_a").output == "plain Rome"


@pytest.mark.parametrize("way", WAYS)
def test_what_the_graph_hands_in_is_no_argument(way: Any) -> None:
    seen = told(one("secretive", city="Rome"), way)
    assert seen.tool("call_a").input == {"city": "Rome"}


@pytest.mark.parametrize("way", WAYS)
def test_an_artifact_is_part_of_the_output(way: Any) -> None:
    assert told(one("drawn", city="Rome"), way).tool("call_a").output == {
        "content": "a map of Rome", "artifact": [1, 2, 3],
    }  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_langchain_turns_into_an_answer_is_still_an_error(way: Any) -> None:
    tool = told(one("picky", city="Rome"), way).tool("call_a")
    assert (tool.status, tool.output) == ("error", "refused: not Rome")
    assert tool.error == "langchain_core.tools.base.ToolException"


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_that_is_decorated_too_is_told_once_with_its_effects(way: Any) -> None:
    seen = told(one("saved", text="x"), way)
    assert [tool.name for tool in seen.tools] == ["saved"]
    assert seen.tool("call_a").effects == ["write"]


def test_a_graph_with_a_name_is_an_agent() -> None:
    seen = told(one("weather", city="Rome"), lambda provider: texts(graph(provider, "meteo").invoke(asked())))
    assert seen.steps == [["agent meteo", ["ask", "model"], ["tools", "weather"], ["ask", "model"]]]


def test_a_stream_that_is_left_closes_its_steps() -> None:
    def leave(provider: ScriptedProvider) -> Any:
        chunks = graph(provider, "meteo").stream(asked(), stream_mode="updates")
        first = sorted(next(chunks))
        chunks.close()
        return first

    seen = told(one("weather", city="Rome"), leave)
    assert [step[0] for step in seen.steps] == ["agent meteo"]
    finished = {event.span: event.data["status"] for event in seen.events if event.kind == "step.finished"}
    assert finished["1"] == "cancelled"


def test_a_left_async_stream_closes_its_steps_and_leaves_no_scope_behind() -> None:
    async def leave(provider: ScriptedProvider) -> Any:
        chunks = graph(provider, "meteo").astream(asked(), stream_mode="updates")
        async for chunk in chunks:
            first = sorted(chunk)
            with playhead.step("outside"):
                break
        await chunks.aclose()
        return first

    seen = told(one("weather", city="Rome"), lambda provider: asyncio.run(leave(provider)))
    assert [step[0] for step in seen.steps] == ["agent meteo", "outside"]


def branches(provider: ScriptedProvider) -> Any:
    asking = model(provider)

    def branch(state: Any) -> Any:
        return {"messages": [asking.invoke(state["messages"]).content]}

    built = langgraph_graph.StateGraph(State)
    built.add_node("left", branch)
    built.add_node("right", branch)
    built.add_edge(langgraph_graph.START, "left")
    built.add_edge(langgraph_graph.START, "right")
    return built.compile()


def test_nodes_that_run_side_by_side_have_a_lane_each_and_their_own_model_calls() -> None:
    for way in (
        lambda provider: sorted(map(str, texts(branches(provider).invoke(asked())))),
        lambda provider: sorted(map(str, texts(asyncio.run(branches(provider).ainvoke(asked()))))),
    ):
        seen = told(["same", "same"], way)
        assert sorted(seen.steps) == [["left", "model"], ["right", "model"]]
        lanes = {event.data["name"]: event.lane for event in seen.events if event.kind == "step.started"}
        assert lanes["left"] != lanes["right"]


def nested(provider: ScriptedProvider) -> Any:
    inner = graph(provider)
    built = langgraph_graph.StateGraph(State)
    built.add_node("expert", inner)
    built.add_edge(langgraph_graph.START, "expert")
    return built.compile()


def test_a_graph_inside_a_graph_is_inside_its_node() -> None:
    for way in (
        lambda provider: texts(nested(provider).invoke(asked()))[-1],
        lambda provider: texts(asyncio.run(nested(provider).ainvoke(asked())))[-1],
    ):
        seen = told(one("weather", city="Rome"), way)
        assert seen.steps == [["expert", ["ask", "model"], ["tools", "weather"], ["ask", "model"]]]


def test_work_that_is_sent_to_a_node_several_times_is_a_step_each() -> None:
    def agent(provider: ScriptedProvider) -> Any:
        built = langgraph_graph.StateGraph(State)
        built.add_node("work", lambda state: {"messages": [state["messages"][0]]})
        built.add_conditional_edges(
            langgraph_graph.START, lambda state: [Send("work", {"messages": [number]}) for number in range(3)], ["work"]
        )
        return texts(built.compile().invoke({"messages": []}))

    seen = told([], agent)
    assert seen.steps == [["work"], ["work"], ["work"]]
    assert all(event.data["attempt"] == 1 for event in seen.events if event.kind == "step.started")


def test_a_command_to_the_graph_around_ends_a_node_well_and_a_question_to_a_person_cancels_it() -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import interrupt

    def agent(provider: ScriptedProvider) -> Any:
        inner = langgraph_graph.StateGraph(State)
        inner.add_node("hands_over", lambda state: Command(goto="asks", graph=Command.PARENT))
        inner.add_edge(langgraph_graph.START, "hands_over")
        built = langgraph_graph.StateGraph(State)
        built.add_node("inner", inner.compile())
        built.add_node("asks", lambda state: {"messages": [interrupt("may I?")]})
        built.add_edge(langgraph_graph.START, "inner")
        made = built.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        made.invoke({"messages": []}, config)
        return texts(made.invoke(Command(resume="yes"), config))

    seen = told([], agent)
    status = {event.span: event.data["status"] for event in seen.events if event.kind == "step.finished"}
    ended = [(event.data["name"], status[event.span]) for event in seen.events if event.kind == "step.started"]
    assert ended == [("inner", "ok"), ("hands_over", "ok"), ("asks", "cancelled"), ("asks", "ok")]


def test_a_tool_that_is_called_by_hand_is_told_too() -> None:
    def agent(provider: ScriptedProvider) -> Any:
        return [weather.invoke({"city": "Rome"}), asyncio.run(people.ainvoke({"city": "Rome"}))]

    seen = told([], agent)
    assert [(tool.name, tool.output) for tool in seen.tools] == [("weather", "mild in Rome"), ("people", 4)]
