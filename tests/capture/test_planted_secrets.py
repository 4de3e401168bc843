"""A hundred secrets and more, planted in every place that is recorded: none of them is on the disk afterwards.

Each place gets five secrets of its own: one of a known shape, one from the environment, one that the program made known,
one that only stands beside its name, and a JSON Web Token. To add a place, write a function that takes the five and
makes something record them, and put it into `PLACES`.
"""

from __future__ import annotations

import base64
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.capture.launching import launched
from tests.capture.redact_samples import letters

import playhead
from playhead.capture import redact
from playhead.capture.redact_known import _base64_cores


class Planted(NamedTuple):
    """Five secrets that stand nowhere else."""

    shape: str
    env: str
    said: str
    named: str
    jwt: str

    @classmethod
    def of(cls, number: int) -> Planted:
        return cls(
            shape="sk-proj-" + letters(48, seed=number) + "9zA",
            env="env7-" + letters(24, seed=1000 + number),
            said="said8" + letters(22, seed=2000 + number),
            named="nam3d" + letters(20, seed=3000 + number) + "x9",
            jwt="eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + letters(43, seed=4000 + number),
        )

    @property
    def text(self) -> str:
        return (
            f"use {self.shape}, then {self.env} or {self.said};\nexport DB_PASSWORD={self.named}\n"
            f"Authorization: Bearer {self.jwt}\n"
        )


class Failed(Exception):
    """Carries secrets in its message."""


# --- what an agent does by itself


def note(it: Planted) -> None:
    playhead.note(it.text, {"about": it.text, "password": it.named})


def prompt(it: Planted) -> None:
    with playhead.model_call(model="gpt-5", request={"messages": [{"role": "user", "content": it.text}]}) as call:
        call.respond({"choices": [{"message": {"content": "fine"}}]})


def answer(it: Planted) -> None:
    with playhead.model_call(model="gpt-5", request={"messages": []}) as call:
        call.respond({"choices": [{"message": {"content": it.text}}]})


def tool_argument(it: Planted) -> None:
    @playhead.tool
    def connect(dsn: str, password: str, token: str) -> str:
        return "ok"

    connect(f"postgres://me:{it.env}@db/x?token={it.jwt}", password=it.named, token=it.said)
    connect(it.text, password=it.shape, token="")


def tool_result(it: Planted) -> None:
    @playhead.tool
    def read_file(path: str) -> Any:
        return {"text": it.text, "json": json.dumps({"again": json.dumps({"text": it.text})})}

    read_file(".env")


def tool_error(it: Planted) -> None:
    @playhead.tool
    def fails() -> None:
        raise Failed(it.text) from ValueError(it.text)

    with pytest.raises(Failed):
        fails()


def step(it: Planted) -> None:
    with playhead.step(f"log in with {it.shape}") as span:
        span.set_attributes({"dsn": it.text, "api_key": it.named, "list": [it.said, it.env, {it.jwt: 1}]})


def policy_resource(it: Planted) -> None:
    playhead.check("network", resource=f"https://me:{it.env}@h/{it.said}?api_key={it.named}&k={it.shape}#{it.jwt}")


def artifact_content(it: Planted) -> None:
    playhead.artifact("notes.txt", it.text)
    playhead.artifact("notes.bin", b"\x00\xff" + it.text.encode() + b"\x00")


def artifact_gzip(it: Planted) -> None:
    playhead.artifact("notes.gz", gzip.compress(it.text.encode()))


def artifact_name(it: Planted) -> None:
    for secret in (it.shape, it.env, it.said, it.jwt):
        playhead.artifact(f"report-of-{secret}.txt", "x")
    playhead.artifact(f"password={it.named}.txt", "x")


def context_pack(it: Planted) -> None:
    playhead.context_pack({"files": {".env": it.text}, "secret": it.named})


def nested_run(it: Planted) -> None:
    with playhead.record("inner", input={"task": it.text, "api_key": it.named}) as inner:
        inner.output, inner.metadata = {"said": it.text}, {"key": it.text}


def encodings(it: Planted) -> None:
    """Only known values are found in other spellings: one of no shape, alone in base64, is like any other data."""
    known = f"{it.env}/{it.said}"
    for secret in (it.shape, it.jwt, it.named):
        playhead.add_secret(secret)
    text = it.text.encode()
    playhead.note(
        "encodings",
        {
            "base64": base64.b64encode(text).decode(),
            "twice": base64.b64encode(base64.b64encode(text)).decode(),
            "hex": text.hex(),
            "percent": "".join(f"%{byte:02X}" for byte in text),
            "packed": base64.b64encode(gzip.compress(text)).decode(),
            "url": urllib.request.quote(known, safe=""),
            "bytes": gzip.compress(text),
            "html": it.text.replace("&", "&amp;").replace("'", "&#39;"),
        },
    )


