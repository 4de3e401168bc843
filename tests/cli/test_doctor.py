from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import namedtuple

import pytest

import playhead


@pytest.fixture
def checks(ask):
    def call(*arguments):
        said = ask("doctor", *arguments, "--json")
        found = {check["name"]: check for check in said.json}
        assert said.code == int(any(check["status"] == "fail" for check in said.json))
        return found

    return call


def test_a_healthy_store_has_no_complaint(ask, sample):
    said = ask("doctor")
    assert said.code == 0
    lines = said.out.splitlines()
    assert all(line.startswith("ok ") for line in lines), said.out
    names = [line.split()[1] for line in lines]
    assert names == [
        "python", "packages", "settings", "recording", "git", "store", "permissions", "disk", "writable", "locks",
        "index", "runs", "clock",
    ]  # fmt: skip


def test_looking_leaves_nothing_behind(ask, store, sample):
    def entries():
        return sorted(path for path in store.rglob("*") if not path.name.startswith("playhead.db"))

    before = entries()
    ask("doctor")
    assert entries() == before


def test_a_store_that_is_not_there_yet_is_fine_and_is_not_made(checks, store):
    found = checks()
    assert (found["store"]["status"], store.exists()) == ("ok", False)
    assert "first run makes it" in found["store"]["message"]


def test_a_file_where_the_store_should_be_fails(checks, store):
    store.write_text("in the way")
    assert checks()["store"]["status"] == "fail"


def test_a_store_of_a_newer_playhead_fails_with_what_to_do(checks, store, sample):
    (store / "format").write_text("99\n")
    found = checks()["store"]
    assert (found["status"], "pip install -U" in found["hint"]) == ("fail", True)


def test_open_permissions_and_a_missing_gitignore_are_said(checks, store, sample):
    store.chmod(0o755)
    (store / ".gitignore").unlink()
    found = checks()
    assert (found["permissions"]["status"], found["permissions"]["hint"]) == ("warn", f"chmod 700 {store}")
    assert found["gitignore"]["status"] == "warn"


def test_settings_that_cannot_be_read_fail(checks, store, sample, monkeypatch, tmp_path):
    (tmp_path / "playhead.toml").write_text("strict = 'perhaps'")
    assert checks("--store", str(store))["settings"]["status"] == "fail"


def test_a_setting_is_named_as_it_is_written_in_the_file(checks, store, sample, tmp_path):
    for written, said in (
        ("[redact]\npaterns = {}\n", "there is no setting 'redact.paterns'"),
        ("[redact]\npaterns = {}\n", "redact.fields, redact.off, redact.patterns, strict"),
        ("[redact]\noff = 1\n", "redact.off must be a list of strings"),
        ("[redact]\npatterns = 1\n", "redact.patterns must be a table"),
        ("strickt = true\n", "there is no setting 'strickt'; there are ambient, cassettes, dir, "),
    ):
        (tmp_path / "playhead.toml").write_text(written)
        assert said in checks("--store", str(store))["settings"]["message"]


def test_a_redaction_rule_that_is_wrong_fails(checks, store, sample, tmp_path):
    (tmp_path / "playhead.toml").write_text("[redact]\npatterns = { bad = '(' }\n")
    found = checks("--store", str(store))["settings"]
    assert found["status"] == "fail"
    assert "redaction rule 'bad' is not a regular expression" in found["message"]


def test_the_disabled_switch_is_said(checks, store, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_DISABLED", "1")
    assert checks()["recording"]["status"] == "warn"


def test_no_git_is_said(checks, store, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert checks()["git"]["status"] == "warn"


def test_little_space_is_said(checks, sample, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 10**12 - 10**8, 10**8))
    assert checks()["disk"]["status"] == "warn"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 10**12, 1000))
    assert checks()["disk"]["status"] == "fail"


def test_a_store_that_cannot_be_written_fails(checks, sample, monkeypatch):
    real = os.open

    def refuse(path, flags, *rest, **options):
        if flags & os.O_CREAT and ".doctor-" in str(path):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    found = checks()["writable"]
    assert (found["status"], "Read-only file system" in found["message"]) == ("fail", True)


def test_a_file_system_whose_locks_do_not_lock_fails(checks, sample, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: None)
    assert checks()["locks"]["status"] == "fail"


def test_a_damaged_index_is_said_once_and_mended(checks, store, sample):
    (store / "playhead.db").write_bytes(b"rubbish" * 1000)
    assert checks()["index"]["status"] == "warn"
    assert checks()["index"]["status"] == "ok"


def test_crashed_runs_and_lost_events_are_said(checks, store, sample):
    program = "import os, playhead\nplayhead.record('dies').__enter__()\nos.kill(os.getpid(), 9)"
    died = subprocess.run([sys.executable, "-c", program], check=False)
    assert died.returncode == -signal.SIGKILL
    with playhead.record("loses", store=store) as run:
        run.recording.lose("test")
    found = checks()
    assert found["crashes"]["status"] == "warn"
    assert "1 run of the last week did not finish" in found["crashes"]["message"]
    assert (found["losses"]["status"], run.id in found["losses"]["message"]) == ("warn", True)


def test_a_free_threaded_build_is_refused(checks, store, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else None)
    assert checks()["python"]["status"] == "fail"


def test_an_interpreter_that_was_not_tested_is_said(checks, store, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    assert checks()["python"]["status"] == "warn"


def test_a_clock_that_is_far_off_fails(checks, store, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    assert checks()["clock"]["status"] == "fail"
