from __future__ import annotations

import pytest

from playhead.policy.hosts import fits_host, host_of, problem_of


@pytest.mark.parametrize(
    "name",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]:80", "http://user:pass@127.0.0.1/", "http://x@2130706433:80/y", "127.0.0.1."],
)  # fmt: skip
def test_an_address_is_known_in_every_form(name: str) -> None:
    assert host_of(name).name == "127.0.0.1"


def test_hosts_have_one_name() -> None:
    for name in (
        "API.Example.com",
        "api.example.com.",
        "https://good.com@api.example.com/",
        "//x@api.example.com".removeprefix("//"),
    ):
        assert host_of(name).name == "api.example.com"
    assert host_of("https://bücher.example/").name == "xn--bcher-kva.example"
    assert host_of("https://api.example.com/").port == 443
    assert host_of("http://api.example.com:8080/").port == 8080
    assert host_of("[::1]:80") == ("::1", 80)
    assert str(host_of("[::1]:80")) == "[::1]:80"


@pytest.mark.parametrize(
    ("pattern", "host", "fits"),
    [
        ("api.example.com", "https://api.example.com/v1", True),
        ("api.example.com:443", "https://api.example.com/v1", True),
        ("api.example.com:443", "http://api.example.com/v1", False),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "evilexample.com", False),
        ("api.example.com", "api.example.com.evil.org", False),
        ("api.example.com", "https://api.example.com@evil.org/", False),
        ("api.example.com", "https://evil.org/api.example.com", False),
        ("10.0.0.0/8", "10.1.2.3:80", True),
        ("10.0.0.0/8", "167838211", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("::1", "[::1]:80", True),
        ("*:443", "example.com:443", True),
        ("*:443", "example.com:80", False),
        ("*", "example.com:80", True),
        ("bücher.example", "xn--bcher-kva.example", True),
        ("exаmple.com", "example.com", False),  # with a Cyrillic letter
    ],
)
def test_patterns_of_hosts(pattern: str, host: str, fits: bool) -> None:
    assert fits_host(pattern, host_of(host)) is fits


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        ("127.0.0.1", "0.0.0.0:80"),
        ("127.0.0.1", "[::]:80"),
        ("127.0.0.1", "localhost"),
        ("127.0.0.0/8", "[::1]:80"),
        ("localhost", "127.0.0.1"),
        ("localhost:80", "0.0.0.0:80"),
        ("10.0.0.0/8", "[::ffff:10.0.0.1]:80"),
        ("10.0.0.0/8", "[64:ff9b::10.0.0.1]:80"),
        ("10.0.0.1", "[64:ff9b:1::a00:1]:80"),
        ("10.0.0.0/8", "[2002:a00:1::1]:80"),
        ("10.0.0.1", "[2001:0:1:2:3:4:f5ff:fffe]:80"),
        ("127.0.0.1", "[64:ff9b::7f00:1]"),
        ("127.0.0.1", "１２７.0.0.1"),
        ("255.255.255.255", "<broadcast>:9"),
        ("fe80::1", "[fe80::1%eth0]:80"),
    ],
)
def test_what_is_forbidden_is_so_by_every_address_that_leads_there(pattern: str, host: str) -> None:
    assert fits_host(pattern, host_of(host), forbids=True)
    assert not fits_host("10.9.9.9", host_of(host), forbids=True)


def test_what_is_allowed_is_only_the_address_that_is_used() -> None:
    for host in ("0.0.0.0", "localhost", "::1", "64:ff9b::7f00:1"):
        assert not fits_host("127.0.0.1", host_of(host))
    assert not fits_host("localhost", host_of("127.0.0.1"))


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ("https://api.example.com/v1", "'api.example.com:443'"),
        ("api.example.com/v1", "'api.example.com'"),
        ("me@example.com", "'example.com'"),
        ("example.com:99999", "1 to 65535"),
        ("example.com:0", "1 to 65535"),
        ("example.com:https", "1 to 65535"),
        ("example.com:", "1 to 65535"),
        ("api*", "*.example.com"),
        ("**", "'*'"),
        ("*.", "no host"),
        ("10.0.0.0/99", "10.0.0.0/8"),
        ("10.0.0.0/8:80", "10.0.0.0/8"),
        ("::ffff:10.0.0.0/104", "'10.0.0.0/8'"),
        ("::zz", "no host"),
        ("faß.example", "xn--"),
        ("two words", "no host"),
        ("unix:socket", "unix:/"),
    ],
)
def test_a_pattern_that_can_never_fit_says_what_to_write(pattern: str, instead: str) -> None:
    assert instead in (problem_of(pattern) or "")


@pytest.mark.parametrize(
    "pattern",
    ["*", "*:443", "Example.com", "*.example.com:*", "a_b.example", "10.1.2.3", "10.0.0.1/8", "::1", "[::1]:80", "2130706433", "bücher.example", "unix:*", "unix:/run/x", "unix:@x"],
)  # fmt: skip
def test_patterns_that_fit_something_are_no_problem(pattern: str) -> None:
    assert problem_of(pattern) is None


def test_what_stands_behind_a_percent_sign_belongs_to_a_name() -> None:
    assert host_of("http://good.example%2eevil.example/").name != "good.example"
    assert host_of("[fe80::1%eth0]:80").name == "fe80::1"


def test_a_host_without_a_port_may_be_meant_for_any_that_is_allowed() -> None:
    assert fits_host("api.example.com:443", host_of("api.example.com"))
    assert not fits_host("api.example.com:443", host_of("api.example.com"), forbids=True)
