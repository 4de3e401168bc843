"""Start each server at its defaults, and ask each the same things in its own words.

Telemetry is off, the folder is new and its own; nothing else is tuned, neither up nor down.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from bench.peers.client import Client, Question
from bench.peers.environments import environments
from bench.peers.process import Process, ServerFailed, disk_bytes
from tests.matrix.environments import ROOT

Asked = Literal["list", "errors", "text"]
LISTED = 100
_SETTLED_S_MAX = 120
# What closes a span, and was read into the index: the same that is counted of the peers, in their databases.
_SPANS_OF_ALL_RUNS = (
    "SELECT count(*) AS spans FROM events WHERE kind IN ('model.responded', 'tool.returned', 'step.finished')"
)


class Server:
    """One server with a data folder of its own; used as a context it is stopped. The folder goes when all is done.

    Not before: for some minutes ext4 gives out no inode that was just deleted, and looks at each of them whenever a
    file is made. The store of one round would slow down the next.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    ready_path: ClassVar[str] = "/health"
    headers: ClassVar[dict[str, str]] = {}
    answers_questions: ClassVar[bool] = True

    def __init__(self) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-"))
        self.folder = self._scratch / "data"
        (self._scratch / "tmp").mkdir()
        self.folder.mkdir()
        self._process: Process | None = None
        self.port = 0

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
        atexit.register(shutil.rmtree, self._scratch, ignore_errors=True)

    def start(self) -> float:
        """Start it and return how many seconds passed until it answered."""
        self.port = _free_port()
        start = time.perf_counter()
        self._process = Process(self.command(), self._variables(), self.folder, self._scratch / "log")
        try:
            self._process.wait_until_ready(self.port, self.ready_path)
        except ServerFailed as error:
            raise ServerFailed(f"{self.label}: {error}") from None
        return time.perf_counter() - start

    def stop(self) -> int:
        """Stop it and return how many bytes it keeps."""
        self._running.stop()
        self._process = None
        return disk_bytes(self.folder)

    def kill(self) -> None:
        """Kill it and all its processes."""
        self._running.kill()
        self._process = None

    def memory_bytes(self) -> int:
        """Return what all its processes hold in memory."""
        return self._running.memory_bytes()

    def client(self) -> Client:
        """Open a connection to it."""
        return Client(self.port)

    def last_words(self) -> str:
        """Return the end of what it printed."""
        return self._running.last_words()

    def command(self) -> list[str]:
        """Return what starts it."""
        raise NotImplementedError

    def settings(self) -> dict[str, str]:
        """Return the environment variables that it reads."""
        return {}

    def spans(self) -> int:
        """Return how many spans can be asked for now."""
        raise NotImplementedError

    def settle(self) -> None:
        """Wait until it has done what it does in the background, and will take space."""

    def spans_after_kill(self) -> int:
        """Return how many spans are still there after it was killed."""
        return self.spans()

    def question(self, asked: Asked, word: str = "") -> Question:
        """Return how it is asked for its newest runs, those that failed, or those that hold a word."""
        raise NotImplementedError

    def found(self, answer: bytes) -> int:
        """Return how many runs (or spans) an answer names."""
        raise NotImplementedError

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise ServerFailed(f"{self.label} does not run")
        return self._process

    def _variables(self) -> dict[str, str]:
        dropped = ("PLAYHEAD_", "PHOENIX_", "MLFLOW_", "OTEL_", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        home = {"HOME": str(self._scratch), "TMPDIR": str(self._scratch / "tmp"), "DO_NOT_TRACK": "true"}
        return kept | home | self.settings()


class Playhead(Server):
    """Playhead, from this checkout."""

    name = "playhead"
    label = "Playhead"

    @staticmethod
    def can_serve() -> bool:
        """Say whether this checkout has the command."""
        asked = [sys.executable, "-m", "playhead", "serve", "--help"]
        return subprocess.run(asked, capture_output=True, cwd=ROOT, check=False).returncode == 0

    def command(self) -> list[str]:
        return [sys.executable, "-m", "playhead", "serve", "--port", str(self.port), "--store", str(self.folder)]

    def settings(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT / "src")}

    def spans(self) -> int:
        with closing(self.client()) as client:
            question = _json_question("/api/query", {"sql": _SPANS_OF_ALL_RUNS})
            ((spans,),) = json.loads(client.ask(question))["rows"]
        return int(spans)

    def settle(self) -> None:
        deadline = time.monotonic() + _SETTLED_S_MAX
        lines = _asked(self.folder / "playhead.db", "SELECT count(*) FROM events")
        while _asked(self.folder / "search.db", "SELECT ifnull(sum(lines), 0) FROM runs") < lines:
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.label} has not read all words\n{self.last_words()}")
            time.sleep(0.1)

    def spans_after_kill(self) -> int:
        # What survived is what it shows when it is started again.
        self.start()
        return self.spans()

    def question(self, asked: Asked, word: str = "") -> Question:
        chosen = {"list": "", "errors": "status=error&", "text": f"q={word}&"}[asked]
        return Question("GET", f"/api/runs?{chosen}limit={LISTED}")

    def found(self, answer: bytes) -> int:
        return len(json.loads(answer)["runs"])


