"""Options of `playhead replay` that would be ignored are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.cli.conftest import Answer


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--speed", "-1", "--mode", "exact"], "'-1' is no speed"),
        (["--speed", "nan", "--mode", "exact"], "'nan' is no speed"),
        (["--speed", "fast", "--mode", "exact"], "'fast' is no speed"),
        (["--speed", "1"], "--speed is for `--mode exact`"),
        (["--waive", "not_captured"], "--waive is for `--mode exact`"),
        (["--on-deviation", "nearest"], "--on-deviation is for `--mode exact`"),
        (["--", "python", "agent.py"], "-- PROGRAM is for `--mode exact`"),
        (["--mode", "exact", "--force"], "--force is for `--mode playback`"),
        (["--mode", "exact", "--verify-envelope", "x"], "--verify-envelope is for `--mode playback`"),
    ],
)
def test_what_would_be_ignored_is_refused(given: list[str], words: str, ask: Callable[..., Answer]) -> None:
    done = ask("replay", "@last", *given)
    assert done.code == 2
    assert words in done.err
