"""What LangSmith exports becomes runs, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.ingest.otlp.test_langsmith import MODEL, ROOT, RUNS
from tests.server.serving import Server
from tests.warm import playhead

from playhead._api.importing_spans import import_langsmith
from playhead._api.reading import load
from playhead.errors import BadImport, StoreError
from playhead.store.files import FileStore


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / ".playhead")


def exported(*runs: object) -> bytes:
    return b"\n".join(json.dumps(run).encode() for run in runs)


def test_an_export_becomes_one_run_with_its_calls_ended_and_whole(store: FileStore) -> None:
    found = import_langsmith(exported(*RUNS), store)
    assert found.spans == 3
    ((run_id, name, status, added),) = [(one.run, one.name, one.status, one.added) for one in found.runs]
    assert (name, status, added) == ("agent", "ok", True)
    run = load(run_id, store)
    kinds = [event.kind for event in run.events()]
    assert kinds.count("model.invoked") == kinds.count("tool.called") == 1
    assert run.verify(deep=True).completeness.verdict == "complete"


def test_what_is_there_is_not_added_again_and_what_is_new_is(store: FileStore) -> None:
    first, second = RUNS[:1], RUNS
    import_langsmith(exported(*first), store)
    again, more, whole = (import_langsmith(exported(*runs), store) for runs in (first, second, second))
    assert [[one.added for one in found.runs] for found in (again, more, whole)] == [[False], [True], [False]]
    assert len({one.run for found in (again, more, whole) for one in found.runs}) == 1
    (one,) = whole.runs
    events = [event.kind for event in load(one.run, store).events()]
    assert events.count("model.invoked") == 1
    assert events[-1] == "run.finished"


def test_a_run_without_its_root_is_ended_too(store: FileStore) -> None:
    (model,) = [run for run in RUNS if run["id"] == MODEL]
    (one,) = import_langsmith(exported({**model, "parent_run_id": ROOT}), store).runs
    assert one.status == "ok"


def test_what_is_no_export_is_refused_and_nothing_is_made(store: FileStore) -> None:
    with pytest.raises(BadImport):
        import_langsmith(b'{"no": "run"}', store)
    assert list(store.runs()) == []


def test_a_store_that_is_served_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with Server(tmp_path / "served") as server, pytest.raises(StoreError) as refused:
        import_langsmith(exported(*RUNS), FileStore(server.store))
    assert "unpack" in str(refused.value)


def test_the_command_says_which_runs_came_of_it(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(exported(*RUNS))
    done = playhead(tmp_path, "import", "langsmith", "runs.jsonl")
    assert done.returncode == 0
    assert "3 runs of LangSmith" in done.stdout
    assert "recorded in run_" in done.stdout
    told = json.loads(playhead(tmp_path, "import", "langsmith", "runs.jsonl", "--json").stdout)
    assert [run["added"] for run in told["runs"]] == [False]
    assert told["spans"] == 3
