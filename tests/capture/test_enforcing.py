from __future__ import annotations

import errno
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.capture import enforcing
from playhead.capture.guard import RecordingWarning
from playhead.errors import ConfigError, EffectDenied, PolicyDenied
from playhead.policy.hosts import host_of
from playhead.policy.rules import FILE
from playhead.testing import Raw, ScriptedProvider

PYTHON = os.path.realpath(sys.executable)


def rule(text: str, mode: str = "enforce") -> None:
    Path(FILE).write_text(f'mode = "{mode}"\n{text}')


def checks(run: Any) -> list[tuple[str, str, str]]:
    """Return capability, resource and decision of everything that was decided, but for what pytest compiles."""
    found = playhead.load(run.id)
    return [
        (event.data["capability"], event.data["resource"], event.data["decision"])
        for event in found.events()
        if event.kind == "policy.checked" and "-pytest-" not in os.path.basename(event.data["resource"])
    ]


@playhead.tool(effects=["write"])
def save(path: str) -> None:
    Path(path).write_text("x")


def save_plainly(path: str) -> None:
    Path(path).write_text("x")


def test_an_effect_is_stopped_before_it_happens_and_the_decision_is_recorded() -> None:
    rule('[capabilities."fs.write"]\nallow = ["out/**"]\n[capabilities."tool.call"]\nallow = "*"\n')
    os.mkdir("out")
    with playhead.record("r") as run:
        save("out/a")
        with pytest.raises(PermissionError, match="nothing allows fs") as denied:
            save("b")
    assert isinstance(denied.value, EffectDenied)
    assert (denied.value.capability, denied.value.rule, denied.value.errno) == ("fs.write", "fs.write default", 13)
    assert '`allow` of [capabilities."fs.write"]' in denied.value.hint
    assert denied.value.hint.endswith(f"{os.path.abspath(FILE)}.")
    assert not os.path.exists("b")
    assert checks(run) == [
        ("tool.call", "save", "allow"),
        ("fs.write", os.path.abspath("out/a"), "allow"),
        ("tool.call", "save", "allow"),
        ("fs.write", os.path.abspath("b"), "deny"),
    ]


def test_observing_records_what_would_be_denied_and_stops_nothing() -> None:
    rule('[capabilities."tool.call"]\ndeny = "save"\n', mode="observe")
    with playhead.record("r") as run:
        save("b")
    assert os.path.exists("b")
    assert checks(run) == [("tool.call", "save", "deny"), ("fs.write", os.path.abspath("b"), "deny")]
    event = next(event for event in playhead.load(run.id).events() if event.kind == "policy.checked")
    assert (event.data["mode"], event.data["by"], event.data["rule"]) == ("observe", "policy", "tool.call deny save")


def test_without_a_file_nothing_is_decided_but_what_is_checked() -> None:
    with playhead.record("r") as run:
        save("b")
        assert playhead.check("my.own", "x") == "allow"
    assert checks(run) == [("my.own", "x", "allow")]


def test_what_the_agent_itself_checks_is_told_from_what_the_policy_asks_each_time_that_it_does() -> None:
    rule('[capabilities."my.own"]\nallow = "*"\n', mode="observe")
    with playhead.record("r") as run:
        save("b")
        for _ in range(300):
            playhead.check("my.own", "x")
    asked = [event.data.get("asked") for event in playhead.load(run.id).events() if event.kind == "policy.checked"]
    assert asked == [None, None] + ["agent"] * 300


def test_a_thread_is_held_to_the_policy_too() -> None:
    rule("")
    problems: list[BaseException] = []

    def work() -> None:
        for attempt in (
            lambda: Path("a").touch(),
            lambda: os.mkdir("d"),
            lambda: subprocess.run(["true"]),
            lambda: socket.create_connection(("127.0.0.1", 9)),
        ):
            try:
                attempt()
            except EffectDenied as problem:
                problems.append(problem)

    with playhead.record("r"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [getattr(problem, "capability", "") for problem in problems] == [
        "fs.write",
        "fs.write",
        "process.exec",
        "net.connect",
    ]
    assert sorted(os.listdir(".")) == [".playhead", FILE]


def test_what_a_thread_calls_at_its_end_is_held_to_the_policy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: save_plainly("hook"))
    rule('[capabilities."fs.write"]\nallow = ["out/**"]\n')
    with playhead.record("r") as run, ThreadPoolExecutor(1) as pool:
        begins = threading.Event()
        pool.submit(begins.wait).add_done_callback(lambda _: save_plainly("callback"))
        begins.set()
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    assert not os.path.exists("callback")
    assert not os.path.exists("hook")
    denied = {os.path.basename(resource) for _, resource, decision in checks(run) if decision == "deny"}
    assert denied == {"callback", "hook"}


