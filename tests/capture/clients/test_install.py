"""Patches are there while a run is open, and everything is as it was afterwards."""

from __future__ import annotations

import http.client
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.client_proto
import aiohttp.connector
import aiohttp.http_writer
import pytest
import urllib3.connectionpool
import websocket
import websockets.client

import playhead
from playhead.capture import clients

CAPTURE = Path(clients.__file__).parent.parent
PATCHED: list[tuple[Any, str]] = [
    (http.client.HTTPConnection, "connect"),
    (http.client.HTTPSConnection, "connect"),
    (http.client.HTTPConnection, "endheaders"),
    (http.client.HTTPConnection, "send"),
    (http.client.HTTPConnection, "getresponse"),
    (http.client.HTTPConnection, "close"),
    (http.client.HTTPResponse, "begin"),
    (urllib3.connectionpool.HTTPConnectionPool, "urlopen"),
    (urllib3.connectionpool.HTTPSConnectionPool, "_validate_conn"),
    (urllib3.connectionpool.HTTPSConnectionPool, "_prepare_proxy"),
    (urllib3.connection.HTTPConnection, "connect"),
    (urllib3.connection.HTTPSConnection, "connect"),
    (aiohttp.ClientRequest, "send"),
    (aiohttp.ClientSession, "_ws_connect"),
    (aiohttp.connector.BaseConnector, "connect"),
    (aiohttp.connector.BaseConnector, "_release"),
    (aiohttp.connector.BaseConnector, "_create_connection"),
    (aiohttp.connector.TCPConnector, "_create_connection"),
    (aiohttp.connector.UnixConnector, "_create_connection"),
    (aiohttp.helpers.TimeoutHandle, "start"),
    (aiohttp.client_proto.ResponseHandler, "data_received"),
    (aiohttp.client_proto.ResponseHandler, "connection_lost"),
    (aiohttp.http_writer.StreamWriter, "write_headers"),
    (aiohttp.http_writer.StreamWriter, "_write"),
    (websockets.client.ClientProtocol, "connect"),
    (websocket.WebSocket, "connect"),
]


@pytest.mark.parametrize(("owner", "name"), PATCHED, ids=lambda part: getattr(part, "__name__", part))
def test_an_attribute_is_patched_during_a_run_and_restored_by_identity(owner: Any, name: str) -> None:
    before = owner.__dict__[name]
    with playhead.record("outer"), playhead.record("inner"):
        during = owner.__dict__[name]
    assert during is not before
    assert during.__wrapped__ is before
    assert owner.__dict__[name] is before


def test_nothing_that_a_run_does_not_name_is_touched() -> None:
    owners = {owner for owner, _ in PATCHED}
    before = {owner: dict(owner.__dict__) for owner in owners}
    with playhead.record("run"):
        changed = {
            (owner, name)
            for owner in owners
            for name, value in before[owner].items()
            if owner.__dict__[name] is not value
        }
    assert changed - {(aiohttp.http_writer.StreamWriter, "_writelines")} == set(PATCHED)
    assert all(dict(owner.__dict__) == before[owner] for owner in owners)


def test_each_part_is_loaded_for_the_modules_that_it_knows() -> None:
    for part, names in clients.WATCHED.items():
        assert names == importlib.import_module(f"playhead.capture.{part}").MODULES
    files = {path for folder in ("clients", "frameworks", "processes") for path in (CAPTURE / folder).glob("*.py")}
    with_modules = {f"{path.parent.name}.{path.stem}" for path in files if "\nMODULES = " in path.read_text("utf-8")}
    assert with_modules == set(clients.WATCHED)


def test_a_run_loads_no_part_for_a_library_that_is_not_there(tmp_path: Path) -> None:
    code = (
        "import sys, playhead\n"
        "with playhead.record('bare'): pass\n"
        "parts = ('playhead.capture.clients.', 'playhead.capture.frameworks.')\n"
        "print(*(name for name in sys.modules if name.startswith(parts) and 'http1' not in name and 'http_client' not in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PLAYHEAD_GIT": "0"},
    )
    assert done.stdout.strip() == ""
