"""Agents of frameworks, with tools at once: recorded once, replayed exactly, provider gone, no tool run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tests.replay.programs import assert_faithful, record, replay

from playhead.testing import ScriptedProvider, Text, ToolCall, ToolCalls

HEAD = """
import asyncio, os, random, time
from typing import Annotated, Any, TypedDict

def ran(name):
    with open("ran.txt", "a") as file:
        file.write(name + " ")

"""


def needs(name: str) -> Any:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    return pytest.mark.skipif(found is None, reason=f"{name} is not installed here; the matrix has it")


def check(folder: Path, code: str, script: list[Any], bodies: list[str]) -> bytes:
    """Record against the provider, and replay without it; `bodies` are the tools that ran, in any order."""
    with ScriptedProvider(script) as provider:
        recorded = record(folder, HEAD + code, {"BASE": provider.base_url, "ROOT": provider.root_url})
    assert sorted((folder / "ran.txt").read_text().split()) == sorted(bodies)
    (folder / "ran.txt").unlink()
    replayed = replay(folder)
    assert_faithful(recorded, replayed)
    assert replayed.report["surface"]["taped"] >= len(bodies)
    assert not (folder / "ran.txt").exists(), "no body ran again"
    return recorded


def calls(*asked: tuple[str, dict[str, Any]]) -> ToolCalls:
    return ToolCalls([ToolCall(name, given, id=f"call_{at}") for at, (name, given) in enumerate(asked)])  # type: ignore[arg-type]


@needs("langgraph")
def test_langgraph_with_parallel_tools_and_nodes(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
import operator
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

@tool
def weather(city: str) -> str:
    "Say how warm it is."
    ran("weather")
    time.sleep(random.random() / 20)
    return f"{random.randint(0, 99)} degrees in {city}"

@tool
async def people(city: str) -> dict:
    "Count the people."
    ran("people")
    await asyncio.sleep(random.random() / 20)
    return {"city": city, "people": random.random()}

@tool
def broken(number: int) -> str:
    "Fail."
    ran("broken")
    raise ValueError(f"no {number} {random.random()}")

@tool(response_format="content_and_artifact")
def drawn(city: str) -> tuple[str, Any]:
    "Draw."
    ran("drawn")
    return f"a map of {city}", (1, random.random())

class Plain(BaseTool):
    name: str = "plain"
    description: str = "A class."

    def _run(self, city: str) -> str:
        ran("plain")
        return f"plain {city} {random.random()}"

@tool
def picky(city: str) -> str:
    "Refuse."
    ran("picky")
    raise ToolException(f"not {city} {random.random()}")

picky.handle_tool_error = lambda error: f"refused: {error}"

@tool
def own(city: str) -> Any:
    "Make a message."
    ran("own")
    message = ToolMessage(f"own {random.random()}", tool_call_id="call_6", id="mine")
    return Command(update={"messages": [message]})

class Loud(BaseCallbackHandler):
    def on_tool_start(self, serialized, input_str, **more):
        heard.append(f"start {serialized['name']} {input_str}")

    def on_tool_end(self, output, **more):
        heard.append(f"end {getattr(output, 'content', output)}")

    def on_tool_error(self, error, **more):
        heard.append(f"error {error!r}")

heard = []
TOOLS = [weather, people, broken, drawn, Plain(), picky, own]

class State(TypedDict):
    messages: Annotated[list[Any], operator.add]

asking = ChatOpenAI(model="gpt-5", base_url=os.environ["BASE"], api_key="none").bind_tools(TOOLS)

def ask(state):
    return {"messages": [asking.invoke(state["messages"])]}

async def ask_async(state):
    return {"messages": [await asking.ainvoke(state["messages"])]}

def beside(name):
    async def node(state):
        return {"messages": [await weather.ainvoke({"city": name})]}
    return node

built = StateGraph(State)
built.add_node("ask", RunnableLambda(ask, ask_async))
built.add_node("tools", ToolNode(TOOLS, handle_tool_errors=True))
for name in ("left", "right"):
    built.add_node(name, beside(name))
    built.add_edge(START, name)
    built.add_edge(name, "ask")
built.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END])
built.add_edge("tools", "ask")
graph = built.compile(name="graph")

async def main():
    state = {"messages": [{"role": "user", "content": "go"}]}
    for message in (await graph.ainvoke(state, {"callbacks": [Loud()]}))["messages"]:
        print(repr(message))

asyncio.run(main())
for line in sorted(heard):  # which of two threads calls back first is a matter of chance
    print(line)
""",
        [
            calls(
                ("weather", {"city": "Rome"}),
                ("people", {"city": "Rome"}),
                ("broken", {"number": 3}),
                ("drawn", {"city": "Oslo"}),
                ("plain", {"city": "Oslo"}),
                ("picky", {"city": "Bern"}),
                ("own", {"city": "Bern"}),
                ("weather", {"town": "wrong"}),
            ),
            Text("done"),
        ],
        ["weather", "weather", "weather", "people", "broken", "drawn", "plain", "picky", "own"],
    )
    assert b"refused: not Bern" in out
    assert b"start weather" in out


