from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead._api.reading import load
from playhead.store.disk import Disk
from playhead.store.files import FileStore
from playhead.store.prune import Candidate, choose

LARGE = "a large value " * 4000


def blobs(store: Path) -> set[str]:
    return {path.name for path in (store / "blobs").rglob("*") if path.is_file()}


def age(store: Path, days: float) -> None:
    then = time.time() - days * 86400
    for path in (store / "blobs").rglob("*"):
        os.utime(path, (then, then))


def record_large(store: Path, value: object) -> str:
    with playhead.record("large", input=value, store=store) as run:
        pass
    return str(run.id)


def test_nothing_is_chosen_without_saying_what(ask, sample, store):
    said = ask("prune")
    assert said.code == 2
    assert "--older-than" in said.err


def test_without_yes_it_only_shows(ask, sample, store):
    said = ask("prune", "--keep", "0")
    assert said.code == 0
    assert sample in said.out
    assert "would remove 1 run" in said.out
    assert ask("prune", "--keep", "0", "--json").json["would_remove"] == [sample]
    assert list(FileStore(store).runs()) == [sample]


def test_a_removed_run_is_gone_from_the_disk_and_from_the_list(ask, store, record):
    first, second, third = (record(store) for _ in range(3))
    assert len(ask("ls", "--json").json) == 3
    said = ask("prune", "--keep", "1", "--yes", "--json")
    assert (said.code, sorted(said.json["removed"])) == (0, [first, second])
    assert said.json["bytes"] > 1000
    assert list(FileStore(store).runs()) == [third]
    assert [run["id"] for run in ask("ls", "--json").json] == [third]
    assert load(third, store).verify().integrity.verdict == "intact"


def test_age_and_status_are_honoured(ask, store, sample):
    with pytest.raises(RuntimeError), playhead.record("bad", store=store):
        raise RuntimeError("no")
    assert ask("prune", "--older-than", "1h", "--json").json["would_remove"] == []
    assert len(ask("prune", "--older-than", "0s", "--json").json["would_remove"]) == 2
    (chosen,) = ask("prune", "--status", "error", "--json").json["would_remove"]
    assert load(chosen, store).name == "bad"


def test_the_newest_of_those_that_fit_are_kept() -> None:
    runs = [Candidate(str(number), None, "error" if number % 2 else "ok", number) for number in range(9, -1, -1)]
    assert [run.id for run in choose(runs, keep=2, status="error")] == ["5", "3", "1"]
    assert [run.id for run in choose(runs, keep=2, status="error", before_us=4)] == ["3", "1"]
    assert choose([Candidate("1", None, "running", 0)]) == []


def test_a_running_run_stays(ask, store, sample):
    with playhead.record("live", store=store) as live:
        said = ask("prune", "--keep", "0", "--yes", "--json")
        assert said.json["removed"] == [sample]
        said = ask("prune", live.id, "--yes", "--json")
        assert said.json["skipped"] == [{"id": live.id, "why": "running"}]
        playhead.note("still here")
    assert load(live.id, store).verify().completeness.verdict == "complete"


def test_a_run_is_named_in_every_usual_way_but_only_in_this_store(ask, store, record, tmp_path):
    first, second = record(store), record(store, name="other")
    assert ask("prune", "@last", "--json").json["would_remove"] == [second]
    assert ask("prune", "fix-login", second, "--json").json["would_remove"] == [second, first]
    elsewhere = tmp_path / "elsewhere"
    (store / "runs" / first).rename(elsewhere)
    assert ask("prune", str(elsewhere), "--yes").code == 2
    assert elsewhere.is_dir()
    assert ask("prune", "nobody", "--yes").code == 2


def test_a_run_directory_that_holds_nothing_can_be_pruned(ask, store, sample):
    empty = store / "runs" / ("run_" + "0" * 26)
    (empty / "artifacts").mkdir(parents=True)
    said = ask("prune", "--status", "crashed", "--yes", "--json")
    assert said.json["removed"] == [empty.name]
    assert not empty.exists()


def test_blobs_that_only_removed_runs_needed_go_when_they_are_old(ask, store):
    shared = record_large(store, LARGE)
    doomed = record_large(store, [LARGE, LARGE + "and more"])
    before = blobs(store)
    assert len(before) >= 2
    said = ask("prune", doomed, "--yes", "--json")
    assert (said.json["removed"], said.json["blobs_removed"], blobs(store)) == ([doomed], 0, before)
    age(store, days=2)
    said = ask("prune", "--keep", "5", "--yes", "--json")
    assert said.json["blobs_removed"] == 1
    assert blobs(store) < before
    assert load(shared, store).input["payload"] == LARGE
    assert load(shared, store).readiness().replayable


def test_a_blob_that_another_blob_refers_to_stays(ask, store):
    # A large object with a large binary inside: one blob names the other.
    run = record_large(store, {f"item {number}": ["x" * 200, LARGE.encode()] for number in range(300)})
    before = blobs(store)
    timeline = (store / "runs" / run / "timeline.jsonl").read_text()
    assert any(digest not in timeline for digest in before), "some blob is named only by another one"
    age(store, days=2)
    assert ask("prune", "--keep", "9", "--yes", "--json").json["blobs_removed"] == 0
    assert blobs(store) == before
    assert load(run, store).readiness().replayable


