"""Transports that nobody can see into are named when they are used.

grpcio and curl_cffi are heavy: what is patched here has the names and the arguments of the real ones.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import playhead
from playhead.capture.clients import unseen
from playhead.capture.patches import Patches


class _UnaryUnaryMultiCallable:
    def __init__(self, method: bytes) -> None:
        self._method, self._target = method, b"models.example:443"

    def __call__(self, request: Any, timeout: float | None = None) -> Any:
        return request, timeout

    def future(self, request: Any) -> Any:
        return request


class Session:
    def request(self, method: str, url: str, **options: Any) -> Any:
        return method, url, options


class AsyncSession:
    async def request(self, method: str, url: str) -> Any:
        return method, url


@pytest.fixture
def patched() -> Any:
    channel, session = ModuleType("grpc._channel"), ModuleType("curl_cffi.requests.session")
    for module, kinds in ((channel, [_UnaryUnaryMultiCallable]), (session, [Session, AsyncSession])):
        for kind in kinds:
            setattr(module, kind.__name__, kind)
    _UnaryUnaryMultiCallable.__module__ = channel.__name__
    before = {kind: dict(kind.__dict__) for kind in (_UnaryUnaryMultiCallable, Session, AsyncSession)}
    patches = Patches()
    unseen.patch(channel, patches)
    unseen.patch(session, patches)
    yield
    patches.restore()
    assert {kind: dict(kind.__dict__) for kind in before} == before


def gaps() -> list[Any]:
    return [
        (event.data["detail"]["source"], event.data["detail"]["where"].partition(" at ")[0])
        for event in playhead.load("@last").events()
        if event.kind == "gap.noted"
    ]


def test_a_call_over_grpc_is_named_once_and_telemetry_is_not(patched: None) -> None:
    with playhead.record("calls"):
        ask = _UnaryUnaryMultiCallable(b"/google.ai.Generative/Ask")
        assert gaps_so_far() == []
        assert (ask("a", timeout=1.0), ask.future("b")) == (("a", 1.0), "b")
        _UnaryUnaryMultiCallable(b"/opentelemetry.proto.collector.trace.v1.TraceService/Export")("spans")
    assert gaps() == [("grpc", "models.example:443/google.ai.Generative/Ask")]


def gaps_so_far() -> list[Any]:
    return [event for event in playhead.load("@last").events() if event.kind == "gap.noted"]


def test_a_request_by_curl_is_named_once_for_each_host(patched: None) -> None:
    with playhead.record("calls"):
        assert Session().request("GET", "https://user:word@host.example/a?key=1", timeout=3)[2] == {"timeout": 3}
        Session().request("GET", "https://host.example/another")
        coroutine = AsyncSession().request("POST", "https://host.example:444/b")
        with pytest.raises(StopIteration, match="host"):
            coroutine.send(None)
        Session().request(
            "POST", "https://collector.example/v1/traces", headers={"Content-Type": "application/x-protobuf"}
        )
    assert gaps() == [("curl_cffi", "https://host.example"), ("curl_cffi", "https://host.example:444")]
    assert Session().request("GET", "https://host.example/") == ("GET", "https://host.example/", {})
