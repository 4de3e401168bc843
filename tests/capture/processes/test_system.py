"""A command that is run with `os.system` is a call in the timeline."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.capture.processes.seen import only, processes

import playhead


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", -9)])
def test_a_command_is_asked_and_answered(command: str, code: int) -> None:
    bare = os.system(command)
    with playhead.record("x"):
        assert os.system(command) == bare
    asked, came = only()
    assert (asked["argv"], asked["shell"], asked["cwd"]) == ([command], True, os.getcwd())
    assert (came["exit_code"], came["wait_status"]) == (code, bare)
    assert came["status"] == ("ok" if code == 0 else "error")


@pytest.mark.parametrize("command", [None, "a\0b", 5])
def test_what_is_no_command_raises_as_ever(command: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as bare:
        os.system(command)
    with playhead.record("x"), pytest.raises(type(bare.value)) as recorded:
        os.system(command)
    assert str(recorded.value) == str(bare.value)
    assert only()[1]["error"]["type"] == type(bare.value).__name__


def test_it_is_put_back_and_bytes_and_names_are_taken() -> None:
    before = os.system
    with playhead.record("x"):
        assert os.system is not before
        assert (os.system(b"true"), os.system(command="true")) == (0, 0)
    assert os.system is before
    assert [asked["argv"] for asked, _ in processes()] == [["true"], ["true"]]
