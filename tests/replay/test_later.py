"""What a replay has answered is written a little later, and nobody can tell from the record."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import playhead
from playhead import _limits
from playhead.replay.session import Session
from playhead.store.memory import MemoryStore
from playhead.store.reader import RunReader
from playhead.testing import ScriptedProvider, Text


def ask(client: httpx.Client, url: str, words: str) -> str:
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": words}]}
    found: str = client.post(f"{url}/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    return found


@playhead.tool
def look_up(what: str) -> str:
    return what.upper()


def converse(url: str, questions: list[str], tools: bool = False) -> list[str]:
    said = []
    with httpx.Client() as client:
        for words in questions:
            said.append(ask(client, url, words))
            if tools:
                said.append(look_up(words))
    return said


class Recorded:
    """A recorded conversation, and the same code again."""

    def __init__(self, questions: list[str], tools: bool = False) -> None:
        self.questions, self.tools = questions, tools
        self.store = MemoryStore()
        with ScriptedProvider([Text(f"answer to {words}") for words in questions]) as provider:
            self.url = provider.base_url
            with playhead.record("talk", store=self.store):
                self.said = converse(self.url, questions, tools)
        (run,) = self.store.runs()
        self.reader = RunReader(self.store, run)

    def session(self) -> Session:
        self.kept = MemoryStore()
        return Session(self.reader, store=self.kept, waive=["not_captured"])

    def events(self) -> list[Any]:
        (run,) = self.kept.runs()
        return list(RunReader(self.kept, run).resolved())


def told(events: list[Any]) -> list[Any]:
    """Return what events say, without the numbers of this run."""
    out = []
    for event in events:
        if event.kind.startswith(("model.", "tool.", "step.")):
            data = {name: value for name, value in event.data.items() if name != "http"}
            out.append((event.kind, event.lane, event.key, data))
    return out


@pytest.mark.parametrize("tools", [False, True])
def test_the_record_is_that_of_a_recording(tools: bool) -> None:
    recorded = Recorded([f"question {number}" for number in range(200)], tools)
    with recorded.session() as session:
        assert converse(recorded.url, recorded.questions, tools) == recorded.said
    assert session.result is not None
    assert session.result.faithful, session.result.differences
    assert told(recorded.events()) == told(list(recorded.reader.resolved()))


def test_what_waits_is_written_before_anything_else_and_as_of_its_own_time() -> None:
    recorded = Recorded(["one", "two"])
    with recorded.session() as session:
        converse(recorded.url, recorded.questions)
        assert session.record is not None
        waiting = session.record.recording.later.waiting
        assert len(waiting) == 4, "two questions and two answers"
        noted = time.time()
        playhead.note("after both")
        assert not waiting
    events = recorded.events()
    kinds = [event.kind for event in events if event.kind.startswith(("model.", "note."))]
    assert kinds == ["model.invoked", "model.responded"] * 2 + ["note.added"]
    elapsed = [event.elapsed_us for event in events]
    assert elapsed == sorted(elapsed)
    texts = [event.time for event in events if event.kind.startswith("model.")]
    assert texts == sorted(texts)
    assert len(set(texts)) > 1, "each has the time at which it was asked or answered"
    assert all(text <= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(noted + 1)) for text in texts)


def test_no_more_waits_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "WRITTEN_LATER_MAX", 6)
    recorded = Recorded([f"question {number}" for number in range(20)])
    with recorded.session() as session, httpx.Client() as client:
        assert session.record is not None
        for words in recorded.questions:
            ask(client, recorded.url, words)
            assert len(session.record.recording.later.waiting) < 6
    assert session.result is not None
    assert session.result.faithful


def test_another_question_is_a_deviation_at_its_place() -> None:
    recorded = Recorded(["one", "two", "three"])
    with recorded.session() as session, httpx.Client() as client:
        ask(client, recorded.url, "one")
        with pytest.raises(playhead.DeviationError) as raised:
            ask(client, recorded.url, "second")
    assert raised.value.deviation["seq"] == [e.seq for e in recorded.reader.events() if e.kind == "model.invoked"][1]
    assert session.result is not None
    assert not session.result.faithful


def test_another_order_of_the_same_questions_is_answered_as_ever() -> None:
    recorded = Recorded(["one", "two", "three"])
    with recorded.session(), httpx.Client() as client:
        assert ask(client, recorded.url, "three") == "answer to three"
        assert ask(client, recorded.url, "one") == "answer to one"
        assert ask(client, recorded.url, "two") == "answer to two"


def test_another_thread_writes_what_waits_before_its_own() -> None:
    recorded = Recorded(["one", "two"])
    with recorded.session() as session:
        converse(recorded.url, recorded.questions)
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(playhead.note, "from a thread"))
        thread.start()
        thread.join()
        assert session.record is not None
        assert not session.record.recording.later.waiting
    kinds = [event.kind for event in recorded.events() if event.kind.startswith(("model.", "note."))]
    assert kinds[-1] == "note.added"
    assert len(kinds) == 5


def test_a_process_that_ends_without_the_usual_loses_nothing(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import os, sys, httpx\n"
        "with httpx.Client() as client:\n"
        "    for number in range(5):\n"
        "        body = {'model': 'gpt-5', 'messages': [{'role': 'user', 'content': f'question {number}'}]}\n"
        "        answer = client.post(sys.argv[1] + '/chat/completions', json=body).json()\n"
        "        print(answer['choices'][0]['message']['content'], flush=True)\n"
        "os._exit(3)\n"
    )
    command = [sys.executable, "-m", "playhead"]
    with ScriptedProvider([Text(f"answer {number}") for number in range(5)]) as provider:
        made = subprocess.run(
            [*command, "record", "--", sys.executable, str(program), provider.base_url],
            capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PLAYHEAD_GIT": "0"}, timeout=120,
        )  # fmt: skip
    assert made.returncode == 3, made.stderr
    again = subprocess.run(
        [*command, "replay", "@last", "--mode", "exact"], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert "faithful over the recorded surface" in again.stdout + again.stderr, again.stdout + again.stderr
