from __future__ import annotations

import pytest

from playhead.views.audit.addresses import destination, is_local


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.example.com/v1", "api.example.com:443"),
        ("http://Example.com.:8080?x", "example.com:8080"),
        ("https://good.com@evil.com/", "evil.com:443"),
        ("https://[redacted:url-secret]@evil.com/", "evil.com:443"),
        ("https://user:pa:ss@[::1]:9/", "[::1]:9"),
        ("wss://h/x", "h:443"),
        ("ftp://h", "h"),
        ("no address", "no address"),
        ("http://", ":80"),
        ("http://[::1", "[::1:80"),
    ],
)
def test_a_destination_is_host_and_port_whatever_the_address_looks_like(url: str, place: str) -> None:
    assert destination(url) == place


@pytest.mark.parametrize(
    "place", ["127.0.0.1:80", "127.9.9.9:1", "[::1]:80", "localhost:80", "a.localhost", "/run/x.sock", "@x"]
)
def test_this_machine_is_local(place: str) -> None:
    assert is_local(place)


@pytest.mark.parametrize(
    "place", ["0.0.0.0:80", "10.0.0.1:80", "localhost.evil.com:80", "[fe80::1%lo]:80", "", "127.0.0.1.evil.com"]
)
def test_another_one_is_not(place: str) -> None:
    assert not is_local(place)
