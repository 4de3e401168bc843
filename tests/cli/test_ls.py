from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests import repositories

import playhead
from playhead._api.listing import FIELDS
from playhead._api.points_in_time import moment_us
from playhead._clock import FakeClock
from playhead.cli.commands.ls import _took_us
from playhead.errors import UsageError


def test_an_empty_store_says_how_to_record_the_first_run(ask, store):
    said = ask("ls")
    assert said.code == 0
    assert "playhead record -- " in said.out
    assert not store.exists()
    assert ask("ls", "--json").json == []


def test_the_list_is_newest_first_with_the_documented_fields(ask, store, record):
    ids = [record(store, name=name) for name in ("one", "two", "three")]
    found = ask("ls", "--json").json
    assert [run["id"] for run in found] == ids[::-1]
    assert set(FIELDS) <= set(found[0])
    newest = found[0]
    assert (newest["name"], newest["status"], newest["replayable"], newest["reasons"]) == ("three", "ok", True, [])
    assert (newest["model_calls"], newest["tool_calls"]) == (2, 2)
    assert (newest["tokens_in"], newest["tokens_out"]) == (912, 50)
    assert newest["events"] == len((store / "runs" / ids[-1] / "timeline.jsonl").read_bytes().splitlines())


def test_the_table_shows_ids_that_can_be_typed(ask, store, record):
    ids = [record(store) for _ in range(8)]
    lines = ask("ls").out.splitlines()
    assert lines[0].split() == [
        "run",
        "name",
        "status",
        "started",
        "took",
        "events",
        "models",
        "tools",
        "tokens",
        "cost",
    ]
    for line, id in zip(lines[1:], ids[::-1], strict=True):
        short = line.split()[0]
        assert id.startswith(short)
        assert playhead.load(short, store).id == id


def test_filters_choose(ask, store, record):
    first = record(store, name="fix-login", tags={"team": "search"})
    second = record(store, name="fix-logout", tags={"team": "mail", "tier": "1"}, version="2")
    with pytest.raises(RuntimeError), playhead.record("failing", store=store):
        raise RuntimeError("no")

    def names(*arguments: str) -> list[str]:
        return [run["name"] for run in ask("ls", "--json", *arguments).json]

    assert names("fix") == ["fix-logout", "fix-login"]
    assert names("--name", "fix-login") == ["fix-login"]
    assert names("--tag", "team=search") == ["fix-login"]
    assert names("--tag", "tier") == ["fix-logout"]
    assert names("--status", "error") == names("--error") == ["failing"]
    assert names("--agent", "fix-logout") == ["fix-logout"]
    assert names("--limit", "1") == ["failing"]
    assert names("--limit", "0") == ["failing", "fix-logout", "fix-login"]
    assert names("--before", second) == ["fix-login"]
    assert names("--before", "@last~1") == ["fix-login"]
    assert names("--since", "1h") == ["failing", "fix-logout", "fix-login"]
    assert names("--until", "1h") == []
    assert names("--commit", "abc") == []
    assert names("--before", first) == []
    assert "No run matches" in ask("ls", "--name", "nobody").out


def test_a_full_page_says_how_to_see_older_ones(ask, store, record):
    ids = [record(store) for _ in range(3)]
    said = ask("ls", "--limit", "2")
    assert f"--before {ids[1]}" in said.out
    assert "--before" not in ask("ls", "--limit", "4").out


def test_a_killed_run_is_listed_as_crashed_and_a_live_one_as_running(ask, store):
    code = "import playhead,sys\nwith playhead.record('live'):\n print('ready', flush=True)\n sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [run["status"] for run in ask("ls", "--json").json] == ["running"]
        os.kill(process.pid, signal.SIGKILL)
    found = ask("ls", "--json").json[0]
    assert (found["status"], found["replayable"], found["reasons"]) == ("crashed", False, ["execution_incomplete"])


def test_crashed_runs_are_among_those_that_failed(ask, store, sample):
    code = "import os, playhead\nplayhead.record('dies').__enter__()\nos.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert [run["name"] for run in ask("ls", "--error", "--json").json] == ["dies"]


