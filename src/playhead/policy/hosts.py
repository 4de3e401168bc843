"""Say whether a pattern of a policy means a host, by whichever name or address it is called.

A host may have a dot at its end, an address may be one number. So it is brought into one form first (`host_of`). And
one address may lead to another: `0.0.0.0` to this machine, an IPv6 that is made of an IPv4 to that. What is forbidden
is forbidden by all of them (`reached`), and what is allowed only by the one that is used.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import socket
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

UNIX = "unix:"
LOCALHOST = "localhost"
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_HERE = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
_BROADCAST = "<broadcast>"  # as Python's sockets write 255.255.255.255
# Networks of IPv6 in which an address of IPv4 stands, and how many bits follow it.
_EMBEDDING = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),  # IPv4 in a socket of IPv6
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (ipaddress.IPv6Network("64:ff9b:1::/48"), 0),  # NAT64 of one's own
    (ipaddress.IPv6Network("2002::/16"), 80),  # 6to4
)
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_SPELT_TWICE = frozenset("ßς\u200c\u200d")  # of which the two standards for names outside of ASCII make two names


class Host(NamedTuple):
    """Where a connection leads."""

    name: str  # in lower case, in ASCII, without a dot at its end; an address in its usual form
    port: int | None

    def __str__(self) -> str:
        shown = f"[{self.name}]" if ":" in self.name else self.name
        return shown if self.port is None else f"{shown}:{self.port}"


class _Wanted(NamedTuple):
    """A pattern in its parts."""

    name: str  # as written, without a port
    port: str | None


def host_of(where: str) -> Host:
    """Return where a URL, a `host:port` or a host leads."""
    if "://" in where:
        try:
            parts = urlsplit(where)
        except ValueError:
            return Host("", None)  # no host, and fits nothing by name
        try:
            port = parts.port
        except ValueError:
            port = None
        return Host(_host_name(parts.hostname or ""), port or _DEFAULT_PORTS.get(parts.scheme.lower()))
    where = where.rpartition("@")[2]
    if where.startswith("["):
        name, _, rest = where[1:].partition("]")
        return Host(_host_name(name), _port(rest.removeprefix(":")))
    if where.count(":") == 1:
        name, _, port_text = where.partition(":")
        return Host(_host_name(name), _port(port_text))
    return Host(_host_name(where), None)


def connected_to(where: str) -> Host:
    """Return where a socket connects: one without a host means any of this machine's addresses."""
    host = host_of(where)
    return host if host.name else host._replace(name="0.0.0.0")


def address_of(name: str) -> Address | None:
    """Return the address that a text is: 127.0.0.1 is also 2130706433, 0x7f.1, 0177.0.0.1 and ::ffff:127.0.0.1."""
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return _address_of_numbers(name)
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped if mapped is not None else found


def fits_host(pattern: str, host: Host, *, forbids: bool = False) -> bool:
    """Say whether a pattern means a host: `api.example.com`, `*.example.com:443`, `10.0.0.0/8`, `*:443`, `*`.

    One that `forbids` means it by whatever it leads to. Without a port, as where one is only looked up, a host may be
    meant for any port that is allowed, and is for none that is forbidden.
    """
    names = reached(host.name) if forbids else (host.name,)
    if "/" in pattern:
        network = _network(pattern.strip())
        return network is not None and any(
            address.version == network.version and address in network
            for address in map(address_of, names)
            if address is not None
        )
    wanted = _parts(pattern.strip())
    if wanted.port not in (None, "*") and (forbids if host.port is None else str(host.port) != wanted.port):
        return False
    if wanted.name == "*":
        return True
    if wanted.name.startswith("*."):
        end = "." + _host_name(wanted.name[2:])
        return any(name.endswith(end) and address_of(name) is None for name in names)
    return _host_name(wanted.name) in names


def is_here(name: str) -> bool:
    """Say whether a name is one of this machine."""
    return name == LOCALHOST or name.endswith(f".{LOCALHOST}") or name == socket.gethostname().lower()


