"""One gate for every byte: names, odd texts, odd keys, variables that come later, requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import playhead

KEY = "sk-ant-api03-Ab3dEfGh1jKlMn0pQrStUvWxYz123456"


class Text(str):
    """A subclass of str, which is recorded with a mark."""


def nowhere(secret: str, root: Path) -> None:
    for path in root.rglob("*"):
        assert secret not in path.name
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_a_secret_in_the_name_of_an_artifact_is_redacted_and_the_run_verifies(tmp_path: Path) -> None:
    with playhead.record("names"):
        name = playhead.artifact(f"{KEY}.txt", "x")
    assert name == "redacted-anthropic-key.txt"
    nowhere(KEY, tmp_path / ".playhead")
    run = playhead.load("@last")
    assert run.artifact(name) == b"x"
    assert run.verify().completeness.verdict == "complete"


@pytest.mark.parametrize(
    "value",
    [
        {"password": "hunter-2-secret", 1: 2},
        {"password": Text("hunter-2-secret")},
        {"password": b"hunter-2-secret"},
        {"password": "hunter-2-secret\ud800"},
        {1: "x", "password": "hunter-2-secret"},
        {"$x": 1, "db-password": "hunter-2-secret"},
        {"a": {(1, 2): "k", "api_key": "hunter-2-secret"}},
        {"password": b"hunter-2-secret" * 40},
        {"mein_Schl\u00fcssel_password": "hunter-2-secret"},
        {"db_password": "hunter-2-secret"},
        {"nested": [{"X-Api-Key": "hunter-2-secret"}]},
    ],
)
def test_the_value_of_a_secret_field_is_redacted_whatever_it_is_written_as(value: Any, tmp_path: Path) -> None:
    import base64

    with playhead.record("fields"):
        playhead.note("x", value)
    nowhere("hunter-2-secret", tmp_path / ".playhead")
    nowhere(base64.b64encode(b"hunter-2-secret").decode().rstrip("=")[:18], tmp_path / ".playhead")
    assert list(playhead.load("@last").events())[-1].data["redacted"]["field"] == 1


def test_a_secret_in_text_that_is_not_unicode_is_redacted(tmp_path: Path) -> None:
    import base64

    with playhead.record("odd"):
        playhead.note("x", {"text": f"{KEY} \ud800"})
    data = next(event for event in playhead.load("@last").events() if event.kind == "note.added").data["data"]
    assert KEY.encode() not in base64.b64decode(data["text"]["$str"])
    nowhere(KEY, tmp_path / ".playhead")


def test_a_variable_that_is_set_while_the_run_is_open_is_known_from_then_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with playhead.record("late"):
        monkeypatch.setenv("LATE_API_KEY", "Zq8vR2mN5xW7tY")
        playhead.note("the key is Zq8vR2mN5xW7tY")
    nowhere("Zq8vR2mN5xW7tY", tmp_path / ".playhead")


@pytest.mark.parametrize(
    "payload",
    [
        {"data": b"\x00" * 400 + KEY.encode()},
        {"pair": (1, 2)},
        {"large": b"\x01" * 40_000},
        {"deep": [[[[[[(1,)]]]]]]},
        {"$odd": 1},
    ],
)
def test_a_run_is_found_again_by_its_request_whatever_it_holds(payload: Any) -> None:
    with playhead.record("agent", input=payload) as run:
        run.output = 1
    found = playhead.find(playhead.Envelope("agent", payload), partly=True)  # one of them holds a secret
    assert found is not None
    assert found.id == run.id
    assert found.input is not None
    assert found.playback(envelope=found.input).payload == 1, "and by the request as it was recorded"


@pytest.mark.parametrize("name", ["forgot_password", "reset-password", "has_secret", "max_tokens", "password_hint"])
def test_fields_that_are_only_about_a_secret_are_kept(name: str) -> None:
    with playhead.record("kept"):
        playhead.note("x", {name: "hunter-2-secret"})
    data = next(event for event in playhead.load("@last").events() if event.kind == "note.added").data["data"]
    assert data == {name: "hunter-2-secret"}


def test_artifacts_know_variables_that_came_late_and_names_stay_usable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with playhead.record("late"):
        monkeypatch.setenv("LATE_TOKEN", "late-name-secret-99")
        playhead.artifact("late-name-secret-99.txt", "content late-name-secret-99")
        long = playhead.artifact("n" * 175 + "late-name-secret-99", "y")
    nowhere("late-name-secret-99", tmp_path / ".playhead")
    assert long is not None
    assert playhead.load("@last").artifact(long) == b"y"


@pytest.mark.parametrize("payload", [{1: "a"}, {"$blob": "a"}, {"$same": "0#/x"}, {"$tuple": [1]}])
def test_any_mapping_can_be_asked_for(payload: Any) -> None:
    assert playhead.find(envelope={"intent": "x", "payload": payload}) is None


def test_a_secret_that_is_renewed_during_the_run_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "first-value-of-the-key")
    with playhead.record("agent") as run:
        monkeypatch.setenv("SERVICE_API_KEY", "second-value-of-the-key")
        playhead.note("it is second-value-of-the-key, and was first-value-of-the-key")
    text = b"".join(playhead.load(run.id or "").lines()).decode()
    assert "-value-of-the-key" not in text