def test_a_denial_passes_between_processes_as_the_error_of_the_system_that_it_is() -> None:
    rule('[capabilities."fs.write"]\nallow = []\n')
    with playhead.record("r"), pytest.raises(EffectDenied) as denied:
        save_plainly("b")
    passed = pickle.loads(pickle.dumps(denied.value))
    assert (passed.errno, passed.filename) == (errno.EACCES, os.path.abspath("b"))
    assert (str(passed), passed.rule) == (str(denied.value), denied.value.rule)


def test_a_name_that_no_file_can_have_is_decided_about() -> None:
    rule('[capabilities."fs.write"]\nallow = ["out/**"]\n')
    with playhead.record("r"), pytest.raises(PolicyDenied):
        playhead.check("fs.write", "../a\0b")


def test_renames_links_and_deletions_are_decided_by_what_they_touch() -> None:
    rule('[capabilities."fs.write"]\nallow = ["out/**"]\n[capabilities."fs.delete"]\nallow = ["out/tmp"]\n')
    os.mkdir("out")
    os.mkdir("empty")
    for name in ("out/tmp", "out/kept", "secret"):
        Path(name).write_text("x")
    with playhead.record("r"):
        os.rename("out/tmp", "out/new")
        for attempt in (
            lambda: os.rename("out/kept", "out/gone"),
            lambda: os.rename("secret", "out/stolen"),
            lambda: os.link("secret", "out/name"),
            lambda: os.remove("out/kept"),
            lambda: os.rmdir("empty"),
        ):
            with pytest.raises(EffectDenied):
                attempt()
    assert sorted(os.listdir("out")) == ["kept", "new"]


def test_a_connection_is_known_by_the_host_that_led_to_it() -> None:
    rule('[capabilities."net.connect"]\nallow = ["localhost:*"]\n')
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with playhead.record("r") as run:
            with pytest.raises(EffectDenied):
                socket.create_connection(("127.0.0.1", port))
            socket.create_connection(("localhost", port)).close()
            with pytest.raises(EffectDenied, match=r"evil\.example:80"):
                socket.getaddrinfo("evil.example", 80)
    assert ("net.connect", f"127.0.0.1:{port}", "deny") in checks(run)
    assert ("net.connect", f"localhost:{port}", "allow") in checks(run)
    assert socket.getaddrinfo.__module__ == "socket"


def test_a_request_and_the_model_in_it_are_decided_before_they_leave() -> None:
    with ScriptedProvider(["hello"], repeat=True) as provider:
        rule(
            f'[capabilities."net.connect"]\nallow = ["{host_of(provider.base_url)}"]\n[capabilities."model.use"]\nallow = ["gpt-4o*"]\n'
        )
        with playhead.record("r") as run:
            answers = []
            for model, path in (("gpt-4o-mini", "completions"), ("gpt-5", "completions"), ("gpt-5", "%63ompletions")):
                body = b'{"model": "%b", "messages": [{"role": "user", "content": "hi"}]}' % model.encode()
                asked = urllib.request.Request(
                    f"{provider.base_url}/chat/{path}", body, {"content-type": "application/json"}
                )
                try:
                    answers.append(urllib.request.urlopen(asked).status)
                except PolicyDenied as denied:
                    answers.append(denied.rule)
        assert answers == [200, "model.use default", "model.use default"]
        assert len(provider.requests) == 1
    assert [one for one in checks(run) if one[0] == "model.use"] == [
        ("model.use", "openai/gpt-4o-mini", "allow"), *[("model.use", "openai/gpt-5", "deny")] * 2,
    ]  # fmt: skip


def test_limits_hold_across_calls() -> None:
    rule('[capabilities."model.use"]\nallow = "*"\n[capabilities."tool.call"]\nallow = "*"\n[limits]\ntokens = 100\n')
    with playhead.record("r"):
        for _ in range(2):
            with playhead.model_call(provider="p", model="m") as call:
                call.respond("x", usage={"input": 60, "output": 10})
        with (
            pytest.raises(PolicyDenied, match="140 of 100 tokens are used"),
            playhead.model_call(provider="p", model="m"),
        ):
            raise AssertionError("not reached")


