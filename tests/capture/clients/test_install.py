"""Patches are there while a run is open, and everything is as it was afterwards."""

from __future__ import annotations

import http.client
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

PATCHED: list[tuple[Any, str]] = [
    (http.client.HTTPConnection, "endheaders"),
    (http.client.HTTPConnection, "send"),
    (http.client.HTTPConnection, "getresponse"),
    (http.client.HTTPConnection, "close"),
    (http.client.HTTPResponse, "begin"),
    (urllib3.connectionpool.HTTPConnectionPool, "urlopen"),
    (urllib3.connectionpool.HTTPSConnectionPool, "_validate_conn"),
    (urllib3.connectionpool.HTTPSConnectionPool, "_prepare_proxy"),
    (aiohttp.ClientRequest, "send"),
    (aiohttp.ClientSession, "_ws_connect"),
    (aiohttp.connector.BaseConnector, "connect"),
    (aiohttp.connector.BaseConnector, "_release"),
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
