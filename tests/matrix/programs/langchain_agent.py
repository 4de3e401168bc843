"""Build agents with LangChain and LangGraph: tools run by the framework, in threads where there are several."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessageChunk
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import END, START, StateGraph
from scenario import KEY, MANY, ROOT, TOOLS, main, prompt, raising_scenario, scenario


@tool
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return TOOLS["weather"](city)


@tool
def clock(city: str) -> str:
    """Say what time it is in a city."""
    return TOOLS["clock"](city)


@tool("clock")
def broken_clock(city: str) -> str:
    """Say what time it is in a city."""
    raise ValueError(f"the clock of {city} has stopped")


@tool("weather")
async def weather_async(city: str) -> str:
    """Say how warm it is in a city."""
    await asyncio.sleep(0)
    return TOOLS["weather"](city)


def model(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-5", base_url=f"{ROOT}/v1", api_key=KEY, **options)  # type: ignore[arg-type]


def claude() -> ChatAnthropic:
    return ChatAnthropic(model="claude-sonnet-4-5", base_url=ROOT, api_key=KEY)  # type: ignore[call-arg, arg-type]


def asked(name: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": prompt(name)}]}


def told(state: dict[str, Any]) -> list[Any]:
    return [
        [message.type, message.content, [[call["name"], call["args"]] for call in getattr(message, "tool_calls", [])]]
        for message in state["messages"]
    ]


@scenario
def sync(seen: list[Any]) -> Any:
    answer = model().invoke(prompt("sync"))
    return [answer.content, answer.usage_metadata]


@scenario
async def asynchronous(seen: list[Any]) -> Any:
    answer = await model().ainvoke(prompt("asynchronous"))
    return [answer.content, answer.usage_metadata]


@scenario
def stream(seen: list[Any]) -> Any:
    for chunk in model().stream(prompt("stream")):
        seen.append([chunk.content, chunk.usage_metadata])
    return len(seen)


@scenario
async def stream_async(seen: list[Any]) -> Any:
    async for chunk in model().astream(prompt("stream_async")):
        seen.append(chunk.content)
    return len(seen)


@scenario
def agent(seen: list[Any]) -> Any:
    return told(create_agent(model(), [weather, clock]).invoke(asked("agent")))


@scenario
async def agent_async(seen: list[Any]) -> Any:
    return told(await create_agent(model(), [weather_async, clock]).ainvoke(asked("agent_async")))


@scenario
def agent_responses(seen: list[Any]) -> Any:
    return told(create_agent(model(use_responses_api=True), [weather, clock]).invoke(asked("agent_responses")))


@scenario
def agent_claude(seen: list[Any]) -> Any:
    return told(create_agent(claude(), [weather, clock]).invoke(asked("agent_claude")))


@scenario
def agent_stream(seen: list[Any]) -> Any:
    for update in create_agent(model(), [weather, clock]).stream(asked("agent_stream"), stream_mode="updates"):
        seen.append({node: told(state) for node, state in update.items()})
    return len(seen)


@scenario
async def agent_stream_async(seen: list[Any]) -> Any:
    """Stream the words of the model out of the agent."""
    made = create_agent(model(streaming=True), [weather, clock])
    async for message, about in made.astream(asked("agent_stream_async"), stream_mode="messages"):
        if isinstance(message, AIMessageChunk):
            seen.append([about["langgraph_node"], message.content])
    return len(seen)


@scenario
def parallel_tools(seen: list[Any]) -> Any:
    return told(create_agent(model(), [weather, clock]).invoke(asked("parallel_tools")))


@scenario
async def parallel_tools_async(seen: list[Any]) -> Any:
    return told(await create_agent(model(), [weather_async, clock]).ainvoke(asked("parallel_tools_async")))


@raising_scenario
def parallel_tools_broken(seen: list[Any]) -> Any:
    """Use a tool that raises: the agent ends with what it raised."""
    return told(create_agent(model(), [weather, broken_clock]).invoke(asked("parallel_tools_broken")))


class Notes(TypedDict):
    """The state of a graph whose nodes run side by side."""

    answers: Annotated[list[str], operator.add]


def graph_of(name: str) -> Any:
    def north(state: Notes) -> Notes:
        return {"answers": [str(model().invoke(prompt(f"{name}_1")).content)]}

    def south(state: Notes) -> Notes:
        return {"answers": [str(model().invoke(prompt(f"{name}_2")).content)]}

    def both(state: Notes) -> Notes:
        return {"answers": [str(model().invoke(prompt(f"{name}_3")).content)]}

    graph = StateGraph(Notes)
    for node in (north, south, both):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "north")
    graph.add_edge(START, "south")
    graph.add_edge(["north", "south"], "both")
    graph.add_edge("both", END)
    return graph.compile()


@scenario
def graph(seen: list[Any]) -> Any:
    """Run two nodes side by side, then one that needs both."""
    return graph_of("graph").invoke({"answers": []})


@scenario
async def graph_async(seen: list[Any]) -> Any:
    return await graph_of("graph_async").ainvoke({"answers": []})


@scenario
def rate_limited(seen: list[Any]) -> Any:
    return model().invoke(prompt("rate_limited")).content


@scenario
def server_error(seen: list[Any]) -> Any:
    return model().invoke(prompt("server_error")).content


@raising_scenario
def failing(seen: list[Any]) -> Any:
    return model().invoke(prompt("failing")).content


@raising_scenario
def cut_stream(seen: list[Any]) -> Any:
    for chunk in model().stream(prompt("cut_stream")):
        seen.append(chunk.content)


@scenario
def threads(seen: list[Any]) -> Any:
    answers = model().batch([prompt(f"threads_{number}") for number in range(MANY)])
    return [answer.content for answer in answers]


@scenario
async def gather(seen: list[Any]) -> Any:
    made = model()
    answers = await asyncio.gather(*(made.ainvoke(prompt(f"gather_{number}")) for number in range(MANY)))
    return [answer.content for answer in answers]


@scenario
def embeddings(seen: list[Any]) -> Any:
    made = OpenAIEmbeddings(base_url=f"{ROOT}/v1", api_key=KEY, check_embedding_ctx_length=False)  # type: ignore[call-arg, arg-type]
    return made.embed_documents([prompt("embeddings"), "two"])


if __name__ == "__main__":
    main()
