"""What ends while the collector works is recorded later, and neither crashes nor blocks the agent."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import playhead
from playhead.capture import abandoned
from playhead.event import envelope
from playhead.testing import ScriptedProvider, Text

QUESTION = {"model": "gpt-5", "stream": True, "messages": [{"role": "user", "content": "?"}]}


def begun_and_dropped(client: httpx2.Client, url: str) -> None:
    """Read one chunk of a stream and drop it in a cycle, which only the collector can find."""
    response = client.send(client.build_request("POST", f"{url}/chat/completions", json=QUESTION), stream=True)
    chunks = response.iter_raw()
    next(chunks)
    cycle: list[Any] = [response, chunks]
    cycle.append(cycle)


def outcomes() -> list[tuple[str, str | None]]:
    events = [event.data for event in playhead.load("@last").events() if event.kind == "model.responded"]
    return [(data["status"], data.get("error", {}).get("type")) for data in events]


def test_a_stream_that_the_collector_ends_is_recorded_by_whoever_records_next() -> None:
    gc.disable()
    try:
        with (
            ScriptedProvider(lambda _: Text("hello " * 40)) as provider,
            httpx2.Client() as client,
            playhead.record("dropped"),
        ):
            for _ in range(2):
                begun_and_dropped(client, provider.base_url)
                gc.collect()
    finally:
        gc.enable()
    assert len(outcomes()) == 2
    assert playhead.verify("@last").completeness.verdict == "complete"
    assert abandoned.noticed not in gc.callbacks


@pytest.fixture
def nothing_else_to_collect() -> Iterator[None]:
    """Leave out what other tests left: to look through all of that each time takes half a minute."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_else_to_collect")
def test_the_collector_may_come_in_the_middle_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    original = envelope.seal

    def seal(*args: Any) -> Any:
        gc.collect()
        return original(*args)

    with (
        ScriptedProvider(lambda _: Text("hello " * 40)) as provider,
        playhead.record("threads"),
        monkeypatch.context() as collected,
    ):
        collected.setattr(envelope, "seal", seal)

        def work() -> None:
            with httpx2.Client() as client:
                for _ in range(5):
                    begun_and_dropped(client, provider.base_url)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
    assert len(outcomes()) == 20
    assert playhead.verify("@last").completeness.verdict == "complete"


def test_many_dropped_streams_do_not_crash_the_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import gc, httpx2, playhead\n"
        "from playhead.testing import ScriptedProvider, Text\n"
        "gc.set_threshold(50, 2, 2)\n"
        f"QUESTION = {QUESTION!r}\n"
        "with ScriptedProvider(lambda _: Text('hello ' * 40)) as provider, playhead.record('many'):\n"
        "    client = httpx2.Client(limits=httpx2.Limits(max_connections=None))\n"
        "    for _ in range(400):\n"
        "        url = provider.base_url + '/chat/completions'\n"
        "        response = client.send(client.build_request('POST', url, json=QUESTION), stream=True)\n"
        "        chunks = response.iter_raw(); next(chunks)\n"
        "        cycle = [response, chunks]; cycle.append(cycle); del response, chunks, cycle\n"
        "    client.close()\n"
        "print('whole')\n"
    )
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr[-2000:]


@pytest.mark.parametrize("pure", ["0", "1"])
def test_finalisers_may_record_and_set_variables_wherever_the_collector_comes(tmp_path: Path, pure: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import contextvars, gc, itertools, threading, playhead\n"
        "variables = [contextvars.ContextVar(str(number)) for number in range(40)]\n"
        "numbers = itertools.count()\n"
        "@playhead.tool\n"
        "def act(name):\n"
        "    variables[1 + next(numbers) % 39].set([name])\n"
        "def generator():\n"
        "    with playhead.step('step'):\n"
        "        try: yield\n"
        "        finally: act('finally')\n"
        "def work():\n"
        "    for _ in range(500):\n"
        "        cycle = [generator()]; next(cycle[0]); cycle.append(cycle); del cycle\n"
        "        for _ in range(10): variables[0].set([1])\n"
        "        contextvars.copy_context()\n"
        "        for variable in variables[1:]: assert variable.get(['finally'])[0] == 'finally'\n"
        "gc.set_threshold(3, 2, 2)\n"
        "with playhead.record('all'):\n"
        "    threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "    for thread in threads: thread.start()\n"
        "    for thread in threads: thread.join()\n"
        "    gc.collect()\n"
        "print('whole')\n"
    )
    environment = {**os.environ, "PLAYHEAD_PURE": pure}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")


def test_an_end_of_recording_while_the_collector_works_elsewhere_leaves_nothing_behind() -> None:
    class Finalised:
        def __del__(self) -> None:
            inside.set()
            outside.wait(10)

    inside, outside = threading.Event(), threading.Event()

    def collect() -> None:
        cycle: list[Any] = [Finalised()]
        cycle.append(cycle)
        del cycle
        gc.collect()
        here.append(abandoned.collecting())

    here: list[bool] = []
    with playhead.record("one"):
        thread = threading.Thread(target=collect)
        thread.start()
        assert inside.wait(10)
    outside.set()
    thread.join()
    assert (here, abandoned.noticed in gc.callbacks) == ([False], False)


def test_a_warning_of_ours_is_no_error_of_the_agents(capsys: pytest.CaptureFixture[str]) -> None:
    with playhead.record("short") as run:
        pass
    assert run.recording is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.recording.emit_fields("note.added", {"text": "late"})
    assert "has ended" in capsys.readouterr().err