def run_output(it: Planted) -> None:
    """Put them where the run itself keeps what was asked and answered; see `recorded`."""


# --- what goes over the wire


class Handler(http.server.BaseHTTPRequestHandler):
    """Sends back what it was told to: plain, with gzip, or as a stream of single letters."""

    protocol_version = "HTTP/1.1"
    text = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("set-cookie", f"sid={self.text[4:40].replace(chr(10), '')}")
        if self.path.startswith("/gzip"):
            body = gzip.compress(json.dumps({"said": self.text}).encode())
            self.send_header("content-encoding", "gzip")
        elif self.path.startswith("/stream"):
            events = [json.dumps({"choices": [{"index": 0, "delta": {"content": one}}]}) for one in self.text]
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in events:
                self.wfile.write(f"data: {event}\n\n".encode())
                self.wfile.flush()
            self.close_connection = True
            return
        else:
            body = json.dumps({"said": self.text}).encode()
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def post(path: str, body: bytes = b"{}", headers: dict[str, str] | None = None, said: str = "") -> None:
    Handler.text = said
    request = urllib.request.Request(f"{SERVER['address']}{path}", body, headers or {}, method="POST")
    with urllib.request.urlopen(request, timeout=30) as response:
        response.read()


SERVER: dict[str, str] = {}


def header(it: Planted) -> None:
    for secret in it:
        post("/", headers={"X-Api-Key": secret, "X-Unheard-Of": secret, "Cookie": f"sid={secret}"})
    playhead.note("echo", list(it))


def bearer(it: Planted) -> None:
    for secret in it:
        post("/", headers={"Authorization": f"Bearer {secret}"})
        pair = base64.b64encode(f"me:{secret}".encode()).decode()
        post("/", headers={"Authorization": f"Basic {pair}"})
    playhead.note("echo", list(it))


def url_query(it: Planted) -> None:
    for secret in it:
        post(f"/?x=1&key={secret}&access_token={secret}&X-Amz-Signature={secret}")


def json_body(it: Planted) -> None:
    post("/", json.dumps({"password": it.named, "messages": [{"content": it.text}]}).encode())
    post(
        "/v1/chat/completions", json.dumps({"model": "m", "messages": [{"role": "user", "content": it.text}]}).encode()
    )


def form_body(it: Planted) -> None:
    for secret in it:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        post("/", f"user=me&client_secret={secret}".encode(), kind)
        kind = {"content-type": "multipart/form-data; boundary=XX"}
        post("/", f'--XX\r\nContent-Disposition: form-data; name="token"\r\n\r\n{secret}\r\n--XX--\r\n'.encode(), kind)


def answer_body(it: Planted) -> None:
    post("/", said=it.text)
    post("/v1/chat/completions", b'{"model":"m","messages":[]}', said=it.text)


def gzip_answer(it: Planted) -> None:
    post("/gzip", said=it.text)


def stream(it: Planted) -> None:
    post("/stream", said=it.text)


def model_stream(it: Planted) -> None:
    Handler.text = it.text
    post("/stream/v1/chat/completions", b'{"model":"m","stream":true,"messages":[]}', said=it.text)


PLACES: list[Callable[[Planted], None]] = [
    note, prompt, answer, tool_argument, tool_result, tool_error, step, policy_resource, artifact_content, artifact_gzip,
    artifact_name, context_pack, nested_run, encodings, run_output, header, bearer, url_query, json_body, form_body,
    answer_body, gzip_answer, stream, model_stream,
]  # fmt: skip


def spelled(secret: str) -> Iterator[bytes]:
    data = secret.encode()
    yield data
    yield data[:-4]  # nor most of it
    yield from (core.encode() for core in _base64_cores(data))
    yield from (data.hex().encode(), data.hex().upper().encode())
    yield "".join(f"%{byte:02X}" for byte in data).encode()
    yield json.dumps(secret)[1:-1].encode()


