from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhead.policy.resources import (
    command_of,
    fits_command,
    fits_host,
    fits_path,
    has_other_names,
    host_of,
    is_push,
    path_of,
)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src", "src/a/b.py", True),
        ("src/", "src/a", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**", "source/a", False),
        ("**/.env", "a/b/.env", True),
        ("**/.env", ".env", True),
        ("**/.env", "a.env", False),
        ("**/secrets", "a/secrets/key", True),
        ("conf*/prod", "conf.d/prod/x", True),
        ("src/*.py", "src/a.py/b", True),
        ("**", "anything/at/all", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("/etc/**", "/etc/passwd", True),
        ("a[1].txt", "a[1].txt", True),
    ],
)
def test_patterns_of_paths(tmp_path: Path, pattern: str, path: str, fits: bool) -> None:
    root = str(tmp_path)
    assert fits_path(pattern, path_of(path, root), root, any_case=False) is fits


def test_a_path_has_one_name_whatever_it_is_called(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    wanted = os.path.join(os.path.realpath(root), "real", "a")
    for name in ("real/a", "./real/a", "x/../real/a", "link/a", "link/../link/./a", str(tmp_path / "link" / "a")):
        assert path_of(name, root) == wanted
    assert path_of("link", root, itself=True) == os.path.join(os.path.realpath(root), "link")
    path_of("loop/a", root)


def test_what_is_forbidden_is_so_in_any_case_and_what_is_allowed_is_not(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert fits_path("**/.env", path_of(".ENV", root), root, any_case=True)
    assert not fits_path("src/**", path_of("SRC/a", root), root, any_case=False)


def test_hard_links_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert not has_other_names(str(tmp_path / "a"))
    os.link(tmp_path / "a", tmp_path / "b")
    assert has_other_names(str(tmp_path / "a"))
    assert not has_other_names(str(tmp_path))


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
