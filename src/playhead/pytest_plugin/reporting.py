"""Tell pytest of deviations and of answers that nobody asked for, in few words."""

from __future__ import annotations

import linecache
import os
import re
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from playhead.errors import DeviationError
from playhead.replay.raised import unwrapped

if TYPE_CHECKING:
    from playhead.pytest_plugin.cassette import Cassette

_DEFINES = re.compile(r"\s*(?:async\s+)?def\s")
_ADVICE = "To record it anew: pytest --playhead=all {test}"
# What the cause of a deviation begins with, where it differs from run to run, and can be replayed.
_REPLAYABLE = ("a UUID", "a timestamp", "a date", "a time of day", "a duration", "a random id")
_AMBIENT = "Or have clocks, random numbers and ids replayed, too: @pytest.mark.cassette(ambient=True), recorded anew."


def tell_deviation(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, found: Cassette) -> None:
    """Make a deviation the failure of a test: one that it raised, or one that somebody caught."""
    raised = None if call.excinfo is None else unwrapped(call.excinfo.value)
    is_over = call.when != "setup" or not report.passed  # else the call is to fail, which comes next
    if found.missing:
        _tell_missing(item, call, report, found)
    elif report.failed and isinstance(raised, DeviationError):
        found.tells_deviation = False
        says_what_to_do = raised.deviation.get("type") == "fixture"
        text = str(raised)
        advised = text if says_what_to_do else _with_advice(raised.deviation, text, item, found)
        fail(report, advised, _place(item, raised))
    elif found.deviations and found.tells_deviation and is_over:
        found.tells_deviation = False
        text = str(found.deviations[0].get("text", ""))
        passed = report.passed and (call.when == "call" or found.passed)
        if passed and found.on_deviation == "raise":
            found.passed = False
            fail(report, _with_advice(found.deviations[0], text, item, found), test_place(item))
        else:
            report.sections.append(("playhead: a deviation", text))


def _tell_missing(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, found: Cassette) -> None:
    """Let a test fail that has no cassette, whatever it says itself of what it could not ask; unless it is skipped."""
    passed = report.passed and call.when == "call" and not hasattr(report, "wasxfail")
    if report.failed or passed:
        place = test_place(item) if call.excinfo is None else _place(item, call.excinfo.value)
        fail(report, found.missing, place)


def _with_advice(deviation: Mapping[str, Any], text: str, item: pytest.Item, found: Cassette) -> str:
    what = str(deviation.get("cause", "")).partition(" in ")[0]
    ambient = f"{_AMBIENT}\n" if not found.ambient and any(one in what for one in _REPLAYABLE) else ""
    return f"{text}\n\n{ambient}{_ADVICE.format(test=item.nodeid)}"


def fail(report: pytest.TestReport, text: str, place: tuple[str, int]) -> None:
    """Let a test fail with a text, and no more of a traceback than the line of the test."""
    path, line = place
    source = linecache.getline(path, line).rstrip()
    shown = [f">   {source.strip()}\n" if source.strip() else "", f"{_short(path)}:{line}\n\n"]
    lines = [*filter(None, shown), *(f"E   {one}\n".replace("E   \n", "E\n") for one in text.splitlines())]
    crash = ReprFileLocation(_short(path), line, text.splitlines()[0])
    report.outcome = "failed"
    report.longrepr = ReprExceptionInfo(
        reprtraceback=ReprTraceback([ReprEntryNative(lines)], extraline=None, style="native"), reprcrash=crash
    )


def _place(item: pytest.Item, error: BaseException) -> tuple[str, int]:
    """Return the line of the test's own file that led to an error; else that of the test."""
    own = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == str(item.path)
    ]
    return own[-1] if own else test_place(item)


def test_place(item: pytest.Item) -> tuple[str, int]:
    """Return file and line of a test, below its decorators."""
    path, first = str(item.path), (item.location[1] or 0) + 1
    lines = enumerate(linecache.getlines(path)[first - 1 :], first)
    return path, next((number for number, line in lines if _DEFINES.match(line)), first)


def unused_text(found: Cassette) -> str:
    """Say which answers of a cassette nobody asked for."""
    head = f"{len(found.unused)} of the answers on the cassette were not asked for"
    return "\n".join([head, *(f"  {one}" for one in found.unused)])


def summary(terminal: pytest.TerminalReporter, told: list[dict[str, Any]]) -> None:
    """Write what became of the cassettes; nothing where all were replayed to their ends."""
    news = [one for one in told if one.get("did") in ("recorded", "added to", "not recorded")]
    unused = [one for one in told if one.get("unused")]
    live = [line for one in told for line in one["live"]]
    if not news and not unused and not live:
        return
    terminal.section("playhead")
    for one in news:
        why = f", since {one['why']}" if one["why"] else ""
        terminal.line(f"{one['did']} {one['path']}{why}")
    for line in live:
        terminal.line(f"live, and on no cassette: {line}", yellow=True)
    if live:
        terminal.line(
            "Fixtures that tests share are not recorded, and are refused when those are replayed: give them the"
        )
        terminal.line("scope of a function, or `allow` the host.")
    for one in unused:
        terminal.line(f"unused answers in {one['path']} ({one['test']}):", yellow=True)
        for line in one["unused"]:
            terminal.line(f"  {line}")
    if unused:
        terminal.line("Record those tests anew with --playhead=all, or let it fail: --playhead-strict-unused.")


def _short(path: str) -> str:
    found = os.path.relpath(path)
    return path if found.startswith("..") else found