def found_in(root: Path, secrets: list[str]) -> list[str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    assert files
    wrong = []
    for path in files:
        data = str(path).encode() + path.read_bytes()
        data += gzip.decompress(path.read_bytes()) if path.read_bytes()[:2] == b"\x1f\x8b" else b""
        wrong += [f"{secret} in {path}" for secret in secrets if any(form in data for form in spelled(secret))]
    return wrong


@pytest.fixture(autouse=True)
def nothing_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_said", {})


@pytest.fixture
def server() -> Iterator[None]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        SERVER["address"] = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield
        listening.shutdown()
        thread.join()


def recorded(planted: dict[str, Planted], monkeypatch: pytest.MonkeyPatch) -> None:
    for number, it in enumerate(planted.values()):
        monkeypatch.setenv(f"SERVICE_{number}_API_KEY", it.env)
        playhead.add_secret(it.said)
    mine = planted["run_output"]
    with playhead.record("planted", input={"task": mine.text, "password": mine.named}, tags={"dsn": mine.text}) as run:
        for place in PLACES:
            place(planted[place.__name__])
        run.output, run.metadata = {"text": mine.text}, {"list": list(mine), "password": mine.named}


def test_secrets_planted_in_every_place_are_nowhere_on_the_disk(
    server: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planted = {place.__name__: Planted.of(number) for number, place in enumerate(PLACES)}
    secrets = [secret for it in planted.values() for secret in it]
    assert len(secrets) >= 100
    assert len(planted) >= 20
    recorded(planted, monkeypatch)
    run = playhead.load("@last")
    assert run.verify().completeness.verdict == "complete"
    kinds = [event.kind for event in run.events()]
    assert kinds.count("http.sent") + kinds.count("model.invoked") >= 30, "nothing was looked through"
    assert len(list(run.events())[-1].data["redacted"]) >= 8
    wrong = found_in(tmp_path / ".playhead", secrets)
    assert not wrong, "\n".join(wrong)


def test_secrets_of_a_program_that_is_recorded_from_outside_are_nowhere_on_the_disk(tmp_path: Path) -> None:
    planted = [Planted.of(500 + number) for number in range(4)]
    variables = {f"OUTER_{number}_TOKEN": it.env for number, it in enumerate(planted)}
    arguments, out, error, traceback = planted
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        f"sys.stdout.write({out.text!r})\nsys.stdout.flush()\n"
        f"os.write(1, {out.shape[:20]!r}.encode()); os.write(1, {out.shape[20:]!r}.encode())\n"
        f"sys.stderr.write({error.text!r})\n"
        f"raise RuntimeError({traceback.text!r})\n"
    )
    argv = [sys.executable, str(program), "--password", arguments.named, f"--token={arguments.shape}", arguments.env]
    argv += ["-H", f"Authorization: Bearer {arguments.jwt}"]
    store = tmp_path / "store"
    code, _, _ = launched(store, argv, env=variables)
    assert code == 1
    said = {it.said for it in planted}  # nobody made those known in that process
    wrong = found_in(store, [secret for it in planted for secret in it if secret not in said])
    assert not wrong, "\n".join(wrong)


# How a program's process comes to know a secret that it writes right after, with no event in between. `SECRET` is one
# without a shape. Each is a program of its own; `say` writes to stdout, and `sys.stderr` is the other way out.
LEARNED = {
    "variable set": "os.environ['MY_SERVICE_TOKEN'] = SECRET; say(SECRET)",
    "variables from a file": "os.environ.update({'A': '1', 'DB_PASSWORD': SECRET}); say(SECRET)",
    "variable as bytes": "os.environb[b'MY_SERVICE_TOKEN'] = SECRET.encode(); say(SECRET)",
    "made known": "playhead.add_secret(SECRET); say(SECRET)",
    "made known, with blanks": "playhead.add_secret('correct horse ' + SECRET); say('correct horse ' + SECRET)",
    "made known, over two lines": "playhead.add_secret('one\\n' + SECRET); say('one\\n' + SECRET)",
    "key of a request": "post({'Authorization': 'Bearer ' + SECRET}); say(SECRET)",
    "parameter of a request": "post({}, '?api_key=' + SECRET); say(SECRET)",
    "field": "playhead.note('x', {'password': SECRET}); say(SECRET)",
    "in a traceback": "post({'X-Api-Key': SECRET}); raise RuntimeError(SECRET)",
    "in a thread": "t = threading.Thread(target=lambda: (playhead.add_secret(SECRET), say(SECRET))); t.start(); t.join()",
    "after a fork": "pid = os.fork()\nif not pid: playhead.add_secret(SECRET); say(SECRET); os._exit(0)\nos.wait()",
    "by a Python it starts": "subprocess.run([sys.executable, '-c', CHILD])",
    "by a Python of a shell": "os.system(f'{sys.executable} -c {shlex.quote(CHILD)}')",
    "by a Python with an environment of its own": (
        "code = 'import os; print(os.environ[\"GIVEN_TOKEN\"])'\n"
        "subprocess.run([sys.executable, '-c', code], env={'GIVEN_TOKEN': SECRET})"
    ),
    "by a process that is spawned": (
        "multiprocessing.get_context('spawn').Process(target=exec, args=(CHILD,)).start()"
        " if __name__ == '__main__' else None"
    ),
    "by another program in its place": "os.execv(sys.executable, [sys.executable, '-c', CHILD])",
    "by a program that is recorded inside": (
        "subprocess.run([sys.executable, '-m', 'playhead', 'record', '--quiet', '--', sys.executable, '-c', CHILD])"
    ),
}
_PROGRAM = """
import multiprocessing, os, shlex, subprocess, sys, threading, urllib.request
import playhead
SECRET = "".join(sys.argv[2:]) if __name__ == "__main__" else ""
CHILD = f"import os; s = ''.join({sys.argv[2:]}); os.environ['CHILD_TOKEN'] = s; os.write(1, s.encode() + b'.')"
def say(text): os.write(1, text.encode() + b"\\n"); sys.stderr.write(f"it is {text}\\n")
def post(headers, query=""):
    urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/" + query, b"{}", headers, method="POST")).read()
"""


@pytest.mark.parametrize("way", LEARNED)
def test_what_a_program_learned_to_be_secret_is_redacted_in_what_it_writes(
    server: None, tmp_path: Path, way: str
) -> None:
    secret = "learn3d" + letters(20, seed=7000 + list(LEARNED).index(way)) + "x9"
    program, store = tmp_path / "program.py", tmp_path / "store"
    program.write_text(_PROGRAM + LEARNED[way] + "\n")
    argv = [sys.executable, str(program), SERVER["address"], secret[:9], secret[9:18], secret[18:]]
    _, out, err = launched(store, argv)
    assert secret in (out + err).decode(), "it was not written at all"
    wrong = found_in(store, [secret])
    assert not wrong, "\n".join(wrong)
    assert found_in(store, ["process.exited"]), "and the rest is there"


@pytest.mark.usefixtures("with_git")
def test_secrets_in_the_working_tree_are_nowhere_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    it = Planted.of(600)
    monkeypatch.setenv("TREE_TOKEN", it.env)
    playhead.add_secret(it.said)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (project / "settings.env").write_text("A=1\n")
    subprocess.run(["git", "add", "-A"], check=True, capture_output=True)
    (project / "settings.env").write_text(it.text)
    with playhead.record("tree"):
        (project / "more.env").write_text(it.text)
        for command in (["add", "-A"], ["commit", "-q", "-m", f"Use {it.shape}"]):
            subprocess.run([*git, *command], check=True, capture_output=True, env={**os.environ})
    wrong = found_in(project / ".playhead", list(it))
    assert not wrong, "\n".join(wrong)


def test_a_value_that_the_program_makes_known_is_redacted_in_every_run_from_then_on(tmp_path: Path) -> None:
    with playhead.record("one"):
        playhead.add_secret("quite-ordinary-words")
        playhead.note("say quite-ordinary-words")
    with playhead.record("two"):
        playhead.note("say quite-ordinary-words")
    assert not found_in(tmp_path / ".playhead", ["quite-ordinary-words"])
    assert list(playhead.load("two").events())[-1].data["redacted"] == {"known": 1}


def test_a_variable_that_is_set_is_known_before_the_next_event_and_the_environment_is_as_before_after_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = os._Environ.__setitem__
    with playhead.record("one") as run:
        assert run.recording is not None
        monkeypatch.setenv("LATE_TOKEN", "set-while-it-is-open")
        monkeypatch.setenv("LATE_FILE", "not-a-secret-at-all")
        redactor = run.recording.redactor
        assert redactor.redact_text("set-while-it-is-open not-a-secret-at-all", {}) == (
            "[redacted:env] not-a-secret-at-all"
        )
    assert os._Environ.__setitem__ is before


def test_a_value_that_is_too_short_to_look_for_is_refused_with_a_warning() -> None:
    with pytest.warns(playhead.RecordingWarning, match="8 characters"):
        playhead.add_secret("short")
