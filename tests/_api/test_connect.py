"""Ask a server by the client what the verbs ask a folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.serving import Served, key_of, send_spans, serving

import playhead
from playhead.errors import Conflict, Forbidden, KeyRefused, NotFound, ServerError, UsageError


@pytest.fixture
def client(served: Served) -> Iterator[playhead.Client]:
    with playhead.connect(served.address) as client:
        yield client


@pytest.fixture
def writable(tmp_path: Path) -> Iterator[Served]:
    """Give a server that may be changed."""
    with playhead.record("small", input={"question": 1}, store=tmp_path / "store") as run:
        playhead.note("hello refund")
        run.output = {"answer": 42}
    with serving(tmp_path / "store") as server:
        server.runs["small"] = run.id
        yield server


def test_a_run_is_read_like_one_here(client: playhead.Client, served: Served) -> None:
    there, here = client.load("fix-login~1"), playhead.load(served.runs["good"], served.root)
    assert there.id == here.id
    assert there.path is None
    assert (there.name, there.status, there.input) == (here.name, here.status, here.input)
    assert list(there.events()) == list(here.events())
    assert list(there.lines()) == list(here.lines())
    assert there.at(4).as_dict() == here.at(4).as_dict()
    assert there.verify(deep=True) == here.verify(deep=True)
    assert there.readiness() == here.readiness()
    assert there.playback().payload == here.playback().payload == {"outcome": "ok"}
    assert there.artifact("logs/patch.diff") == here.artifact("logs/patch.diff")
    assert there.metrics("step").as_dict() == here.metrics("step").as_dict()


def test_the_verbs_answer_like_here(client: playhead.Client, served: Served) -> None:
    good, bad = served.runs["good"], served.runs["bad"]
    root = served.root
    assert (
        client.diff(good, bad).as_dict() == playhead.diff(playhead.load(good, root), playhead.load(bad, root)).as_dict()
    )
    assert client.stats("run").as_dict() == playhead.stats("run", store=root).as_dict()
    assert client.audit(["whole-program"]).counts == playhead.audit(playhead.load("whole-program", root)).counts
    assert (
        client.report(good, bad).markdown()
        == playhead.report(playhead.load(good, root), playhead.load(bad, root)).markdown()
    )
    assert client.verify("flipped").integrity.verdict == "broken"
    assert [run.id for run in client.runs(name="fix-login", status="ok")] == [bad, good]
    assert [run.name for run in client.runs(text="milk")] == ["whole-program"]
    found = client.find(playhead.load(good, root).input or {})
    assert found is not None
    assert found.id == bad, "the newest of that request"
    assert client.query("SELECT count(*) AS n FROM runs WHERE name = ?", ["fix-login"]) == (["n"], [(2,)])
    hits = client.search("milk", limit=5)
    assert hits
    assert hits[0].run == served.runs["whole-program"]
    assert "milk" in hits[0].snippet


def test_a_run_here_is_compared_with_one_over_there(client: playhead.Client, served: Served) -> None:
    here = playhead.load(served.runs["good"], served.root)
    assert client.diff(here, "fix-login~1").identical
    assert not client.diff(here, "fix-login").identical


def test_what_is_public_takes_an_address_for_a_store(served: Served) -> None:
    assert playhead.load("@last", store=served.address).id == playhead.load("@last", store=served.root).id
    assert len(playhead.runs(store=served.address)) == len(playhead.runs(store=served.root))


def test_a_run_is_followed_as_it_is_written(client: playhead.Client, served: Served) -> None:
    program = (
        "import sys, playhead\n"
        "with playhead.record('followed', store=sys.argv[1]) as run:\n"
        "    print(run.id, flush=True)\n"
        "    for line in sys.stdin:\n"
        "        playhead.note(line)\n"
    )
    command = [sys.executable, "-c", program, str(served.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdin is not None
        assert writing.stdout is not None
        events = client.follow(writing.stdout.readline().strip())
        assert next(events).kind == "run.started"
        for number in range(3):
            writing.stdin.write(f"{number}\n")
            writing.stdin.flush()
            assert next(events).data["text"] == f"{number}\n"
        writing.stdin.close()
        assert [event.kind for event in events] == ["run.finished"]


def test_cassettes_are_made_brought_here_sent_there_and_fed_in_anew(writable: Served, tmp_path: Path) -> None:
    with playhead.connect(writable.address) as client:
        made = client.make_cassette("small", name="mine")
        assert (made.name, made.run_id) == ("mine", writable.runs["small"])
        assert [kept.id for kept in client.cassettes()] == [made.id]
        path = client.download_cassette(made.id, tmp_path / "x.cassette")
        assert playhead.load(path).playback().payload == {"answer": 42}
        with pytest.raises(UsageError, match="cannot write"):
            client.download_cassette(made.id, path)
        assert client.upload_cassette(path, name="again").digest == made.digest
        job = client.reingest(made.id)
        assert job.status == "completed"
        assert job.result is not None
        again = client.load(str(job.result["run_id"]))
        assert again.playback().payload == {"answer": 42}
        assert again.id != writable.runs["small"]
        with pytest.raises(Conflict):
            client.reingest(made.id, writable.runs["small"])
        with pytest.raises(Conflict):
            client.cancel(job.id)
        with pytest.raises(NotFound):
            client.job("job_" + "0" * 26)
        with pytest.raises(playhead.PlayheadError):
            client.download_cassette("cas_none", tmp_path / "y.cassette")
    assert not list(tmp_path.glob(".*.cassette"))
    assert not (tmp_path / "y.cassette").exists()


def test_a_job_that_takes_too_long_is_told_and_goes_on(writable: Served) -> None:
    client = playhead.connect(writable.address)
    made = client.make_cassette("small")
    with pytest.raises(ServerError, match="is still"):
        client.reingest(made.id, timeout=0)


def test_a_run_is_invalidated_and_one_from_outside_is_ended(writable: Served) -> None:
    client = playhead.connect(writable.address)
    run = client.load("small")
    run.invalidate("it was stale", by="me")
    assert client.load("small").readiness().reasons == ["manually_invalidated"]
    spans = send_spans(writable)
    assert client.finish(spans, status="ok") == "ok"
    assert client.load("5b8efff798038103d269b633813fc60c").id == spans


def test_keys_open_what_they_may_and_are_not_shown(tmp_path: Path) -> None:
    with playhead.record("small", store=tmp_path / "store"):
        pass
    key = key_of(tmp_path / "store", "--scope", "read")
    with serving(tmp_path / "store") as server:
        with pytest.raises(KeyRefused):
            playhead.connect(server.address).runs()
        client = playhead.connect(server.address, key=key)
        assert len(client.runs()) == 1
        assert key not in repr(client) + repr(vars(client)["_connection"])
        with pytest.raises(Forbidden):
            client.make_cassette("small")


def test_results_are_plain_data(client: playhead.Client, served: Served) -> None:
    assert msgspec.json.encode(client.search("milk"))
    assert repr(client) == f"<playhead.Client {served.address}>"
    assert client.url == served.address
