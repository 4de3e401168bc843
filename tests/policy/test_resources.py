from __future__ import annotations

from pathlib import Path

import pytest

from playhead.policy.resources import command_of, fits_command, fits_host, host_of, is_push


@pytest.mark.parametrize(
    "name",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]:80", "http://user:pass@127.0.0.1/", "http://x@2130706433:80/y", "127.0.0.1."],
)  # fmt: skip
def test_an_address_is_known_in_every_form(name: str) -> None:
    assert host_of(name).name == "127.0.0.1"


def test_hosts_have_one_name() -> None:
    for name in (
        "API.Example.com",
        "api.example.com.",
        "https://good.com@api.example.com/",
        "//x@api.example.com".removeprefix("//"),
    ):
        assert host_of(name).name == "api.example.com"
    assert host_of("https://bücher.example/").name == "xn--bcher-kva.example"
    assert host_of("https://api.example.com/").port == 443
    assert host_of("http://api.example.com:8080/").port == 8080
    assert host_of("[::1]:80") == ("::1", 80)
    assert str(host_of("[::1]:80")) == "[::1]:80"


@pytest.mark.parametrize(
    ("pattern", "host", "fits"),
    [
        ("api.example.com", "https://api.example.com/v1", True),
        ("api.example.com:443", "https://api.example.com/v1", True),
        ("api.example.com:443", "http://api.example.com/v1", False),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "evilexample.com", False),
        ("api.example.com", "api.example.com.evil.org", False),
        ("api.example.com", "https://api.example.com@evil.org/", False),
        ("api.example.com", "https://evil.org/api.example.com", False),
        ("10.0.0.0/8", "10.1.2.3:80", True),
        ("10.0.0.0/8", "167838211", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("::1", "[::1]:80", True),
        ("*:443", "example.com:443", True),
        ("*:443", "example.com:80", False),
        ("*", "example.com:80", True),
        ("bücher.example", "xn--bcher-kva.example", True),
        ("exаmple.com", "example.com", False),  # with a Cyrillic letter
    ],
)
def test_patterns_of_hosts(pattern: str, host: str, fits: bool) -> None:
    assert fits_host(pattern, host_of(host)) is fits


def test_a_command_is_that_of_the_search_path_and_not_of_its_name(tmp_path: Path) -> None:
    fake = tmp_path / "ls"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert fits_command("ls *", command_of(["ls", "-l"]))
    assert fits_command("ls", command_of(["ls"]))
    assert not fits_command("ls", command_of(["ls", "-l"]))
    assert not fits_command("ls *", command_of(["./ls", "-l"], str(tmp_path)))
    assert fits_command(f"{tmp_path}/* *", command_of(["./ls", "-l"], str(tmp_path)))
    assert not fits_command("ls *", command_of(["sh", "-c", "ls -l"]))
    assert fits_command("*", command_of(["anything", "at all"]))
    assert fits_command("ls -l *", command_of(["ls", "-l", "a b"]))


@pytest.mark.parametrize(
    ("argv", "to"),
    [
        (["git", "push"], "?"),
        (["git", "push", "--force", "origin", "main"], "origin"),
        (["/usr/bin/git", "-C", "x", "-c", "a=b", "push", "origin"], "origin"),
        (["git", "pull"], None),
        (["git", "stash", "push"], None),
        (["sh", "-c", "cd x && git push origin"], "?"),
        (["git -c a=b push"], "?"),
        (["echo", "git push"], None),
    ],
)
def test_a_push_is_recognised(argv: list[str], to: str | None) -> None:
    assert is_push(argv) == to
