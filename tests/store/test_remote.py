"""Read a server's store over a way that is not always kind."""

from __future__ import annotations

import hashlib
import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.serving import Served

import playhead
from playhead import _limits
from playhead.errors import (
    Altered,
    BadName,
    MissingContent,
    NotReplayable,
    RunNotFound,
    ServerError,
    StoreError,
    UsageError,
)
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.reader import RunReader
from playhead.store.remote.address import read_address
from playhead.store.remote.connection import Connection
from playhead.store.remote.index import RemoteIndex
from playhead.store.remote.reading import RemoteStore
from playhead.store.remote.refusals import refusal


@contextmanager
def cutting(served: Served, allowed: Callable[[int], int]) -> Iterator[tuple[str, list[int]]]:
    """Stand before a server, and cut the n-th connection after as many bytes of answers as `allowed` says."""
    host, port = served.address.removeprefix("http://").split(":")
    listening = socket.create_server(("127.0.0.1", 0))
    cuts: list[int] = []

    def pump(source: socket.socket, target: socket.socket, left: int | None) -> None:
        try:
            while data := source.recv(65536):
                if left is not None:
                    data, left = data[:left], left - len(data[:left])
                target.sendall(data)
                if left == 0:
                    cuts.append(1)
                    break
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept() -> None:
        number = 0
        while True:
            try:
                theirs, _ = listening.accept()
            except OSError:
                return
            ours = socket.create_connection((host, int(port)))
            threading.Thread(target=pump, args=(theirs, ours, None), daemon=True).start()
            threading.Thread(target=pump, args=(ours, theirs, allowed(number)), daemon=True).start()
            number += 1

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", cuts
    finally:
        listening.close()


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes) -> Iterator[str]:
    """Answer everything alike, as something that is no server of Playhead."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_the_lines_are_those_of_the_folder_from_wherever_one_begins(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, run = FileStore(served.root), served.runs["whole-program"]
    lines = list(here.lines(run))
    for page in (1, 700, _limits.REMOTE_PAGE_BYTES):
        monkeypatch.setattr(_limits, "REMOTE_PAGE_BYTES", page)
        there = RemoteStore(served.address)
        start = 0
        for at, line in enumerate(lines):
            assert list(RemoteStore(served.address).lines(run, start))[:2] == lines[at : at + 2]
            assert next(there.lines(run, start)) == line
            start += len(line)
        assert list(there.lines(run)) == lines
        assert list(there.lines(run, start)) == []


def test_a_torn_last_line_is_handed_out_as_it_is(served: Served) -> None:
    here, there, run = FileStore(served.root), RemoteStore(served.address), served.runs["withdrawn"]
    timeline = served.root / "runs" / run / "timeline.jsonl"
    whole = timeline.read_bytes()
    try:
        timeline.write_bytes(whole + b'{"v":1,"run":"')
        for _ in range(2):
            assert list(there.lines(run)) == list(here.lines(run))
        timeline.write_bytes(whole)
        assert b"".join(there.lines(run)) == whole
    finally:
        timeline.write_bytes(whole)


def test_what_was_read_is_not_asked_for_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    get = Connection.get

    def counted(self: Connection, path: str, *args: object, **named: object) -> object:
        asked.append(path)
        return get(self, path, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Connection, "get", counted)
    store, run = RemoteStore(served.address), served.runs["whole-program"]
    reader = RunReader(store, run)
    events = sum(1 for _ in reader.lines())
    before = len(asked)
    for seq in range(events):
        reader.line(seq)
    assert len(asked) == before
    monkeypatch.setattr(_limits, "REMOTE_LINES_BYTES_MAX", 1000)
    crowded = RunReader(RemoteStore(served.address), run)
    assert [crowded.line(seq) for seq in range(events)] == [reader.line(seq) for seq in range(events)]


def test_contents_are_compared_and_names_that_no_file_can_have_are_refused(served: Served) -> None:
    here, there, run = FileStore(served.root), RemoteStore(served.address), served.runs["good"]
    for name in ("artifacts/logs/patch.diff", "context_pack.json"):
        assert there.file(run, name) == here.file(run, name)
    for name in ("artifacts/../timeline.jsonl", "timeline.jsonl", "artifacts//x"):
        with pytest.raises(BadName):
            there.file(run, name)
    with pytest.raises(MissingContent):
        there.file(run, "artifacts/none")
    with pytest.raises(MissingContent):
        there.blob("0" * 64)
    with pytest.raises(BadName):
        there.blob("../../etc/passwd")
    media = {"content-type": "application/octet-stream"}
    with answering(200, media, b"something else") as address, pytest.raises(Altered):
        RemoteStore(address).blob(hashlib.sha256(b"what was asked for").hexdigest())


def test_nothing_is_written_and_a_run_that_is_not_there_is_not_there(served: Served) -> None:
    there = RemoteStore(served.address)
    for attempt in (
        lambda: there.ledger("run_x", create=True), lambda: there.put_blob(b""),
        lambda: there.put_file("run_x", "artifacts/x", b""), lambda: there.delete(served.runs["good"]),
    ):  # fmt: skip
        with pytest.raises(StoreError, match="not written from here yet"):
            attempt()
    with pytest.raises(RunNotFound):
        next(there.lines("run_01jqk3zzzzzzzzzzzzzzzzzzzz"))
    assert set(there.runs()) == set(FileStore(served.root).runs())
    assert not there.is_held(served.runs["good"])


def test_the_index_answers_like_the_one_over_there(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    there = RemoteIndex(RemoteStore(served.address))
    with Index(served.root) as here:
        assert there.list_runs(limit=-1) == here.list_runs(limit=-1)
        monkeypatch.setattr(_limits, "PAGE_MAX", 3)
        assert there.list_runs(limit=-1) == here.list_runs(limit=-1)
        assert there.list_runs(limit=5, status="ok") == here.list_runs(limit=5, status="ok")
        for run in served.runs.values():
            assert (there.get(run), there.head(run)) == (here.get(run), here.head(run))
        assert there.heads() == here.heads()
        assert there.names(list(served.runs.values())) == here.names(list(served.runs.values()))
        for name in (None, "fix-login", "none"):
            assert [there.latest(name, back) for back in (0, 1, 9)] == [here.latest(name, back) for back in (0, 1, 9)]
        assert there.with_prefix("run_", -1) == here.with_prefix("run_", -1)
        many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000) SELECT i, i AS i FROM n"
        assert there.query(many) == here.query(many)
        said = "SELECT 1.0, 9007199254740993, x'00ff', NULL, 'ä', ?"
        assert there.query(said, [True]) == here.query(said, [True])


@pytest.mark.parametrize("after", [0, 10, 300, 1500])
def test_a_connection_that_is_cut_is_no_end(served: Served, after: int) -> None:
    """Every second connection is cut: in the head of an answer, or in the middle of its body."""
    whole = b"".join(FileStore(served.root).lines(served.runs["whole-program"]))
    with cutting(served, lambda number: 1 << 30 if number % 2 else after) as (address, cuts):
        for _ in range(3):
            store = RemoteStore(address, connection=Connection(read_address(address)))
            assert b"".join(store.lines(served.runs["whole-program"])) == whole
            assert len(list(store.known())) >= 10 or after > 1000
            store.connection.close()
        assert playhead.load("fix-login", address).verify().integrity.verdict == "intact"
        assert cuts


def test_a_connection_that_is_always_cut_is_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "REMOTE_PAUSE_S", 0.01)
    with cutting(served, lambda number: 200) as (address, cuts):
        with pytest.raises(ServerError, match=r"cut off|closed|reached"):
            list(RemoteStore(address).lines(served.runs["whole-program"]))
        assert len(cuts) == _limits.REMOTE_TRIES_MAX


def test_a_server_that_has_too_much_to_do_is_given_time(served: Served) -> None:
    body = b'{"error":{"code":"too_many","message":"slowly","hint":"","detail":null}}'
    with answering(429, {"retry-after": "100"}, body) as address, pytest.raises(playhead.PlayheadError, match="slowly"):
        Connection(read_address(address)).json("/api/runs")


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (200, {}, b"<html>hello</html>", "there is no Playhead server at"),
        (404, {}, b"<html>not found</html>", "there is no Playhead server at"),
        (200, {}, b"{}", "there is no Playhead server at"),
        (301, {"location": "https://elsewhere.example/api/runs?q=secret"}, b"", "sends elsewhere"),
        (500, {}, b'{"error":{"code":"internal","message":"the server made a mistake","hint":"","detail":null}}',
         "the server made a mistake"),
    ],
)  # fmt: skip
def test_what_is_no_server_of_playhead_is_told_so(status: int, headers: dict[str, str], body: bytes, said: str) -> None:
    with answering(status, headers, body) as address:
        for url in (address, f"{address}/playhead/"):
            with pytest.raises(ServerError, match=said) as told:
                playhead.load("@last", url)
            assert "secret" not in str(told.value)


def test_https_where_plain_http_is_spoken_and_the_other_way_round(served: Served) -> None:
    with pytest.raises(ServerError, match="does not speak TLS") as told:
        playhead.load("@last", served.address.replace("http://", "https://"))
    assert "http://" in told.value.hint
    listening = socket.create_server(("127.0.0.1", 0))

    def alert() -> None:
        for _ in range(8):
            theirs, _address = listening.accept()
            theirs.recv(65536)
            theirs.sendall(b"\x15\x03\x01\x00\x02\x02\x46")  # what a TLS server says to plain HTTP
            theirs.close()

    threading.Thread(target=alert, daemon=True).start()
    with pytest.raises(ServerError, match="does not answer with HTTP") as told:
        playhead.load("@last", f"http://127.0.0.1:{listening.getsockname()[1]}")
    assert "https://" in told.value.hint
    listening.close()


@pytest.mark.parametrize(
    ("written", "shown", "target"),
    [
        ("http://localhost:4000/", "http://localhost:4000", "/api/x"),
        ("HTTPS://Host.example/playhead/", "https://host.example/playhead", "/playhead/api/x"),
        ("http://[::1]:4000", "http://[::1]:4000", "/api/x"),
        ("https://host:443/a%20b", "https://host/a%20b", "/a%20b/api/x"),
        ("http://host:80/api/", "http://host", "/api/x"),
    ],
)
def test_addresses_are_read_in_every_form(written: str, shown: str, target: str) -> None:
    address = read_address(written)
    assert (str(address), address.target("/api/x")) == (shown, target)
    assert read_address(str(address)) == address


@pytest.mark.parametrize("text", ["ftp://host", "host:4000", "http://", "http://a b", "http://u:p@host", "http://h:x"])
def test_what_is_no_address_is_refused_without_repeating_a_password(text: str) -> None:
    with pytest.raises(UsageError) as told:
        read_address(text)
    assert "u:p" not in str(told.value)


def test_errors_come_back_as_what_they_were() -> None:
    from playhead import errors
    from playhead.store.remote.refusals import _classes

    for kind in _classes().values():
        if kind.__module__.startswith("playhead.errors"):
            body = b'{"error":{"code":"%s","message":"m","hint":"h","detail":{"reasons":["x"]}}}' % kind.code.encode()
            made = refusal(body, 400, "a")
            assert (type(made), made.message, made.hint, made.code) == (kind, "m", "h", kind.code)
            assert made.as_dict()["error"]["detail"] == {"reasons": ["x"]}
    made = refusal(b'{"error":{"code":"not_replayable","message":"m","detail":{"a":1}}}', 409, "a")
    assert isinstance(made, NotReplayable)
    assert made.reasons == ["a"]
    assert isinstance(refusal(b'{"error":{"code":"tomorrow","message":"m"}}', 400, "a"), errors.ServerError)


def test_a_recorded_program_that_asks_a_server_does_not_record_that(served: Served, tmp_path: Path) -> None:
    program = (
        "import sys, playhead\n"
        "with playhead.record('asking', store='own') as run:\n"
        "    assert playhead.load('fix-login', sys.argv[1]).verify().integrity.verdict == 'intact'\n"
        "    with playhead.connect(sys.argv[1]) as client:\n"
        "        assert client.load('fix-login').playback() and client.runs(text='milk')\n"
        "        assert [event.kind for event in client.follow('fix-login')][-1] == 'run.finished'\n"
    )
    subprocess.run([sys.executable, "-c", program, served.address], check=True, cwd=tmp_path)
    said = [(event.kind, event.data) for event in playhead.load("@last", tmp_path / "own").events()]
    assert [kind for kind, _ in said] == ["run.started", "run.finished"], said
