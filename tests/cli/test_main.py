from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import playhead
from playhead import errors
from playhead.cli import main as main_module
from playhead.cli.main import COMMANDS, GROUPS, exit_code, main, parser_of


def test_the_version_is_told_without_a_parser(shell):
    code = "import sys; from playhead.cli.main import main; main(['--version']); print('argparse' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("playhead ")
    assert done.stdout.endswith("False\n")
    assert shell("-V").out.startswith("playhead ")


def test_every_command_stands_in_one_group_and_in_the_overview(ask):
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS)
    said = ask()
    assert said.code == 0
    for name, told in COMMANDS.items():
        assert f"  {name} " in said.out
        assert told in said.out
    assert ask("--help").out == said.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_the_shared_options(name):
    told = parser_of(name).format_help()
    for option in ("--json", "--store", "--no-color", "--help"):
        assert option in told
    module = import_module(f"playhead.cli.commands.{name.replace('-', '_')}")
    assert module.__doc__


def test_only_the_module_of_the_command_is_imported(store):
    code = (
        "import sys; from playhead.cli.main import main; main(['ls']);"
        "print([m for m in ('playhead.cli.commands.show', 'playhead._api.reading', 'rich', 'msgspec', 'argcomplete')"
        " if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_an_unknown_command_is_a_usage_error_that_names_the_nearest(shell):
    said = shell("lss")
    assert said.code == 2
    assert said.out == ""
    assert "playhead ls" in said.err


def test_a_wrong_option_has_the_error_shape_with_json(shell):
    said = shell("ls", "--json", "--no-such-option")
    assert said.code == 2
    assert set(said.json["error"]) == {"code", "message", "hint", "detail"}
    assert said.json["error"]["code"] == "usage"


def test_errors_are_text_on_stderr_without_json_and_json_on_stdout_with_it(shell):
    plain, structured = shell("show", "nothing"), shell("show", "nothing", "--json")
    assert (plain.code, structured.code) == (2, 2)
    assert plain.out == ""
    assert plain.err.startswith("playhead: no run answers to 'nothing'")
    assert structured.err == ""
    assert structured.json["error"]["code"] == "run_not_found"


def test_shared_options_may_stand_before_the_command(ask, sample, store, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_DIR", str(tmp_path / "elsewhere"))
    assert ask("ls", "--json").json == []
    assert [run["id"] for run in ask("--store", str(store), "--json", "ls").json] == [sample]
    assert [run["id"] for run in ask("--json", f"--store={store}", "ls").json] == [sample]


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (errors.UsageError("x"), 2),
        (errors.ConfigError("x"), 2),
        (errors.RunNotFound("x"), 2),
        (errors.AmbiguousRun("x"), 2),
        (errors.NotReplayable("x", reasons=[]), 1),
        (errors.EnvelopeMismatch("x", expected="", actual=""), 1),
        (errors.StoreError("x"), 3),
        (errors.MissingContent("x"), 3),
        (errors.BrokenLine("x"), 3),
    ],
)
def test_the_exit_code_says_no_usage_or_could_not_tell(problem, code):
    assert exit_code(problem) == code