@functools.lru_cache(maxsize=1024)
def reached(name: str) -> tuple[str, ...]:
    """Return what a host leads to by itself: an address, by the others that are the same; this machine by all."""
    address = address_of(name)
    if address is None:
        return (name, LOCALHOST, *map(str, _HERE)) if is_here(name) else (name,)
    found = [address, *_embedded(address)]
    if any(one.is_loopback or one.is_unspecified for one in found):
        return (*map(str, found), LOCALHOST, *map(str, _HERE))
    return tuple(map(str, found))


def problem_of(pattern: str) -> str | None:
    """Say why a pattern can never mean a host, and what to write; None where it can."""
    if pattern.startswith(UNIX):
        if pattern.removeprefix(UNIX).startswith(("/", "@", "*")):
            return None
        return "a socket of this machine is written unix:/its/path, unix:@name or unix:*"
    if "://" in pattern:
        host = host_of(pattern)
        return f"a host has no scheme and no path: write {str(host)!r}"
    if "@" in pattern:
        return f"a host has no user: write {pattern.rpartition('@')[2]!r}"
    if "/" in pattern:
        return _problem_of_network(pattern)
    wanted = _parts(pattern)
    if wanted.port not in (None, "*") and not (wanted.port.isdecimal() and 0 < int(wanted.port) < 65536):
        return f"{wanted.port!r} is no port: write a number from 1 to 65535, or *"
    return None if wanted.name == "*" else _problem_of_name(wanted.name.removeprefix("*."))


def _problem_of_network(pattern: str) -> str | None:
    network = _network(pattern)
    if network is None:
        before = pattern.partition("/")[0]
        return f"it is neither a host nor a network such as 10.0.0.0/8: a host has no path, write {before!r}"
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_EMBEDDING[0][0]):
        inside = ipaddress.IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
        return f"addresses of IPv4 are held against networks of IPv4: write {str(inside)!r}"
    return None


def _problem_of_name(name: str) -> str | None:
    if "*" in name:
        return "a * stands alone, or for what is before a dot: write '*', or '*.example.com'"
    if _SPELT_TWICE & set(name):
        return f"{name!r} has two forms in ASCII: write the one that is meant, which begins with xn--"
    if address_of(name) is None and not _NAME.fullmatch(_host_name(name)):
        return f"{name!r} is no host: write a name such as 'api.example.com', an address, or a network"
    return None


def _parts(pattern: str) -> _Wanted:
    if pattern.startswith("["):
        name, _, rest = pattern[1:].partition("]")
        return _Wanted(name, rest.removeprefix(":") or None)
    if pattern.count(":") == 1:
        name, _, port = pattern.partition(":")
        return _Wanted(name, port)
    return _Wanted(pattern, None)


def _network(pattern: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return None


def _embedded(address: Address) -> Iterator[Address]:
    """Yield the addresses of IPv4 that one of IPv6 is made of."""
    if isinstance(address, ipaddress.IPv6Address):
        for network, bits_after in _EMBEDDING:
            if address in network:
                yield ipaddress.IPv4Address(int(address) >> bits_after & 0xFFFFFFFF)
        if address.teredo is not None:
            yield address.teredo[1]


def _port(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) < 65536 else None


def _host_name(name: str) -> str:
    """Return a host in one form: an address as usual, whichever way it is written; a name in ASCII."""
    name = name.strip().rstrip(".").lower()
    if ":" in name:
        name = name.partition("%")[0]  # by which of this machine's networks
    if name == _BROADCAST:
        name = "255.255.255.255"
    if not name.isascii():
        try:
            name = name.encode("idna").decode().lower().rstrip(".")  # which may be an address, in wide digits
        except UnicodeError:
            return name.encode("punycode").decode()  # which is no host, and fits nothing
    address = address_of(name)
    return name if address is None else str(address)


def _address_of_numbers(name: str) -> ipaddress.IPv4Address | None:
    """Read an address as the C library does: one to four numbers, each decimal, octal or hexadecimal."""
    parts = name.split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isalnum() for part in parts):
        return None
    numbers = []
    for part in parts:
        base = 16 if part.startswith("0x") else 8 if part.startswith("0") and len(part) > 1 else 10
        try:
            numbers.append(int(part, base))
        except ValueError:
            return None
    *leading, last = numbers
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last
    for at, number in enumerate(leading):
        value += number << (8 * (3 - at))
    return ipaddress.IPv4Address(value)
