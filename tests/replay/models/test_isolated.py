"""Recorded questions are asked again alone: no code of the agent runs, whoever recorded them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.again import ASKING, playhead, record
from tests.replay.going_on import answered, told

from playhead.testing import ReceivedRequest, ScriptedProvider

PROGRAM = ASKING + "open('ran', 'a').write('x')\nfor text in ('a', 'b', 'c'):\n    print(ask(text))\n"


def test_each_question_is_asked_alone_and_the_answers_are_compared(tmp_path: Path) -> None:
    with ScriptedProvider(told) as first:
        run = record(tmp_path, PROGRAM, first.base_url).run
    with ScriptedProvider(lambda request: told(request).replace("re b", "no b")) as second:
        (tmp_path / "key").write_text("Bearer k\n")
        options = ("--base-url", second.base_url, "--model", "other", "--header", "authorization=@key")
        found = answered(tmp_path, "replay", run, "--mode", "model", "--isolated", *options)
        assert len(second.requests) == 3
        assert {request.json()["model"] for request in second.requests} == {"other"}
        assert dict(second.requests[0].headers)["Authorization"] == "Bearer k"
    assert (tmp_path / "ran").read_text() == "x"  # when it was recorded, and never again
    assert (found["same"], found["changed"], found["failed"]) == (2, 1, 0)
    (changed,) = [one for one in found["questions"] if not one["same"]]
    assert (changed["then"], changed["now"]) == ('"re b"', '"no b"')
    assert found["origin"]["isolated"]
    new = answered(tmp_path, "show", found["run"])
    assert new["run"]["model_calls"] == 3
    assert new["run"]["origin"]["run"] == run


def test_questions_without_an_address_are_asked_where_one_is_given(tmp_path: Path) -> None:
    """As those are that came by OTLP, or were recorded by hand."""
    program = """
    import playhead
    with playhead.record("by-hand"):
        for provider, model in (("openai", "gpt-5"), ("anthropic", "claude-haiku-4-5"), ("google", "gemini-2.5-pro")):
            messages = [{"role": "user", "content": "a"}]
            request = {"contents": [{"parts": [{"text": "a"}]}]} if provider == "google" else {"messages": messages}
            with playhead.model_call(provider=provider, model=model, request=request) as call:
                call.respond({"choices": [{"message": {"role": "assistant", "content": "then"}}]})
    """
    run = record(tmp_path, program).run
    refused = playhead(tmp_path, "replay", run, "--mode", "model", "--isolated")
    assert refused.returncode == 2
    assert "does not say where the model was asked" in refused.stderr
    paths = []

    def now(request: ReceivedRequest) -> str:
        paths.append(request.path)
        return "now"

    with ScriptedProvider(now) as provider:
        found = answered(tmp_path, "replay", run, "--mode", "model", "--isolated", "--base-url", provider.root_url)
    assert found["changed"] == 3, found
    assert [one["now"] for one in found["questions"]] == ['"now"'] * 3
    assert {path.partition("?")[0] for path in paths} == {
        "/v1/chat/completions", "/v1/messages", "/v1beta/models/gemini-2.5-pro:generateContent",
    }  # fmt: skip


def test_what_was_not_answered_is_said(tmp_path: Path) -> None:
    with ScriptedProvider(told) as first:
        run = record(tmp_path, PROGRAM, first.base_url).run
    with ScriptedProvider(lambda request: 500 if "b" in told(request) else told(request)) as second:
        done = playhead(tmp_path, "replay", run, "--mode", "model", "--isolated", "--base-url", second.base_url)
    assert done.returncode == 3
    assert "2 the same, 0 changed, 1 failed" in done.stdout
    assert "500" in done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("plain")
    return folder, record(folder, "print(1)").run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--isolated", "--times", "2"), "--times means nothing with `--isolated`"),
        (("--isolated", "--header", "x"), "not a header"),
        (("--isolated", "--header", "x=@nowhere"), "cannot read the header x"),
        (("--header", "a=b"), "--header is for `--isolated`"),
        (("--times", "0"), "--times is a number"),
        (("--param", "x"), "not an assignment"),
        (("--system", "@nowhere"), "cannot read the system prompt"),
        (("--at-once", "0"), "not how many"),
        (("--step", "a"), "--step is for `--mode step`"),
    ],
)
def test_what_cannot_be_asked_is_said(plain: tuple[Path, str], options: tuple[str, ...], said: str) -> None:
    folder, run = plain
    done = playhead(folder, "replay", run, "--mode", "model", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_many_runs_are_asked_again_within_a_budget(tmp_path: Path) -> None:
    with ScriptedProvider(told) as first:
        runs = [record(tmp_path, PROGRAM, first.base_url).run for _ in range(2)]
    with ScriptedProvider(lambda request: told(request).replace("re c", "no c")) as second:
        options = ("--model", "gpt-5", "--base-url", second.base_url)
        found = answered(tmp_path, "rerun", "program", *options, "-j", "2")
        assert {one["run"] for one in found["runs"]} == set(runs)
        assert (found["reran"], found["changed"]) == (2, 2)
        assert all(one["answers_changed"] == 1 and one["answers"] == 3 for one in found["runs"])
        assert found["cost"] > 0
        table = playhead(tmp_path, "rerun", "--name", "program", "--isolated", *options)
        assert table.returncode == 1
        assert "2 runs asked again: 2 changed; cost" in table.stdout
        before = len(second.requests)
        spent = answered(tmp_path, "rerun", *options, "--budget", "0.000001")
        assert len(second.requests) == before + 1
    assert sorted(one["verdict"] for one in spent["runs"]) == ["failed", "left_out"]
    assert playhead(tmp_path, "rerun", "nobody").returncode == 2
