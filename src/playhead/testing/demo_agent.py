"""Be a small but real agent to record: the `openai` client, four steps, a tool loop, a bug, and a patch that mends it.

The model is a script (`demo_script`), so it costs nothing and needs no key; everything else is what an agent does.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import playhead
from playhead.errors import UsageError
from playhead.testing.demo_project import (
    CHECK_PATH,
    LOGIN_PATH,
    PATCH,
    ChecksFailed,
    DemoProject,
    PatchRejected,
    paths_of,
)
from playhead.testing.provider import ScriptedProvider
from playhead.testing.script import Answer, Text, ToolCall, ToolCalls

if TYPE_CHECKING:
    from openai import OpenAI

MODEL = "gpt-5"
_TURNS_MAX = 8  # of one conversation; a model that goes on asking for tools is stopped
_TASK = "Ada cannot log in when she writes her address in capitals. Fix the login bug."
_INSTRUCTIONS = "You repair a small Python project. Use the tools; never guess what a file says."


@dataclass(frozen=True)
class _Session:
    """What the agent works with. Not part of its input: the same issue is the same request at any address."""

    client: OpenAI
    project: DemoProject


_session: contextvars.ContextVar[_Session] = contextvars.ContextVar("playhead_demo_session")


@playhead.tool
def read_file(path: str) -> str:
    """Return the text of a file of the project."""
    return _session.get().project.read(path)


@playhead.tool(effects=["write"])
def apply_patch(diff: str) -> str:
    """Apply a unified diff to the project."""
    return "changed " + ", ".join(_session.get().project.apply(diff))


@playhead.tool
def run_tests() -> str:
    """Run the checks of the project; fails when one of them does."""
    return _session.get().project.check()


_FUNCTIONS: dict[str, Callable[..., str]] = {
    "read_file": read_file,
    "apply_patch": apply_patch,
    "run_tests": run_tests,
}


def _schema(name: str, description: str, *parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    shape = {"type": "object", "properties": properties, "required": list(parameters), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": shape}}


TOOLS = [
    _schema("read_file", "Return the text of a file of the project.", "path"),
    _schema("apply_patch", "Apply a unified diff to the project.", "diff"),
    _schema("run_tests", "Run the checks of the project."),
]


def demo_script() -> list[Answer]:
    """Return what the model says: it reads two files at once, sees the check fail, mends the bug, and checks again."""
    report = {
        "fixed": True,
        "summary": "Addresses are compared in lower case, so capitals no longer keep anybody out.",
        "files": [LOGIN_PATH],
        "tests": {"passed": 4, "failed": 0},
    }
    return [
        ToolCalls((ToolCall("read_file", {"path": LOGIN_PATH}), ToolCall("read_file", {"path": CHECK_PATH}))),
        Text("normalise() strips spaces but keeps capitals. Compare addresses in lower case, then run the checks."),
        ToolCalls((ToolCall("run_tests"),), text="First I want to see it fail."),
        ToolCalls((ToolCall("apply_patch", {"diff": PATCH}),)),
        Text("The address is now stripped and put in lower case before it is looked up."),
        ToolCalls((ToolCall("run_tests"),)),
        Text(json.dumps(report)),
    ]


def run_demo_agent(base_url: str, issue: int = 1842) -> dict[str, Any]:
    """Run the agent once against the provider at base_url and return its report."""
    with _opened(base_url):
        report: dict[str, Any] = fix_login(issue)
        return report


@playhead.agent("fix-login")
def fix_login(issue: int) -> dict[str, Any]:
    """Fix the bug of an issue. Called by itself, as a replay does, it brings its own scripted provider."""
    if _session.get(None) is not None:
        return _fix(issue)
    with ScriptedProvider(demo_script()) as provider, _opened(provider.base_url):
        return _fix(issue)


@contextlib.contextmanager
def _opened(base_url: str) -> Iterator[None]:
    try:
        from openai import OpenAI
    except ImportError as error:
        raise UsageError(
            "the demo agent uses the openai client, which is not installed", hint="pip install openai"
        ) from error
    with DemoProject() as project, OpenAI(base_url=base_url, api_key="demo-not-a-key", max_retries=0) as client:
        token = _session.set(_Session(client, project))
        try:
            yield
        finally:
            _session.reset(token)


def _fix(issue: int) -> dict[str, Any]:
    project = _session.get().project
    with playhead.step("build_context") as step:
        files = project.paths()
        context = {"issue": issue, "task": _TASK, "files": files}
        playhead.context_pack({"step": "build_context", **context})
        step.set_attributes({"files": len(files)})
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": _INSTRUCTIONS},
            {"role": "user", "content": f"Issue {issue}: {_TASK}\nFiles: {', '.join(files)}\nPlan first."},
        ]
    with playhead.step("plan") as step:
        playhead.context_pack({"step": "plan", **context})
        plan = _converse(messages)
        playhead.note(f"Plan: {plan}")
        step.set_attributes({"plan": plan})
    with playhead.step("implement") as step:
        playhead.context_pack({"step": "implement", **context, "plan": plan})
        messages.append({"role": "user", "content": "Carry out the plan."})
        _converse(messages)
        patch = project.diff()
        playhead.artifact("patch.diff", patch, role="patch")
        step.set_attributes({"files_changed": paths_of(patch) if patch else []})
    with playhead.step("verify") as step:
        playhead.context_pack({"step": "verify", **context, "plan": plan, "patch": patch})
        messages.append({"role": "user", "content": "Run the checks and report as JSON."})
        report = json.loads(_converse(messages, response_format={"type": "json_object"}))
        step.set_attributes({"fixed": report["fixed"]})
    return {"issue": issue, **report}


def _converse(messages: list[dict[str, Any]], **options: Any) -> str:
    """Let the model speak until it asks for no more tools; messages grows by all that was said."""
    for _ in range(_TURNS_MAX):
        message = _ask(messages, options)
        messages.append(message.model_dump(mode="json", exclude_none=True))
        if not message.tool_calls:
            return str(message.content)
        results = _run_tools(message.tool_calls)
        for call, result in zip(message.tool_calls, results, strict=True):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError(f"the model asked for tools in {_TURNS_MAX} turns without an answer")


def _ask(messages: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    request: dict[str, Any] = {"model": MODEL, "messages": messages, "tools": TOOLS, **options}
    return _session.get().client.chat.completions.create(**request).choices[0].message


def _run_tools(calls: list[Any]) -> list[str]:
    """Run what was asked for in one breath side by side, one thread each, started in the order of the request."""
    if len(calls) == 1:
        return [_run_tool(calls[0])]
    outcomes: list[str | BaseException] = [""] * len(calls)
    session = _session.get()

    def work(number: int) -> None:
        _session.set(session)  # a thread begins with an empty context, and only while recording with the spawner's
        try:
            outcomes[number] = _run_tool(calls[number])
        except BaseException as error:  # carried over to the thread that asked, which raises it
            outcomes[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results: list[str] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results


def _run_tool(call: Any) -> str:
    """Run one tool. What the model can do something about goes back to it; everything else ends the agent."""
    name, arguments = call.function.name, json.loads(call.function.arguments)
    if name not in _FUNCTIONS:
        return f"error: there is no tool {name}"
    try:
        if name == "apply_patch":
            for path in paths_of(arguments["diff"]):
                playhead.check("repo.write", resource=path)
        return _FUNCTIONS[name](**arguments)
    except (ChecksFailed, PatchRejected, FileNotFoundError) as error:
        return f"error: {error}"


if __name__ == "__main__":
    run_demo_agent(sys.argv[1])
