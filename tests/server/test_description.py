"""Ask whatever the description of the API allows, and what it does not: Schemathesis makes it up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.otlp import JSON, exported, model_span, span, span_id, trace_id
from tests.server.serving import Server, make_key, until

_CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "unsupported_method", "ignored_auth",
)  # fmt: skip
# Answers without an end, bodies that Schemathesis cannot write, and what would lock it out: asked by hand elsewhere.
_LEFT_OUT = ("follow_run", "follow_runs", "append_lines", "make_key", "revoke_key")
_SHORT, _LONG = 2, 60


_OPEN, _KEYED = pytest.param(False, id="without keys"), pytest.param(True, id="with a key")
_HARD_OPEN = pytest.param(False, id="without keys", marks=pytest.mark.hard)
_HARD_KEYED = pytest.param(True, id="with a key", marks=pytest.mark.hard)


@pytest.fixture
def asked(store: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Server, str | None]]:
    keyed = request.getfixturevalue("keyed")
    token = make_key(store) if keyed else None
    with Server(store, "--quiet", "0.3", "--rate", "0") as server:
        yield server, token


def _fuzz(server: Server, token: str | None, folder: Path, examples: int, *more: str) -> None:
    command: list[str] = [
        str(Path(sys.executable).with_name("schemathesis")), *more, "run", f"{server.address}/openapi.json",
        "--checks", ",".join(_CHECKS), "--max-examples", str(examples), "--suppress-health-check", "all",
        "--request-timeout", "30", "--no-color", "--warnings", "off", "--workers", "1",
        *(part for name in _LEFT_OUT for part in ("--exclude-operation-id", name)),
    ]  # fmt: skip
    if examples == _SHORT:
        command += ["--generation-deterministic", "--phases", "examples,fuzzing"]
    else:
        command += ["--generation-database", "none"]
    if token is not None:
        command += ["--header", f"Authorization: Bearer {token}"]
    done = subprocess.run(  # what it says on a failure is how to ask the same again
        command, cwd=folder, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert "Traceback" not in server.log(), server.log()


def _filled(server: Server, token: str | None, folder: Path) -> Path:
    """Put something of each sort there, and let it be asked for."""
    client = server.client(token)
    trace = trace_id("described")
    spans = [model_span(trace, span_id("described 2"), span_id("described"), 1), span(trace, span_id("described"))]
    assert client.ask("POST", "/v1/traces", exported(spans), JSON).status == 200
    until(lambda: client.found("/api/runs", status="ok")["runs"])
    run = client.found("/api/runs")["runs"][0]["id"]
    cassette = client.post("/api/cassettes", {"run_id": run}).json()["id"]
    values = {"run": run, "seq": "2", "id": cassette, "name": "context_pack.json"}
    lines = ["[parameters]", *(f'"path.{name}" = "{value}"' for name, value in values.items())]
    lines += [f'"query.{name}" = "{run}"' for name in ("left", "right", "baseline")]
    file = folder / "schemathesis.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("keyed", [_OPEN, _HARD_KEYED])
def test_no_request_breaks_the_server_and_answers_are_as_described(
    asked: tuple[Server, str | None], tmp_path: Path, keyed: bool
) -> None:
    _fuzz(*asked, tmp_path, _SHORT)


@pytest.mark.parametrize("keyed", [_HARD_OPEN, _KEYED])
def test_no_request_for_what_is_there_breaks_the_server(
    asked: tuple[Server, str | None], tmp_path: Path, keyed: bool
) -> None:
    _fuzz(*asked, tmp_path, _SHORT, "--config-file", str(_filled(*asked, tmp_path)))


@pytest.mark.hard
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("keyed", [_OPEN, _KEYED])
def test_no_request_breaks_the_server_however_long_one_asks(
    asked: tuple[Server, str | None], tmp_path: Path, keyed: bool
) -> None:
    _fuzz(*asked, tmp_path, _LONG)
    _fuzz(*asked, tmp_path, _LONG, "--config-file", str(_filled(*asked, tmp_path)))
