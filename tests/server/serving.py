"""Start a real server in a process of its own, ask it over loopback, and end it in every way there is."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

T = TypeVar("T")
_START_S = 60


class Told(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        """Return the body as strict JSON."""
        return json.loads(self.body, parse_constant=_no_constant)

    @property
    def error(self) -> dict[str, Any]:
        """Return what is said of an error, which has one shape wherever it comes from."""
        assert self.headers["content-type"] == "application/json", (self.status, self.headers, self.body[:200])
        document = self.json()
        assert document.keys() == {"error"}
        found: dict[str, Any] = document["error"]
        assert found.keys() >= {"code", "message", "hint", "detail"}, found
        assert type(found["code"]) is str
        assert type(found["message"]) is str
        assert type(found["hint"]) is str
        return found


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


class Client:
    """Ask one server over one connection, which is made anew when it broke. For one thread."""

    def __init__(self, address: str, token: str | None = None, *, timeout_s: float = 60) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self.token = token
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Told:
        """Send one request as it is, and return the answer. OSError where there is no server, or it died meanwhile."""
        if query:
            path += "?" + urlencode(query)
        given = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        reused = self._connection is not None
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self.host, self.port, timeout=self._timeout_s)
        try:
            self._connection.request(method, path, body, {**given, **(headers or {})})
            answer = self._connection.getresponse()
            told = Told(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            if reused and isinstance(problem, http.client.RemoteDisconnected | BrokenPipeError | ConnectionResetError):
                return self.ask(method, path, body, headers)  # closed while nobody used it
            raise
        if answer.will_close:
            self.close()
        return told

    def get(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Told:
        """Ask for something."""
        return self.ask("GET", path, None, headers, **query)

    def post(self, path: str, document: Any, **query: Any) -> Told:
        """Send JSON."""
        return self.ask("POST", path, json.dumps(document).encode(), {"Content-Type": "application/json"}, **query)

    def found(self, path: str, **query: Any) -> Any:
        """Return what must be there."""
        told = self.get(path, **query)
        assert told.status == 200, (path, query, told)
        return told.json()

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Server:
    """`playhead serve` as anybody starts it."""

    def __init__(self, store: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        self.store = store
        self._arguments = arguments
        self._variables = {**os.environ, "PLAYHEAD_GIT": "0", **(variables or {})}
        self.address = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._log.close()

    def start(self) -> None:
        """Start it, and wait until it says where it listens."""
        command = [sys.executable, "-m", "playhead", "serve", "--port", "0", "--json", "--store", str(self.store)]
        self.process = subprocess.Popen(
            [*command, *self._arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, env=self._variables,
        )  # fmt: skip
        assert self.process.stdout is not None
        said = b""
        while not said.endswith(b"}\n"):
            line = self.process.stdout.readline()
            assert line, self.log()
            said += line
        self.address = json.loads(said)["address"]

    def client(self, token: str | None = None, *, timeout_s: float = 60) -> Client:
        """Return what asks it."""
        return Client(self.address, token, timeout_s=timeout_s)

    def kill(self) -> None:
        """End it as `kill -9` does: nothing of it runs any more."""
        assert self.process is not None
        self.process.kill()
        self._reap()

    def stop(self, number: int = signal.SIGTERM, *, wait_s: float = 60) -> int:
        """Tell it to end, and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(wait_s)
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        code = self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    @property
    def pid(self) -> int:
        """Return the number of its process."""
        assert self.process is not None
        return self.process.pid

    def log(self) -> str:
        """Return what it wrote to stderr so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def processes(self) -> list[int]:
        """Return the numbers of all its processes, its own first."""
        return [self.pid, *children(self.pid)]

    def memory_bytes(self, field: str = "VmRSS") -> int:
        """Return how much memory all its processes have; `VmHWM` is the most that each ever had."""
        return sum(_memory_bytes(pid, field) for pid in self.processes())

    def forget_peak(self) -> None:
        """Let `VmHWM` begin anew."""
        for pid in self.processes():
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def children(pid: int) -> list[int]:
    """Return the processes that one has started."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _memory_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


def until(found: Callable[[], T], *, wait_s: float = 30, every_s: float = 0.05) -> T:
    """Return what is found, once it is something."""
    end = time.monotonic() + wait_s
    while True:
        what = found()
        if what:
            return what
        assert time.monotonic() < end, f"nothing within {wait_s} s"
        time.sleep(every_s)


def make_key(store: Path, project: str = "default", *scopes: str, expires_us: int | None = None) -> str:
    """Make a key as `playhead keys create` does, beside a server that may be running."""
    from playhead.store.registry.database import Registry
    from playhead.store.registry.keys import Keys

    with Registry(store) as registry:
        return Keys(registry).create(project, scopes or ("admin",), None, expires_us).token


def playhead(*arguments: str) -> tuple[int, Any]:
    """Call the command line, and return its exit code and its JSON."""
    from tests.warm import playhead as called

    done = called(Path.cwd(), *arguments, "--json")
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


def in_path(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")


def verified(client: Client, runs: Sequence[str], *, torn: bool = False) -> None:
    """Make sure that runs are intact and complete; `torn` allows for lines that a kill cut, which is noted as a loss."""
    for run in runs:
        found = client.found(f"/api/runs/{in_path(run)}/verify", deep="true")
        assert found["integrity"]["verdict"] == "intact", found
        if not torn or found["gaps"].keys() != {"torn_tail"}:
            assert found["completeness"]["verdict"] == "complete", found
