from __future__ import annotations

from pathlib import Path

import pytest

from playhead import _limits
from playhead.policy.commands import command_of, fits_command, inside, unheld


def test_a_command_is_that_of_the_search_path_and_not_of_its_name(tmp_path: Path) -> None:
    fake = tmp_path / "ls"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert fits_command("ls *", command_of(["ls", "-l"]))
    assert fits_command("ls", command_of(["ls"]))
    assert fits_command("ls", command_of(["ls", "-l"]))
    assert not fits_command("ls -a", command_of(["ls", "-l"]))
    assert not fits_command("ls *", command_of(["./ls", "-l"], str(tmp_path)))
    assert fits_command(f"{tmp_path}/* *", command_of(["./ls", "-l"], str(tmp_path)))
    assert not fits_command("ls *", command_of(["sh", "-c", "ls -l"]))
    assert fits_command("*", command_of(["anything", "at all"]))
    assert fits_command("ls -l *", command_of(["ls", "-l", "a b"]))


@pytest.mark.parametrize(
    "argv",
    [
        ["rm"],
        ["rm", "-rf", "x"],
        ["/bin/rm", "x"],
        ["/somewhere/else/rm", "x"],
        ["env", "-u", "A", "B=c", "rm", "x"],
        ["env", "-S", "rm x"],
        ["sh", "-c", "cd x && rm y"],
        ["bash", "-o", "pipefail", "-ec", "A=b rm y | cat"],
        ["sh", "-c", 'echo "$(rm y)"'],
        ["sh", "-c", "if true; then rm y; fi"],
        ["sh", "-c", "eval 'rm y'"],
        ["sh", "-c", "rm 'y"],
        ["nice", "-n", "5", "rm", "x"],
        ["timeout", "-s", "KILL", "5", "rm", "x"],
        ["xargs", "-n", "1", "rm"],
        ["find", ".", "-exec", "rm", "{}", ";"],
        ["env", "nohup", "sh", "-c", "sh -c 'rm x'"],
        ["sh", "-c", ">out rm x"],
        ["sh", "-c", "2>&1 rm x"],
        ["sh", "-c", "cat <(rm x)"],
        ["sh", "-c", "function f { rm x; }; f"],
        ["sh", "-c", "trap 'rm x' EXIT"],
        ["sh", "-c", "coproc rm x"],
        ["sh", "-c", "true ; \\\n rm x"],
        ["su", "-c", "rm x"],
        ["flock", "lock", "-c", "rm x"],
        ["flock", "lock", "rm", "x"],
        ["watch", "-n", "1", "rm", "x"],
        ["uv", "run", "--with", "x", "rm", "x"],
        ["playhead", "record", "--name", "ls", "--", "rm", "x"],
        ["python", "-m", "playhead", "record", "rm", "x"],
    ],
)
def test_what_is_forbidden_by_one_word_is_so_with_any_arguments_and_inside_others(argv: list[str]) -> None:
    assert fits_command("rm", command_of(argv), forbids=True)
    assert not fits_command("mv", command_of(argv), forbids=True)


def test_what_only_names_a_program_does_not_start_it() -> None:
    for argv in (
        ["echo", "rm"],
        ["sh", "-c", "echo rm"],
        ["sh", "script", "-c", "rm"][:2],
        ["timeout", "5", "echo", "rm"],
        ["sh", "-c", "echo x > rm"],
        ["sh", "-c", "echo x 2>&1 >rm | cat <rm"],
        ["uv", "add", "rm"],
    ):
        assert not fits_command("rm", command_of(argv), forbids=True)


def test_a_program_is_that_of_the_search_path_of_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "ls"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not fits_command("ls", command_of(["ls"]), search="/usr/bin:/bin")
    assert not fits_command("l*", command_of(["ls"]), search="/usr/bin:/bin")
    assert fits_command("l*", command_of(["/usr/bin/ls"]), search="/usr/bin:/bin")


def test_one_file_that_is_many_programs_is_each_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "busybox").write_text("")
    (tmp_path / "busybox").chmod(0o755)
    for name in ("ls", "rm"):
        (tmp_path / name).symlink_to("busybox")
    assert not fits_command("ls", command_of([f"{tmp_path}/rm"]), search=str(tmp_path))
    assert not fits_command("rm", command_of([f"{tmp_path}/ls"]), search=str(tmp_path), forbids=True)


def test_a_path_is_in_the_folder_of_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert fits_command("./tools/*", command_of([f"{tmp_path}/tools/run", "x"]), root=str(tmp_path))
    assert not fits_command("./tools/*", command_of(["tools/run", "x"]), root=str(tmp_path))


@pytest.mark.parametrize(
    ("argv", "by"),
    [
        (["python3", "-I", "x.py"], "-I"),
        (["python3", "-Im", "venv"], "-I"),
        (["python3", "-u", "-W", "error", "-E", "x.py"], "-E"),
        (["sh", "-c", "python3 -S x.py"], "-S"),
        (["env", "-i", "python3", "x.py"], "env"),
        (["env", "PYTHONPATH=x", "python3", "x.py"], "env"),
        (["sh", "-c", "PYTHONPATH= python3 x.py"], "env"),
        (["sh", "-c", "export PYTHONPATH=src && python3 x.py"], "env"),
        (["sh", "-c", "PYTHONPATH=src; python3 x.py"], "env"),
        (["sh", "-c", "export PYTHONPATH=src:$PYTHONPATH A=b; python3 x.py"], None),
        (["sh", "-c", "PYTHONPATH=src:${PYTHONPATH} python3 x.py"], None),
        (["sh", "-c", "PYTHONPATH=src ls; python3 x.py"], None),
        (["sudo", "-u", "root", "python3", "x.py"], "sudo"),
        (["su", "-c", "python3 x.py"], "su"),
        (["uv", "run", "python3", "-I", "x.py"], "-I"),
        (["playhead", "record", "--", "python3", "-I", "x.py"], "-I"),
        (["python3", "x.py", "-I"], None),
        (["python3", "-c", "-I"], None),
        (["python3", "-X", "I", "x.py"], None),
        (["python3", "-s", "-P", "x.py"], None),
        (["ls", "-I"], None),
    ],
)
def test_a_python_that_will_not_load_playhead_is_seen(argv: list[str], by: str | None) -> None:
    found = unheld(argv)
    assert (None if found is None else found[1]) == by


def test_a_script_whose_first_line_says_so_is_seen(tmp_path: Path) -> None:
    for line, held in (
        ("#!/usr/bin/python3 -I", False),
        ("#!/usr/bin/env -S python3 -S", False),
        ("#!/usr/bin/env python3", True),
    ):
        (tmp_path / "tool").write_text(f"{line}\n")
        assert (unheld([str(tmp_path / "tool"), "-I"]) is None) is held


def test_what_is_forbidden_with_any_arguments_is_so_with_none() -> None:
    assert fits_command("git push *", command_of(["git", "push"]), forbids=True)
    assert not fits_command("git push *", command_of(["git", "pushed"]), forbids=True)
    assert not fits_command("git push *", command_of(["git", "push"]))


def test_only_so_many_commands_are_looked_for() -> None:
    assert len(inside(["sh", "-c", ";".join(["ls"] * 10_000)])) == _limits.POLICY_COMMANDS_MAX
    at_the_end = ["sh", "-c", "ls;" * _limits.POLICY_COMMANDS_MAX + "rm x"]
    assert fits_command("rm", command_of(at_the_end), forbids=True)
