"""What a policy would have denied is what it did deny, where it was in force; else it is judged by what is recorded."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead._api import policing
from playhead.policy import rules
from playhead.policy.rules import FILE
from playhead.testing import ScriptedProvider

_MODEL = '[capabilities."model.use"]\nallow = ["*"]\n[capabilities."net.connect"]\nallow = ["*"]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(policy: str, *acts: Callable[[], Any]) -> playhead.Run:
    Path(FILE).write_text(policy)
    with playhead.record("r") as run:
        for act in acts:
            with contextlib.suppress(OSError, playhead.PolicyDenied):
                act()
    Path(FILE).unlink()
    return playhead.load(run.id)


def denied(run: playhead.Run, policy: str) -> list[dict[str, Any]]:
    (found,) = policing.tested(rules.parse(policy.encode(), FILE, os.getcwd()), [run])
    return found.denied


def decided(run: playhead.Run) -> list[int]:
    return [e.seq for e in run.events() if e.kind == "policy.checked" and e.data["decision"] != "allow"]


@pytest.mark.parametrize("limit", ["model_calls = 3", "tokens = 1"])
def test_a_limit_names_the_decisions_that_stopped_the_calls_of_an_sdk(limit: str) -> None:
    import openai

    platform.processor()  # the first call of an SDK asks a program for it, once in a process
    policy = f'mode = "enforce"\n{_MODEL}[limits]\n{limit}\n'
    with ScriptedProvider(["Hi."] * 5) as provider:
        client = openai.OpenAI(base_url=provider.base_url, api_key="k", max_retries=0)
        ask = lambda: client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "x"}])  # noqa: E731
        run = record(policy, *[ask] * 5)
    for mode in ("enforce", "observe"):
        found = denied(run, policy.replace("enforce", mode))
        assert [one["seq"] for one in found] == decided(run), mode
        assert {one["rule"] for one in found} == {f"limits.{limit.split()[0]}"}
    assert len(found) == 5 - len([e for e in run.events() if e.kind == "model.invoked"])


def test_a_host_is_known_by_the_names_that_were_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def knows_a_name_of_ours(host: str, port: int, *_: Any) -> list[Any]:
        sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", knows_a_name_of_ours)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = lambda: socket.create_connection(("api.invalid", port)).close()  # noqa: E731
        run = record('[capabilities."net.connect"]\nallow = ["*"]\n', connect)
    by_name = '[capabilities."net.connect"]\nallow = ["{}"]\ndeny = ["{}"]\n'
    assert denied(run, by_name.format("api.invalid", "other.invalid")) == []
    for forbidden in ("api.invalid", "127.0.0.1"):
        found = denied(run, by_name.format("*", forbidden))
        assert [one["resource"] for one in found][-1:] == [f"api.invalid:{port}"], forbidden


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_to_look_a_host_up_is_asked_about(mode: str) -> None:
    look = lambda: socket.getaddrinfo("evil.invalid", None)  # noqa: E731
    run = record(f'mode = "{mode}"\n[capabilities."net.connect"]\nallow = ["*"]\n', look)
    found = denied(run, '[capabilities."net.connect"]\nallow = ["*"]\ndeny = ["evil.invalid"]\n')
    assert [(one["capability"], one["resource"]) for one in found] == [("net.connect", "evil.invalid")]


def test_what_a_policy_said_of_links_and_folders_that_are_gone_is_said_again(folder: Path) -> None:
    def through_a_link() -> None:
        os.symlink(folder / "secret", "out/link")
        try:
            Path("out/link/x").write_text("x")
        finally:
            os.unlink("out/link")

    for name in ("secret", "out", "src/keep"):
        Path(name).mkdir(parents=True)
    Path("src/keep/f").write_text("x")
    policy = (
        'mode = "observe"\n[capabilities."fs.write"]\nallow = ["**"]\ndeny = ["secret/**"]\n'
        '[capabilities."fs.delete"]\nallow = ["**"]\ndeny = ["src/keep/**"]\n'
    )
    run = record(policy, through_a_link, lambda: os.rename("src", "moved"))
    for mode in ("observe", "enforce"):
        found = denied(run, policy.replace("observe", mode))
        assert [one["rule"] for one in found] == ["fs.write deny secret/**", "fs.delete deny src/keep/**"]


def test_another_policy_is_asked_about_recorded_names_and_not_about_the_files_of_today() -> None:
    Path("out").mkdir()
    run = record('mode = "observe"\n[capabilities."fs.write"]\nallow = ["**"]\n', lambda: Path("out/a").write_text("x"))
    os.link("out/a", "out/b")
    os.rename("out", "elsewhere")
    os.symlink("elsewhere", "out")
    assert denied(run, '[capabilities."fs.write"]\nallow = ["out/*"]\n') == []
    found = denied(run, '[capabilities."fs.write"]\nallow = ["elsewhere/*"]\n')
    assert [one["rule"] for one in found] == ["fs.write default"]


def test_a_name_that_is_not_utf_8_is_a_name() -> None:
    Path("out").mkdir()
    run = record('[capabilities."fs.write"]\nallow = ["**"]\n', lambda: open(b"out/\xe9.txt", "w").close())
    assert denied(run, '[capabilities."fs.write"]\nallow = ["out/**"]\n') == []
    found = denied(run, '[capabilities."fs.write"]\nallow = ["in/**"]\n')
    assert [one["rule"] for one in found] == ["fs.write default"]
