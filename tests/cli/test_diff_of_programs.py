"""An agent that was recorded with its whole program, compared with one that was recorded by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import playhead

LAUNCHER = (sys.executable, "-m", "playhead", "record", "--quiet", "--")
IN_A_THREAD = """
import sys
import threading
import playhead

@playhead.tool(effects=["read"])
def price(item): return item

@playhead.agent
def shop(items):
    inner = [threading.Thread(target=price, args=(item,)) for item in items]
    for thread in sorted(inner, key=lambda one: inner.index(one) * int(sys.argv[1])):
        thread.start()
        thread.join()

for target, args in ((price, ("outside of the agent",)), (shop, (["apple", "bread", "tea"],))):
    thread = threading.Thread(target=target, args=args)
    thread.start()
    thread.join()
"""


@pytest.fixture
def record(tmp_path: Path, store: Path) -> Callable[..., str]:
    """Record a program and answer with the id of its run."""

    def record(program: str, *arguments: str, by: tuple[str, ...] = ()) -> str:
        (tmp_path / "agent.py").write_text(program)
        environment = {**os.environ, "PLAYHEAD_DIR": str(store)}
        subprocess.run([*by, sys.executable, "agent.py", *arguments], cwd=tmp_path, env=environment, check=True)
        return playhead.load("@last").id

    return record


def test_what_an_agent_began_in_another_order_is_seen_where_its_program_ran_it_in_a_thread(ask, record):
    whole, alone = record(IN_A_THREAD, "1", by=LAUNCHER), record(IN_A_THREAD, "1")
    assert ask("diff", whole, alone, "--json").json["identical"] is True
    turned = record(IN_A_THREAD, "-1", by=LAUNCHER)
    for both in ((alone, turned), (turned, alone)):
        found = ask("diff", *both, "--json").json["deviations"]
        assert {(one["type"], one["why"], one["path"]) for one in found} == {("moved", "order", "shop / price")}


STARTS_A_PYTHON = """
import subprocess
import sys
import playhead

@playhead.agent
def shop(): return subprocess.run([sys.executable, "-c", "open('list.txt', 'w').close()"]).returncode

shop()
"""


def test_a_python_that_an_agent_started_is_not_missed_where_the_agent_was_recorded_by_itself(ask, record):
    whole, alone = record(STARTS_A_PYTHON, by=LAUNCHER), record(STARTS_A_PYTHON)
    assert ask("show", whole, "--json").json["children"] != []
    for both in ((whole, alone), (alone, whole)):
        found = ask("diff", *both, "--json").json
        assert (found["identical"], found["children"]) == (True, [])