class Phoenix(Server):
    """Arize Phoenix with its default database, SQLite."""

    name = "phoenix"
    label = "Phoenix"
    ready_path = "/healthz"
    _SPANS: ClassVar = (
        "query ($project: ID!, $condition: String) { node(id: $project) { ... on Project {"
        " spans(first: 100, filterCondition: $condition)"
        " { edges { node { id name statusCode startTime trace { traceId } } } } } } }"
    )

    def __init__(self) -> None:
        super().__init__()
        self._project = ""

    def command(self) -> list[str]:
        return [str(environments()["phoenix"].folder / "bin" / "phoenix"), "serve"]

    def settings(self) -> dict[str, str]:
        return {
            "PHOENIX_WORKING_DIR": str(self.folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(_free_port()),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }

    def spans(self) -> int:
        return _rows(self.folder / "phoenix.db", "spans")

    def question(self, asked: Asked, word: str = "") -> Question:
        traces = f"/v1/projects/default/traces?limit={LISTED}&sort=start_time&order=desc"
        if asked == "list":
            return Question("GET", traces)
        if asked == "errors":
            return Question("GET", f"{traces}&filter={quote('error_count > 0')}")
        # Its REST interface has no search for text; this is the condition its page offers. One attribute is searched,
        # not all as by the others: in its favour.
        variables = {"project": self._project_id(), "condition": f"'{word}' in output.value"}
        return _json_question("/graphql", {"query": self._SPANS, "variables": variables})

    def found(self, answer: bytes) -> int:
        data = json.loads(answer)["data"]
        return len(data if isinstance(data, list) else data["node"]["spans"]["edges"])

    def _project_id(self) -> str:
        if not self._project:
            with closing(self.client()) as client:
                asked = {"query": "{ projects { edges { node { id name } } } }"}
                edges = json.loads(client.ask(_json_question("/graphql", asked)))["data"]["projects"]["edges"]
            (self._project,) = [edge["node"]["id"] for edge in edges if edge["node"]["name"] == "default"]
        return self._project


class Mlflow(Server):
    """MLflow's server on SQLite, with as many workers as it starts by itself."""

    name = "mlflow"
    label = "MLflow"
    headers = {"x-mlflow-experiment-id": "0"}

    def command(self) -> list[str]:
        program = environments()["mlflow"].folder / "bin" / "mlflow"
        database = f"sqlite:///{self.folder / 'mlflow.db'}"
        return [str(program), "server", "--backend-store-uri", database, "--port", str(self.port)]

    def settings(self) -> dict[str, str]:
        return {"MLFLOW_DISABLE_TELEMETRY": "true"}

    def spans(self) -> int:
        return _rows(self.folder / "mlflow.db", "spans")

    def question(self, asked: Asked, word: str = "") -> Question:
        where = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
        body: dict[str, Any] = {"locations": [where], "max_results": LISTED, "order_by": ["timestamp_ms DESC"]}
        if asked == "errors":
            body["filter"] = "attributes.status = 'ERROR'"
        elif asked == "text":
            body["filter"] = f"trace.text LIKE '%{word}%'"
        return _json_question("/api/3.0/mlflow/traces/search", body)

    def found(self, answer: bytes) -> int:
        return len(json.loads(answer).get("traces", []))


class Floor(Server):
    """The least that takes OTLP and keeps it."""

    name = "floor"
    label = "the floor"
    answers_questions = False

    def command(self) -> list[str]:
        program = Path(__file__).with_name("floor.py")
        return [str(environments()["floor"].python), str(program), str(self.port), str(self.folder)]

    def spans(self) -> int:
        with closing(self.client()) as client:
            return int(client.ask(Question("GET", "/count")))

    def spans_after_kill(self) -> int:
        self.start()
        return self.spans()


SERVERS: dict[str, type[Server]] = {kind.name: kind for kind in (Floor, Playhead, Phoenix, Mlflow)}


def _rows(database: Path, table: str) -> int:
    """Count what is in a peer's database. Its own interface would be slower: in its favour."""
    return _asked(database, f"SELECT count(*) FROM {table}")


def _asked(database: Path, sql: str) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as connection:
        return int(connection.execute(sql).fetchone()[0])


def _json_question(path: str, body: dict[str, Any]) -> Question:
    return Question("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
