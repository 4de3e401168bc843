from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from playhead import _limits
from playhead.errors import ConfigError
from playhead.policy.rules import FILE, Rules, Spent, decide, find, load, of_snapshot, parse


def policy(text: str, root: Path) -> Rules:
    return parse(text.encode(), "p.toml", str(root))


def rules(root: Path, capability: str, **given: Any) -> Rules:
    return Rules(
        mode="enforce", capabilities={capability: {how: tuple(rule) for how, rule in given.items()}}, root=str(root)
    )


def test_deny_wins_over_ask_and_ask_over_allow(tmp_path: Path) -> None:
    found = rules(tmp_path, "shop.order", allow=["*"], ask=["b*"], deny=["ba*"])
    assert [decide(found, "shop.order", name).decision for name in ("apple", "bread", "banana")] == [
        "allow",
        "ask",
        "deny",
    ]
    assert decide(found, "shop.order", "banana").rule == "shop.order deny ba*"


def test_what_is_not_named_is_denied(tmp_path: Path) -> None:
    found = rules(tmp_path, "fs.write", allow=["src/**"])
    assert decide(found, "fs.delete", "src/a")[:2] == ("deny", "default")
    assert decide(found, "my.own", "x").decision == "deny"
    assert decide(found, "fs.write", "other")[:2] == ("deny", "fs.write default")
    assert decide(Rules(), "fs.write", "a").decision == "deny"


def test_tricks_with_paths_do_not_slip_through(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "src" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / ".env").write_text("x")
    os.link(tmp_path / ".env", tmp_path / "src" / "innocent")
    found = rules(tmp_path, "fs.write", allow=["src/**"], deny=["**/.env"])
    for path in (
        "src/../secret/a",
        "src/link/a",
        "SRC/a",
        "src/.ENV",
        "src/x/../../a",
        "secret/../.env",
        "src/innocent",
        str(tmp_path / "src" / ".." / "a"),
    ):
        assert decide(found, "fs.write", path).decision == "deny", path
    for path in ("src/a", "./src/b/../a", str(tmp_path / "src" / "a")):
        assert decide(found, "fs.write", path).decision == "allow", path
    everything = rules(tmp_path, "fs.write", allow=["**"])
    assert decide(everything, "fs.write", "src/innocent").decision == "allow"


def test_a_link_is_deleted_itself(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "link").symlink_to(tmp_path / "kept")
    found = rules(tmp_path, "fs.delete", allow=["tmp/**"])
    assert decide(found, "fs.delete", "tmp/link").decision == "allow"
    assert decide(found, "fs.delete", "tmp/link/../../kept").decision == "deny"


def test_tricks_with_hosts_do_not_slip_through(tmp_path: Path) -> None:
    found = rules(tmp_path, "net.connect", allow=["api.good.com:443"], deny=["169.254.0.0/16"])
    for url in (
        "https://api.good.com@evil.com/",
        "https://api.good.com.evil.com/",
        "https://evil.com/#@api.good.com",
        "http://2852039166/",
        "http://0xA9FEA9FE/",
        "https://api.good.com:8443/",
        "unix:/var/run/docker.sock",
    ):
        assert decide(found, "net.connect", url).decision == "deny", url
    for url in ("https://api.good.com/", "https://API.GOOD.COM./v1", "https://user:key@api.good.com/"):
        assert decide(found, "net.connect", url).decision == "allow", url


def test_a_star_means_sockets_of_this_machine_too(tmp_path: Path) -> None:
    for socket in ("unix:/run/x", "unix:@x"):
        assert decide(rules(tmp_path, "net.connect", allow=["*"]), "net.connect", socket).decision == "allow"
        denied = rules(tmp_path, "net.connect", allow=["unix:*"], deny=["*"])
        assert decide(denied, "net.connect", socket).rule == "net.connect deny *"


def test_a_command_is_looked_up_before_it_is_decided(tmp_path: Path) -> None:
    found = rules(tmp_path, "process.exec", allow=["echo *"])
    assert [decide(found, "process.exec", command).decision for command in ("echo hi", "ls", "it's", "")] == [
        "allow",
        "deny",
        "deny",
        "deny",
    ]


def test_what_is_no_host_fits_nothing(tmp_path: Path) -> None:
    found = rules(tmp_path, "net.connect", allow=["a.com"])
    for host in ("http://[::1", "-1:80", "", "::::", "http://"):
        assert decide(found, "net.connect", host).decision == "deny"