def test_a_running_run_has_taken_the_time_since_its_start():
    hanging = {"status": "running", "started_us": 1_000_000, "duration_us": 68_000}
    assert _took_us(hanging, 4_100_000) == 3_100_000
    assert _took_us({**hanging, "status": "crashed"}, 4_100_000) == 68_000
    assert _took_us({**hanging, "started_us": None}, 4_100_000) == 68_000


def test_listing_judges_envelopes_like_every_other_reader(ask, store, sample):
    """A run that `ls` was the first to index must not count as replayable when its envelope was changed."""
    timeline = store / "runs" / sample / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b'"payload":{"issue":1842}', b'"payload":{"issue":1843}', 1))
    assert ask("ls", "--json").json[0]["reasons"] == ["envelope_invalid"]


def test_points_in_time_are_read_in_several_forms():
    clock = FakeClock(start_us=1_700_000_000_000_000, step_us=0)
    assert moment_us("2h", clock) == 1_700_000_000_000_000 - 7_200_000_000
    assert moment_us("1.5d", clock) == 1_700_000_000_000_000 - 129_600_000_000
    assert moment_us("2023-11-14T22:13:20Z", clock) == 1_700_000_000_000_000
    assert moment_us("2023-11-14T23:13:20+01:00", clock) == 1_700_000_000_000_000
    with pytest.raises(UsageError):
        moment_us("yesterday-ish", clock)


def test_a_wrong_limit_or_status_is_a_usage_error(ask, store):
    assert ask("ls", "--limit", "-1").code == 2
    assert ask("ls", "--limit", "many").code == 2
    assert ask("ls", "--status", "done").code == 2
    assert ask("ls", "--since", "soon").code == 2


def test_a_run_that_another_one_made_is_marked(ask, shell, store):
    inner = "import playhead\nwith playhead.record('inner'): pass"
    program = f"import playhead, subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}])"
    assert shell("record", "--name", "outer", "--", sys.executable, "-c", program).code == 0
    assert sorted(line.split("  ")[1] for line in ask("ls").out.splitlines()[1:]) == ["outer", "↳ inner"]


def test_tokens_that_nobody_said_are_not_none_in_the_table(ask, store):
    for usages in ([None], [{"input": 10, "output": 2}, None], [{"input": 10, "output": 2}]):
        with playhead.record("sums", store=store):
            for usage in usages:
                with playhead.model_call(provider="openai", model="gpt-5", request="hi") as call:
                    call.respond("ho", usage=usage)
    assert [line.split()[-2] for line in ask("ls").out.splitlines()[1:]] == ["12", "12+", "?"]
    assert [run["tokens_in"] for run in ask("ls", "--json").json] == [10, 10, 0]


def test_a_replay_is_marked_costs_nothing_and_is_counted_only_where_that_is_asked_for(ask, shell, store):
    program = (
        "import playhead\n@playhead.tool\ndef add(a): return a + 1\n"
        "with playhead.model_call(provider='openai', model='gpt-5', request='hi') as call:\n"
        "    call.respond('ho', usage={'input': 10, 'output': 3})\n"
        "add(1)"
    )
    assert shell("record", "--name", "sums", "--quiet", "--", sys.executable, "-c", program).code == 0
    assert shell("replay", "@last", "--mode", "exact").code == 0
    replay, original = ask("ls", "--json").json
    assert (original["replay_of"], original["cost"] is None) == (None, False)
    assert (replay["replay_of"], replay["cost"], replay["cost_unpriced"]) == (original["id"], None, [])
    assert [line.split("  ")[1] for line in ask("ls").out.splitlines()[1:]] == ["↻ sums", "sums"]
    for question in ("SELECT count(*) AS calls FROM calls WHERE kind = 'tool'", "slowest-tools", "tokens-by-model"):
        assert ask("query", question, "--json").json[0]["calls"] == 1
        assert ask("query", question, "--json", "--replays").json[0]["calls"] == 2
    assert ask("query", "SELECT id FROM runs", "--json").json == [{"id": original["id"]}]