def test_a_process_that_is_forked_while_another_thread_asks_goes_on() -> None:
    rule('[capabilities."tool.call"]\nallow = "*"\n[capabilities."fs.write"]\nallow = "**"\n')
    with playhead.record("r") as run:
        assert run.recording is not None
        with enforcing._of[run.recording].lock:  # as that thread
            if (child := os.fork()) == 0:
                try:
                    signal.alarm(10)
                    save("forked")
                finally:
                    os._exit(0)
            ended = os.waitpid(child, 0)[1]
    assert (ended, os.path.exists("forked")) == (0, True)


def test_a_limit_of_dollars_knows_what_models_cost_and_writes_nothing_of_the_agents() -> None:
    rule('[capabilities."model.use"]\nallow = "*"\n[limits]\ncost = 10\n')
    with playhead.record("r") as run:
        for _ in range(2):
            with playhead.model_call(provider="openai", model="gpt-5") as call:
                call.respond("x", usage={"input": 5_000_000, "output": 0})
        with pytest.raises(PolicyDenied, match=r"12\.5\d* of 10"), playhead.model_call(model="gpt-5"):
            raise AssertionError("not reached")
    assert {capability for capability, _, _ in checks(run)} == {"model.use"}


def test_under_a_limit_of_dollars_a_model_of_unknown_price_is_denied_and_it_is_said_how_to_go_on() -> None:
    rule('[capabilities."model.use"]\nallow = "*"\ndeny = "secret"\n[limits]\ncost = 10\n')
    with playhead.record("r") as run, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            with (
                pytest.raises(PolicyDenied, match="nobody knows what acme/nobody-knows costs") as denied,
                playhead.model_call(provider="acme", model="nobody-knows"),
            ):
                raise AssertionError("not reached")
        with pytest.raises(PolicyDenied, match="deny secret"), playhead.model_call(provider="acme", model="secret"):
            raise AssertionError("not reached")
    assert denied.value.rule == "limits.cost unpriced"
    assert "say what it costs under [prices] in playhead.toml, or take limits.cost out" in denied.value.hint
    assert [str(one.message) for one in told if "limits.cost" in str(one.message)] == [
        "playhead: model.use on acme/nobody-knows is denied: nobody knows what acme/nobody-knows costs, so limits.cost"
        f" cannot be judged. {denied.value.hint}"
    ]
    assert ("model.use", "acme/nobody-knows", "deny") in checks(run)


def test_an_observed_limit_of_dollars_says_what_it_could_not_judge_and_stops_nothing() -> None:
    rule('[capabilities."model.use"]\nallow = "*"\n[limits]\ncost = 10\n', "observe")
    with (
        playhead.record("r") as run,
        pytest.warns(RecordingWarning, match="acme/nobody-knows would be denied"),
        playhead.model_call(provider="acme", model="nobody-knows") as call,
    ):
        call.respond("x", usage={"input": 1, "output": 0})
    assert ("model.use", "acme/nobody-knows", "deny") in checks(run)


def test_what_answers_under_a_name_without_a_price_counts_under_a_limit_as_what_was_asked() -> None:
    Path("playhead.toml").write_text("[prices]\nmine = { input = 1000000, output = 0 }\n")
    rule('[capabilities]\n"net.connect" = { allow = "*" }\n"model.use" = { allow = "*" }\n[limits]\ncost = 1\n')
    answer = b'{"model": "node-7", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}}'
    with ScriptedProvider([Raw(answer)], repeat=True) as provider, playhead.record("r"):
        body = b'{"model": "mine", "messages": [{"role": "user", "content": "hi"}]}'
        url, kind = f"{provider.base_url}/chat/completions", {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(url, body, kind)).read()
        with pytest.raises(PolicyDenied, match="5 of 1 cost are used"):
            urllib.request.urlopen(urllib.request.Request(url, body, kind))


def test_the_snapshot_rules_even_if_the_file_is_edited_meanwhile() -> None:
    own = f'[capabilities."fs.write"]\nallow = "{FILE}"\n'
    rule(own + '[capabilities."my.own"]\nallow = "a"\n')
    with playhead.record("r") as run:
        rule(own + '[capabilities."my.own"]\nallow = "*"\n')
        assert playhead.check("my.own", "a") == "allow"
        with pytest.raises(PolicyDenied):
            playhead.check("my.own", "b")
    assert run.path is not None
    assert '"a"' in (run.path / "policy_snapshot.json").read_text()
    assert playhead.verify(run.id).integrity.verdict == "intact"
    started = next(playhead.load(run.id).events())
    assert started.data["policy"]["mode"] == "enforce"


