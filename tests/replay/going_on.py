"""A recorded agent with tools that count, and commands that let it leave its tape."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.replay.again import playhead

from playhead.testing import ReceivedRequest, ScriptedProvider

# Asks a model with what Python has itself, which is loaded fastest.
PLAINLY = """
import http.client, json, sys
HOST = sys.argv[1].removeprefix("http://").removesuffix("/v1")
def ask(text):
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": text}]}
    connection = http.client.HTTPConnection(HOST, timeout=30)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["choices"][0]["message"]["content"]
"""

NEVER = 10**6  # no run has so many events

# About twenty events that its own code causes: steps, questions, tools that write, notes, files.
AGENT = (
    "import killing\n"
    + PLAINLY
    + """
import playhead

@playhead.tool("book", effects=["write"])
def book(name, amount):
    with open("ledger.txt", "a") as file:
        file.write(f"{name} {amount}\\n")
    return {"booked": amount}

@playhead.tool("pay", effects=["irreversible"])
def pay(amount):
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return "paid"

log, total = open("agent.log", "a"), 0
for number in range(int(sys.argv[2])):
    with playhead.step(f"round {number}"):
        said = ask(f"round {number}, so far {total}")
        log.write(f"{said}\\n")
        log.flush()
        total += book(said, number + 1)["booked"]
        playhead.note(f"{said} {total}")
print(ask(f"the end, {total}"), total)
if "pay" in said:
    print(pay(total))
log.close()
"""
)

# Kills the program right after an event was written, when it is recorded; in a replay it does nothing.
KILLING = """
import signal
from playhead.capture import answering
from playhead.ledger import writer

number = int(open("kill_at").read())
if answering.player is None:
    kind = writer.Ledger
    append, killed = kind.append, []

    def appending(self, *args, **options):
        sealed = append(self, *args, **options)
        if sealed is not None and sealed.seq >= number and not killed:
            killed.append(True)
            signal.raise_signal(signal.SIGKILL)
        return sealed

    kind.append = appending
"""


def told(request: ReceivedRequest) -> str:
    """Answer so that the same question has the same answer."""
    return f"re {request.json()['messages'][-1]['content']}"


@contextmanager
def provider(script: Any = told) -> Iterator[ScriptedProvider]:
    """Have a provider that answers as long as it is asked."""
    with ScriptedProvider(script) as found:
        yield found


def write(folder: Path, program: str = AGENT) -> None:
    """Put the agent into a folder."""
    (folder / "program.py").write_text(program)
    (folder / "killing.py").write_text(KILLING)


def recorded(folder: Path, url: str, *, kill_at: int = NEVER, rounds: int = 2, succeeds: bool = True) -> str:
    """Record the agent, killed right after an event if that is wanted; return its run."""
    (folder / "kill_at").write_text(str(kill_at))
    for name in ("ledger.txt", "agent.log", "paid.txt"):
        (folder / name).unlink(missing_ok=True)
    done = playhead(folder, "record", "--quiet", "--", sys.executable, "program.py", url, str(rounds))
    assert (done.returncode == 0) is (succeeds and kill_at == NEVER), done.stderr
    found: list[dict[str, Any]] = json.loads(playhead(folder, "ls", "--json").stdout)
    return next(str(run["id"]) for run in found if not run["origin"])


def answered(folder: Path, command: str, *arguments: str, stdin: str = "") -> dict[str, Any]:
    """Return the JSON of a command."""
    done = playhead(folder, command, "--json", *arguments, stdin=stdin)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def lines(folder: Path, name: str) -> list[str]:
    """Return the lines of a file; none where it is not there."""
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


def events(folder: Path, run: str) -> list[dict[str, Any]]:
    """Return the events of a run."""
    shown = playhead(folder, "show", run, "--raw").stdout
    return [json.loads(line) for line in shown.splitlines()]