@needs("pydantic_ai")
def test_pydantic_ai_with_parallel_tools(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

class Weather(BaseModel):
    city: str
    degrees: float

provider = OpenAIProvider(base_url=os.environ["BASE"], api_key="none")
agent = Agent(OpenAIChatModel("gpt-5", provider=provider), name="guide", retries=3)

@agent.tool_plain
def weather(city: str) -> Weather:
    ran("weather")
    time.sleep(random.random() / 20)
    return Weather(city=city, degrees=random.random())

@agent.tool
async def people(ctx: RunContext, city: str) -> dict:
    ran("people")
    await asyncio.sleep(random.random() / 20)
    return {"people": random.random()}

@agent.tool_plain
def shy(number: int) -> str:
    ran("shy")
    raise ModelRetry(f"ask again {random.random()}")

result = agent.run_sync("go")
print(result.output)
for message in result.all_messages():
    print(message)
""",
        [
            calls(
                ("weather", {"city": "Rome"}),
                ("people", {"city": "Rome"}),
                ("shy", {"number": 1}),
                ("weather", {"city": "Oslo"}),
            ),
            Text("done"),
        ],
        ["weather", "weather", "people", "shy"],
    )


@needs("agents")
def test_openai_agents_with_parallel_tools(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
from agents import Agent, OpenAIChatCompletionsModel, RunHooks, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)

@function_tool
def weather(city: str) -> str:
    "Say how warm it is."
    ran("weather")
    time.sleep(random.random() / 20)
    return f"{city} {random.random()}"

@function_tool
async def people(city: str) -> dict:
    "Count."
    ran("people")
    await asyncio.sleep(random.random() / 20)
    return {"people": random.random()}

@function_tool
def broken(number: int) -> str:
    "Fail."
    ran("broken")
    raise ValueError(f"no {random.random()}")

@function_tool(failure_error_function=None)
def worse(number: int) -> str:
    "Fail, and let nobody handle it."
    ran("worse")
    raise KeyError(f"no {random.random()}")

class Hooks(RunHooks):
    async def on_tool_start(self, context, agent, tool):
        heard.append(f"start {tool.name}")

    async def on_tool_end(self, context, agent, tool, result):
        heard.append(f"end {tool.name} {result}")

heard = []
client = AsyncOpenAI(base_url=os.environ["BASE"], api_key="none")
model = OpenAIChatCompletionsModel(model="gpt-5", openai_client=client)
agent = Agent(name="guide", instructions="help", tools=[weather, people, broken, worse], model=model)

async def main():
    result = await Runner.run(agent, "go", hooks=Hooks())
    print(result.final_output)
    for item in result.to_input_list():
        print(item)
    try:
        await Runner.run(agent, "again", hooks=Hooks())
    except Exception as error:
        print(type(error), error, repr(error.__cause__))

asyncio.run(main())
for line in sorted(heard):
    print(line)
""",
        [
            calls(
                ("weather", {"city": "Rome"}),
                ("people", {"city": "Rome"}),
                ("broken", {"number": 1}),
                ("weather", {"city": "Oslo"}),
            ),
            Text("done"),
            calls(("worse", {"number": 2})),
        ],
        ["weather", "weather", "people", "broken", "worse"],
    )
    assert b"start people" in out


@needs("google.genai")
def test_google_genai_that_calls_functions_by_itself(tmp_path: Path) -> None:
    out = check(
        tmp_path,
        """
from google import genai
from google.genai import types

def weather(city: str) -> dict:
    "Say how warm it is."
    ran("weather")
    return {"city": city, "degrees": random.random()}

def broken(number: int) -> str:
    "Fail."
    ran("broken")
    raise ValueError(f"no {random.random()}")

async def people(city: str) -> str:
    "Count."
    ran("people")
    await asyncio.sleep(0.01)
    return str(random.random())

client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=os.environ["ROOT"]))
config = types.GenerateContentConfig(tools=[weather, broken])
answer = client.models.generate_content(model="gemini-2.5-flash", contents="go", config=config)
print(answer.text, answer.automatic_function_calling_history)

async def main():
    config = types.GenerateContentConfig(tools=[people, weather])
    answer = await client.aio.models.generate_content(model="gemini-2.5-flash", contents="go", config=config)
    print(answer.text, answer.automatic_function_calling_history)

asyncio.run(main())
""",
        [
            calls(("weather", {"city": "Rome"}), ("broken", {"number": 1})),
            Text("done"),
            calls(("people", {"city": "Rome"}), ("weather", {"city": "Oslo"})),
            Text("done again"),
        ],
        ["weather", "weather", "broken", "people"],
    )
    assert b"because of error no" in out