def test_a_function_of_the_program_and_the_file_both_have_to_allow() -> None:
    rule('[capabilities."my.own"]\nallow = ["a", "b"]\n')
    with playhead.record("r", policy=lambda capability, resource, context: resource != "b"):
        assert playhead.check("my.own", "a") == "allow"
        for resource in ("b", "c"):
            with pytest.raises(PolicyDenied):
                playhead.check("my.own", resource)


def test_what_is_decided_again_and_again_is_folded_and_counted() -> None:
    rule('[capabilities."fs.write"]\nallow = "**"\n')
    with playhead.record("r") as run:
        for _ in range(250):
            open("a", "a").close()
    times = [event.data.get("times", 1) for event in playhead.load(run.id).events() if event.kind == "policy.checked"]
    assert times == [*range(1, 11), 100]


def test_a_broken_policy_is_an_error_and_leaves_no_run() -> None:
    Path(FILE).write_text("mode = 'strict'")
    with pytest.raises(ConfigError, match="neither 'observe' nor 'enforce'"), playhead.record("r"):
        raise AssertionError("not reached")
    assert playhead.runs() == []


def test_a_run_that_cannot_be_recorded_is_not_let_loose() -> None:
    rule("")
    Path("full").write_text("no folder")
    with pytest.raises(PolicyDenied, match="cannot be recorded"), playhead.record("r", store="full"):
        raise AssertionError("not reached")


def test_a_run_says_that_the_policy_above_its_folder_is_not_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).write_text('mode = "enforce"\n')
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    with pytest.warns(playhead.RecordingWarning, match="no policy is in force: that of"), playhead.record("r"):
        Path("written").write_text("x")
    monkeypatch.setenv("PLAYHEAD_POLICY", str(tmp_path / FILE))
    with playhead.record("r"), pytest.raises(playhead.PolicyDenied):
        Path("other").write_text("x")


def test_the_policy_of_another_place_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "strict.toml").write_text('mode = "enforce"\n')
    monkeypatch.setenv("PLAYHEAD_POLICY", "strict.toml")
    with playhead.record("r"), pytest.raises(PolicyDenied, match="does not name my"):
        playhead.check("my.own", "x")


def test_a_recorded_program_and_its_replay_are_held_to_the_snapshot(tmp_path: Path) -> None:
    rule('[capabilities."fs.write"]\nallow = ["out/**"]\n')
    os.mkdir("out")
    Path("agent.py").write_text(
        "import os\n"
        "for name in ('out/a', 'b'):\n"
        "    try:\n"
        "        open(name, 'w').close()\n"
        "        print(name, 'written')\n"
        "    except PermissionError as problem:\n"
        "        print(name, type(problem).__name__)\n"
    )
    command = [sys.executable, "-m", "playhead"]
    done = subprocess.run(
        [*command, "record", "--quiet", "--", sys.executable, "agent.py"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "out/a written\nb EffectDenied\n"
    assert not os.path.exists("b")
    os.remove(FILE)
    replayed = subprocess.run(
        [*command, "replay", "@last", "--mode", "exact"], capture_output=True, text=True, check=False
    )
    assert (replayed.stdout, replayed.returncode) == (done.stdout, 0), replayed.stderr


def test_what_goes_on_in_the_world_has_the_policy_of_here_wherever_its_file_is(tmp_path: Path) -> None:
    Path("agent.py").write_text(
        "import time\nfor name in 'ab':\n    print(time.time() > 0, flush=True)\n    open(name, 'w').write(name)\n"
    )
    Path("strict.toml").write_text('mode = "enforce"\n[capabilities."fs.write"]\nallow = ["a"]\n')
    command = [sys.executable, "-m", "playhead"]
    subprocess.run([*command, "record", "--quiet", "--", sys.executable, "agent.py"], capture_output=True, check=True)
    for name in "ab":
        os.remove(name)
    done = subprocess.run(
        [*command, "fork", "@last", "--at", "3", "--live", "all"], capture_output=True, text=True, check=False,
        env={**os.environ, "PLAYHEAD_POLICY": "strict.toml"},
    )  # fmt: skip
    assert "EffectDenied" in done.stderr
    assert (os.path.exists("a"), os.path.exists("b")) == (True, False)