def test_a_reader_that_has_seen_enough_is_not_an_error(sample, record, store):
    for _ in range(3):
        record(store)
    command = [sys.executable, "-m", "playhead", "show", "@last", "--raw"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == main_module.PIPE_CLOSED


def test_an_unexpected_exception_is_called_a_bug_and_its_place_is_shown_on_demand(ask, store, monkeypatch):
    def broken(name: str) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(main_module, "parser_of", broken)
    said = ask("ls")
    assert said.code == 3
    assert "this is a bug in playhead: ZeroDivisionError: by nothing" in said.err
    assert "Traceback" not in said.err
    assert ask("ls", "--json").json["error"]["code"] == "bug"
    monkeypatch.setenv("PLAYHEAD_DEBUG", "1")
    assert "Traceback" in ask("ls").err


def test_a_file_that_may_not_be_read_is_told_in_one_line(ask, sample, store):
    timeline = store / "runs" / sample / "timeline.jsonl"
    timeline.unlink()
    timeline.symlink_to(timeline)  # opening it fails whoever asks, root included
    said = ask("show", str(store / "runs" / sample))
    assert said.code in (2, 3)
    assert "bug" not in said.err
    assert len(said.err.splitlines()) <= 2


def test_an_interrupt_ends_with_130(store, monkeypatch):
    def interrupted(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "_answer", interrupted)
    assert main(["ls"]) == 130


def test_a_terminal_without_unicode_gets_escapes_and_no_failure(shell, sample):
    said = shell("show", "@last", env={"PYTHONIOENCODING": "ascii"})
    assert said.code == 0
    assert "+ fix-login" in said.out


def test_completion_offers_commands_and_runs(sample, store, tmp_path):
    def offered(line: str) -> list[str]:
        target = tmp_path / "offered"
        environment = {
            **os.environ, "_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
            "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(target), "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        }  # fmt: skip
        subprocess.run([sys.executable, "-m", "playhead"], env=environment, check=False, timeout=60)
        return target.read_text().split("\n")

    assert {"show", "schema"} <= set(offered("playhead s"))
    assert sample in offered("playhead show run_")
    assert {"@last", "fix-login"} <= set(offered("playhead show "))


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_prints_code_for_each_shell(ask, shell_name):
    said = ask("completion", shell_name)
    assert said.code == 0
    assert "playhead" in said.out
    assert json.loads(ask("completion", shell_name, "--json").out)["shell"] == shell_name


def test_running_the_package_is_running_the_command(shell):
    assert shell("--help").out == shell().out
    assert Path(main_module.__file__).name == "main.py"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_failure(sample, closed):
    command = f"{sys.executable} -m playhead verify {sample} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["ls", "verify --all", "reindex", "prune --older-than 1d", "query x"])
def test_a_store_that_was_named_and_is_not_there_is_a_usage_error(shell, words, tmp_path):
    said = shell(*words.split(), "--store", str(tmp_path / "nowhere"))
    assert said.code == 2
    assert "there is no store at" in said.err


@pytest.mark.parametrize("words", ["ls", "stats", "log", "query runs"])
def test_a_folder_that_is_no_store_is_a_usage_error_and_left_as_it_is(shell, words, tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agent.py").write_text("")
    (tmp_path / ".playhead" / "runs").mkdir(parents=True)
    said = shell(*words.split(), "--store", str(folder))
    assert (said.code, "is not a store" in said.err) == (2, True)
    assert f"--store {tmp_path / '.playhead'}" in shell(*words.split(), "--store", str(tmp_path)).err
    assert [path.name for path in folder.iterdir()] == ["agent.py"]


def test_asking_leaves_nothing_in_an_empty_folder(shell, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    assert shell("ls", "--store", str(folder)).code == 0
    assert not any(folder.iterdir())


@pytest.mark.parametrize(
    "words",
    [["show", b"\xff"], ["ls", "--name", b"\xff"], ["ls", "--limit", "9" * 20], ["show", "@last~" + "9" * 20], ["ls", "--tag", b"\xff"]],
)  # fmt: skip
def test_what_cannot_be_looked_for_is_a_usage_error(sample, words):
    done = subprocess.run([sys.executable, "-m", "playhead", *words], capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert b"bug" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [["ls"], ["show", "@last", "--json"], ["show", "@last"]])
def test_an_answer_that_cannot_be_written_is_told_in_one_line(sample, words):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "playhead", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert done.stderr.count(b"\n") <= 2
    assert b"No space left" in done.stderr


def test_the_version_is_json_where_that_is_asked_for(ask):
    for arguments in (["--version", "--json"], ["--json", "--version"], ["-V", "--json"]):
        assert ask(*arguments).json == {"version": playhead.__version__}
    assert ask("--version").out == f"playhead {playhead.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["ls", "--stauts", "ok"], "--status"),
        (["show", "@last", "--artefact=x"], "--artifact"),
        (["policy", "explain", "fs.write", "x", "--polcy", "p"], "--policy"),
        (["stats", "--jsn"], "--json"),
    ],
)
def test_an_option_that_was_mistyped_is_guessed(ask, arguments, meant):
    said = ask(*arguments)
    assert said.code == 2
    assert f"  Did you mean {meant}? `playhead {arguments[0]} --help` shows how it is used.\n" in said.err
    assert "Did you mean" not in ask("ls", "--nothing-like-it").err


def test_a_command_that_needs_a_run_says_how_one_is_named(ask):
    for words in (["show"], ["diff", "@last"]):
        said = ask(*words)
        assert said.code == 2
        assert "Name a run, such as @last; `playhead ls` lists them." in said.err