def test_a_blob_that_is_met_again_is_young_again(store):
    files = FileStore(store)
    record_large(store, LARGE)
    age(store, days=2)
    digest = files.put_blob(LARGE.encode())
    assert time.time() - (store / "blobs" / digest[:2] / digest).stat().st_mtime < 60


def test_a_line_that_was_set_aside_stays_while_its_run_does(ask, store, sample):
    with (store / "runs" / sample / "timeline.jsonl").open("ab") as file:
        file.write(b'{"v":1,"torn')
    load(sample, store).invalidate("a torn tail is set aside by the next writer")
    kept = blobs(store)
    assert len(kept) == 1
    assert ask("prune", "--keep", "9", "--blobs-now", "--yes", "--json").json["blobs_removed"] == 0
    assert blobs(store) == kept


def test_half_written_blobs_of_a_crash_go_too(ask, store, sample):
    left = store / "blobs" / "ab" / f".{'ab' * 32}.12345678"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    assert ask("prune", "--blobs-now", "--yes", "--json").json["blobs_removed"] == 1
    assert not left.exists()


def test_a_store_that_is_not_there_is_said_so(ask, store):
    assert ask("prune", "--keep", "0").code == 2
    assert not store.exists()


# What a prune, finished or not, says to those who verify

KILLED = """
import os, signal, sys
from playhead.cli.main import main
left = int(sys.argv[1])
def count(event, args):
    global left
    journal = event == "open" and str(args[0]).endswith("journal") and args[2] & os.O_APPEND
    if journal or event in ("os.rename", "os.remove", "os.rmdir"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
sys.exit(main(sys.argv[2:]))
"""


def newer(store: Path) -> None:
    connection = sqlite3.connect(store / "playhead.db")
    connection.execute("INSERT INTO migrations VALUES ('9999_later', '')")
    connection.commit()
    connection.close()


def damaged(store: Path) -> None:
    connection = sqlite3.connect(store / "playhead.db")
    connection.execute("DROP TABLE calls")
    connection.close()


@pytest.mark.parametrize("then", [None, damaged, newer])
def test_a_prune_that_is_killed_at_any_moment_breaks_nothing(ask, store, record, then):
    for moment in range(1, 100):
        removed = record(store)
        ask("ls")
        argv = [sys.executable, "-c", KILLED, str(moment), "--store", str(store), "prune", removed, "--yes"]
        done = subprocess.run(argv, capture_output=True)
        if then is not None:
            then(store)
        said = ask("verify", "--all")
        assert said.code == 0, (moment, said.out)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        if then is newer:
            (store / "playhead.db").unlink()
    assert 10 < moment < 99
    kept = record(store)
    assert ask("prune", "--keep", "1", "--yes").code == 0
    assert os.listdir(store / "runs") == [kept]
    assert ask("verify", "--all").code == 0


def test_a_run_that_goes_while_it_is_verified_is_not_called_broken(ask, store, record, monkeypatch):
    first, second, last = (record(store) for _ in range(3))
    ask("ls")
    files = FileStore(store)
    lines = FileStore.lines

    def removed_meanwhile(self: FileStore, run: str, start: int = 0) -> Iterator[bytes]:
        if run == first and files.folder(second).exists():
            files.delete(second)
        yield from lines(self, run, start)
        if run == last and files.folder(last).exists():
            files.delete(last)

    monkeypatch.setattr(FileStore, "lines", removed_meanwhile)
    said = ask("verify", "--all", "--json")
    assert (said.code, [one["run"] for one in said.json["runs"]]) == (0, [first])


def test_a_run_that_was_read_between_its_note_and_its_removal_is_not_missed(ask, store, record):
    removed, _ = record(store), record(store)
    FileStore(store).note(removed, "pruned")
    assert len(ask("ls", "--json").json) == 2, "it is still there"
    shutil.rmtree(store / "runs" / removed)  # by a prune that is killed before it tells the index
    assert ask("verify", "--all").code == 0
    assert len(ask("ls", "--json").json) == 1
    assert ask("reindex").code == 0


def test_two_prunes_at_once_are_no_error(store, ask, record):
    for _ in range(12):
        record(store)
    argv = [sys.executable, "-m", "playhead", "--store", str(store), "prune", "--keep", "1", "--yes"]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for one in both:
        assert one.communicate()[1] == ""
        assert one.returncode == 0
    assert len(os.listdir(store / "runs")) == 1
    assert ask("verify", "--all").code == 0


def test_a_full_disk_does_not_stop_a_prune(store, record, ask):
    class Full(Disk):
        """A disk on which the journal cannot grow before something was removed."""

        def write(self, descriptor: int, data: bytes) -> int:
            if (store / "runs" / run).exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(descriptor, data)

    run = record(store)
    ask("ls")
    FileStore(store, disk=Full()).delete(run)
    assert ask("verify", "--all").code == 0
