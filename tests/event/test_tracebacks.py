"""What of a text is the way that an error took, and what is said."""

from __future__ import annotations

import traceback

import pytest

from playhead.event.tracebacks import without_frames


def raised(depth: int = 0) -> str:
    try:
        _raise(depth)
    except Exception:
        return traceback.format_exc()
    raise AssertionError


def _raise(depth: int) -> None:
    if depth:
        _raise(depth - 1)
    raise ValueError("bad")


@pytest.mark.parametrize("depth", [0, 1, 20])
def test_of_a_traceback_only_the_error_is_left(depth: int) -> None:
    text = "before\n" + raised(depth) + "after\n"
    assert without_frames(text.encode()) == b"before\nValueError: bad\nafter\n"


def test_of_a_group_the_errors_are_left() -> None:
    try:
        try:
            _raise(3)
        except ValueError as error:
            raise ExceptionGroup("some", [error, ExceptionGroup("inner", [KeyError("k")])]) from None
    except ExceptionGroup:
        text = traceback.format_exc()
    left = without_frames(text.encode()).decode()
    assert "File" not in left
    assert "Traceback" not in left
    assert "_raise" not in left
    assert "| ExceptionGroup: some" in left
    assert "| ValueError: bad" in left
    assert "| KeyError: 'k'" in left


def test_the_lines_of_a_source_of_several_lines_are_left_out() -> None:
    frame = b'  File "a.py", line 1, in f\n    return self._post(\n           ~~~~~~~~~~^\n        "/chat",\n        ^^^^^^^^\n'
    text = (
        _HEADING
        + frame
        + b"    ...<43 lines>...\n        last=1,\n        ^^^^^^\n    )\n    ^\n"
        + b"ValueError: bad\n"
    )
    assert without_frames(text) == b"ValueError: bad\n"


_HEADING = b"Traceback (most recent call last):\n"
_FRAME = b'  File "calc.py", line 7, in divide\n    return a / b\n'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'It said "' + _HEADING[:-1] + b'"\n\n' + _FRAME, id="a heading in the middle of a line"),
        pytest.param(_HEADING + b"\n" + _FRAME, id="frames that do not follow the heading"),
        pytest.param(b"The place:\n" + _FRAME + b"and:\n" + _HEADING, id="frames before it"),
    ],
)
def test_text_about_a_traceback_is_not_left_out(text: bytes) -> None:
    assert without_frames(text) == text


def test_what_is_indented_after_a_traceback_is_not_left_out() -> None:
    plan = b"".join(b"    step %d\n" % number for number in range(20))
    left = without_frames(_HEADING + _FRAME + plan)
    assert b"step 10\n" in left
    assert b"step 19\n" in left
    said = b"ValueError: bad\n" + _FRAME + plan
    assert without_frames(_HEADING + _FRAME + said) == said