def test_a_commit_is_that_a_run_started_from_or_made_by_its_id_or_by_what_git_calls_it(
    ask, store, tmp_path, monkeypatch
):
    monkeypatch.setenv("PLAYHEAD_GIT", "1")
    repo = repositories.make(tmp_path / "repo")
    start = repositories.commit(repo, "Start", **{"a.txt": "1"})
    monkeypatch.chdir(repo)
    for name in ("makes", "goes-on"):
        with playhead.record(name, store=store):
            made = repositories.commit(repo, name, **{"a.txt": name})

    def names(commit: str) -> list[str]:
        return [run["name"] for run in ask("ls", "--json", "--commit", commit).json]

    between = repositories.git_in(repo, "rev-parse", "HEAD~1")
    assert names(start) == names(start[:8].upper()) == names("HEAD~2") == ["makes"]
    assert names(between[:10]) == names("main~1") == ["goes-on", "makes"]
    assert names(made) == names("HEAD") == ["goes-on"]
    assert ask("stats", "--commit", "HEAD~1", "--json").json["total"]["runs"]["count"] == 2
    said = ask("ls", "--commit", "HEAD~9")
    assert (said.code, said.err.splitlines()[0]) == (2, "playhead: not a commit of this repository: 'HEAD~9'")
    monkeypatch.chdir(tmp_path)
    assert "not the id of a commit: 'HEAD'" in ask("ls", "--commit", "HEAD").err


def test_runs_are_chosen_by_the_words_of_their_events(ask, store, record):
    first, second = record(store, name="fix-login"), record(store, name="fix-logout")
    with playhead.record("refunding", store=store) as run:
        playhead.note("We could not refund order 4711-a.")

    def found(*arguments: str) -> list[str]:
        return [run["id"] for run in ask("ls", "--json", *arguments).json]

    assert found("--text", '"could not refund" order*') == [run.id]
    assert found("--text", '"could not refund"', "--status", "ok") == [run.id]
    assert found("--text", '"could not refund"', "--error") == []
    assert found("--text", "normalise", "--limit", "1") == [second]
    assert found("--text", "normalise") == [second, first]
    assert found("login", "--text", "normalise") == [first]
    assert found("--text", "normalise", "--before", second) == [first]
    assert "No run matches" in ask("ls", "--text", "nobody said this").out
    older = ask("ls", "--text", "normalise it*", "--limit", "1").out
    assert "Older ones" not in older or "--text 'normalise it*'" in older
    assert f"--text normalise --limit 1 --before {second}" in ask("ls", "--text", "normalise", "--limit", "1").out


def test_a_search_for_nothing_is_a_usage_error(ask, store, sample):
    for query in ("", '""', "-not", "()"):
        said = ask("ls", f"--text={query}", "--json")
        assert (said.code, said.json["error"]["code"]) == (2, "usage")
    assert not (store / "search.db").exists()


def test_what_is_pruned_is_not_found_and_leaves_no_words(ask, store, record):
    first, second = record(store, name="fix-login"), record(store, name="zanzibar")
    assert len(ask("ls", "--text", "zanzibar", "--json").json) == 1
    assert b"zanzibar" in b"".join(path.read_bytes() for path in store.glob("search.db*"))
    assert ask("prune", second, "--yes").code == 0
    assert ask("ls", "--text", "zanzibar", "--json").json == []
    assert b"zanzibar" not in b"".join(path.read_bytes() for path in store.glob("search.db*"))
    assert [run["id"] for run in ask("ls", "--text", "normalise", "--json").json] == [first]


def test_reindex_builds_the_search_again_too(ask, store, sample):
    ask("ls", "--text", "normalise")
    assert (store / "search.db").exists()
    assert ask("reindex").code == 0
    assert not (store / "search.db").exists()
    assert len(ask("ls", "--text", "normalise", "--json").json) == 1
