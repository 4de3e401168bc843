"""What is left alone: hosts by any of their names and addresses, with or without a port."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from playhead.capture import answering


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/x"),
        ("127.0.0.1:8000", "http://localhost:8000/x"),
        ("localhost", "http://[::1]:8000/x"),
        ("[::1]:8000", "http://127.0.0.1:8000/x"),
        ("example.org", "https://example.org/x:y"),
        ("example.org", "https://someone:secret@EXAMPLE.org"),
    ],
)
def test_a_server_is_known_by_any_of_its_names(allowed: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "left_alone", frozenset([allowed]))
    assert answering.is_left_alone(url)
    assert not answering.is_left_alone("https://elsewhere.org:8000/127.0.0.1")


def test_a_name_is_connected_to_by_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, port: Any) -> list[Any]:
        return [(2, 1, 6, "", ("192.0.2.7", 0))] if name == "db.example" else []

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(answering, "left_alone", frozenset(["db.example:5432"]))
    answering._addresses.cache_clear()
    assert answering.leaves_alone("192.0.2.7", 5432)
    assert not answering.leaves_alone("192.0.2.7", 5433)
    assert not answering.leaves_alone("192.0.2.8", 5432)
    answering._addresses.cache_clear()
