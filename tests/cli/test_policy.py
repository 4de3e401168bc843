from __future__ import annotations

from pathlib import Path

import playhead
from playhead.policy.rules import FILE


@playhead.tool
def deploy(where: str) -> None:
    Path(where).write_text("x")


def recorded(store: Path) -> str:
    with playhead.record("r", store=store) as run:
        deploy("prod")
        playhead.check("shop.order", "apple")
        with playhead.model_call(provider="openai", model="gpt-5"):
            pass
    return run.id


def test_a_policy_is_checked(ask, store):
    assert ask("policy", "check").code == 1
    Path(FILE).write_text('[capabilities."tool.call"]\nallow = ["read_*"]\n')
    said = ask("policy", "check")
    assert said.code == 0
    assert "allow read_*" in said.out
    assert "denied, since it is not named: fs.write" in said.out
    Path("bad.toml").write_text("mode = 1")
    found = ask("policy", "check", "bad.toml", "--json")
    assert (found.code, found.json["valid"], found.json["error"]["code"]) == (1, False, "config")


def test_a_decision_is_explained(ask, store):
    Path(FILE).write_text('[capabilities."fs.write"]\nallow = ["src/**"]\n')
    assert ask("policy", "explain", "fs.write", "src/a").code == 0
    said = ask("policy", "explain", "fs.write", "src/../a", "--json")
    assert (said.code, said.json["decision"], said.json["rule"]) == (1, "deny", "fs.write default")


def test_a_policy_is_tested_against_what_was_recorded(ask, store):
    run = recorded(store)
    Path("strict.toml").write_text(
        '[capabilities."model.use"]\nallow = ["gpt-5"]\n[capabilities."fs.write"]\nallow = ["**"]\n'
    )
    found = ask("policy", "test", run, "--policy", "strict.toml", "--json")
    assert found.code == 0
    assert [(one["capability"], one["resource"]) for one in found.json["runs"][0]["denied"]] == [
        ("tool.call", "deploy"),
        ("shop.order", "apple"),
    ]
    assert all(isinstance(one["seq"], int) for one in found.json["runs"][0]["denied"])
    said = ask("policy", "test", "--since", "1h", "--policy", "strict.toml", "--exit-code")
    assert said.code == 1
    assert said.out.startswith("2 of 4 would have been denied in 1 run")
    assert ask("policy", "test", run, "--since", "1h", "--policy", "strict.toml").code == 2
    assert ask("policy", "test", "--policy", "nothing.toml").code == 2
