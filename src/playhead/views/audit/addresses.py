"""Say where on the network something goes: host and port, from an address of any form. Nothing here raises."""

from __future__ import annotations

import ipaddress
import re

_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")
_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443"}


def destination(url: str) -> str:
    """Return `host:port` of an address, without user and password; an address of another form as it is."""
    found = _AUTHORITY.match(url)
    if found is None:
        return url
    scheme, authority = found[1].lower(), found[2].rpartition("@")[2]
    host, port = split(authority)
    port = port or _PORTS.get(scheme, "")
    host = host.lower().rstrip(".") if host != "." else host
    return f"{host}:{port}" if port else host


def split(place: str) -> tuple[str, str]:
    """Return host and port of `host:port`; no port where there is none. An address of IPv6 keeps its brackets."""
    if place.startswith("["):
        host, bracket, rest = place.partition("]")
        return host + bracket, rest.removeprefix(":") if rest.startswith(":") else ""
    host, colon, port = place.rpartition(":")
    return (host, port) if colon and port.isdecimal() else (place, "")


def one_name(host: str) -> str:
    """Return a host in the one form in which two can be compared: in ASCII, in lower case, without a dot at its end."""
    try:
        return host.encode("idna").decode().lower().rstrip(".")
    except UnicodeError:
        return host.lower().rstrip(".")


def is_numeric(host: str) -> bool:
    """Say whether a host is given by its number, so that nothing has to be looked up."""
    return _number(host) is not None


def is_local(place: str) -> bool:
    """Say whether a place is this machine: a loopback address, or a socket that is a file."""
    if place.startswith(("/", "@")):
        return True
    host = split(place)[0].lower().rstrip(".")
    number = _number(host)
    return number.is_loopback if number is not None else host == "localhost" or host.endswith(".localhost")


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