def test_models_are_named_with_or_without_their_provider(tmp_path: Path) -> None:
    found = rules(tmp_path, "model.use", allow=["gpt-5*", "anthropic/*"])
    assert [
        decide(found, "model.use", name).decision for name in ("openai/gpt-5-mini", "anthropic/claude", "google/gemini")
    ] == ["allow", "allow", "deny"]


def test_a_model_that_is_not_known_may_be_the_one_that_is_forbidden(tmp_path: Path) -> None:
    assert decide(rules(tmp_path, "model.use", allow=["*"]), "model.use", "openai/?").decision == "allow"
    assert (
        decide(rules(tmp_path, "model.use", allow=["*"], deny=["gpt-5*"]), "model.use", "openai/?").decision == "deny"
    )


def test_a_limit_that_is_reached_denies_what_it_is_about(tmp_path: Path) -> None:
    found = policy(
        '[capabilities]\n"tool.call" = {allow = "*"}\n"model.use" = {allow = "*"}\n'
        "[limits]\ntokens = 100\ntool_calls = 2\nseconds = 60\n",
        tmp_path,
    )

    def asked(capability: str, spent: Spent) -> tuple[str, str]:
        decision = decide(found, capability, "x", spent=spent)
        return decision.decision, decision.rule

    assert asked("model.use", Spent(tokens=99)) == ("allow", "model.use allow *")
    assert asked("model.use", Spent(tokens=100)) == ("deny", "limits.tokens")
    assert asked("tool.call", Spent(tokens=100)) == ("allow", "tool.call allow *")
    assert asked("tool.call", Spent(tool_calls=2)) == ("deny", "limits.tool_calls")
    assert asked("model.use", Spent(tool_calls=2)) == ("allow", "model.use allow *")
    assert asked("tool.call", Spent(seconds=60)) == asked("model.use", Spent(seconds=60)) == ("deny", "limits.seconds")
    assert decide(found, "model.use", "x", spent=Spent(tokens=101)).reason == (
        "101 of 100 tokens are used: no more model.use is allowed in this run"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mode = 'strict'", "neither 'observe' nor 'enforce'"),
        ("modus = 1", "there is no 'modus'"),
        ("version = 2", "version 2 is not known"),
        ("[capabilities.fs.write]\nallow = ['a']", "needs quotes"),
        ("[capabilities.'fs.write']\nallow = 1", "must be a list of texts"),
        ("[capabilities.'fs.write']\npermit = ['a']", "there is no 'permit'"),
        ("[capabilities.'Nonsense!']\nallow = ['a']", "two words or more"),
        ("[limits]\ntoken = 1", "there is no limit 'token'"),
        ("[limits]\ntokens = 'many'", "must be a number"),
        ("[limits]\ntokens = nan", "must be a number"),
        (f"[limits]\ntokens = 1{'0' * 400}", "must be a number"),
        (f"[limits]\ntokens = 1{'0' * 5000}", "cannot be read: .*digits"),
        ("this is no toml", "cannot be read"),
    ],
)
def test_a_policy_that_is_none_says_where(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        policy(text, tmp_path)


def test_a_policy_that_cannot_be_read_says_why_and_where_to_look(tmp_path: Path) -> None:
    large, deep, folder = tmp_path / "large", tmp_path / "deep", tmp_path / "folder"
    large.write_bytes(b"#" * (_limits.POLICY_BYTES_MAX + 1))
    deep.write_text("a = " + "[" * 100_000)
    folder.mkdir()
    for path, said in ((large, "1,048,576 bytes"), (deep, "recursion"), (folder, "directory"), ("/dev/zero", "bytes")):
        with pytest.raises(ConfigError, match=said) as problem:
            load(path)
        assert "guides/policy.md" in problem.value.hint


def test_a_snapshot_rules_as_the_file_did(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(
        'mode = "enforce"\n[capabilities."fs.write"]\nallow = "src/**"\n[limits]\nseconds = 5\n'
    )
    found = find(tmp_path)
    assert found is not None
    assert found == load(tmp_path / FILE)
    assert of_snapshot(found.as_snapshot()) == found
    assert find(tmp_path / "elsewhere") is None
    assert of_snapshot({"mode": "observe", "policy": None}) is None


def test_a_snapshot_that_was_altered_allows_nothing() -> None:
    found = of_snapshot({"mode": "enforce", "policy": {"capabilities": {"fs.write": 7}}})
    assert found is not None
    assert decide(found, "fs.write", "a").decision == "deny"
