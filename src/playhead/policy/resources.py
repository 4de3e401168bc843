"""Say whether a pattern of a policy means a thing, by whichever name that thing is called.

One thing has many names: a host with a dot at its end, an address as one number; `paths` has those of files. So a thing
is brought into one form first (`host_of`, `command_of`), and patterns are held against that. Where case may or may not
matter, what is forbidden is forbidden in any case, and what is allowed only as written.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from playhead.policy.paths import path_pattern

_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_GIT_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_PUSH_IN_SHELL = re.compile(r"\bgit\b(?:\s+-{1,2}[^\s;&|]+(?:[ =][^\s;&|-][^\s;&|]*)?)*\s+push\b")


class Host(NamedTuple):
    """Where a connection leads."""

    name: str  # in lower case, in ASCII, without a dot at its end; an address in its usual form
    port: int | None

    def __str__(self) -> str:
        shown = f"[{self.name}]" if ":" in self.name else self.name
        return shown if self.port is None else f"{shown}:{self.port}"


# Hosts.


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


def _port(text: str) -> int | None:
    return int(text) if text.isdecimal() and int(text) < 65536 else None


def _host_name(name: str) -> str:
    """Return a host in one form: an address as usual, whichever way it is written; a name in ASCII."""
    name = name.strip().rstrip(".").lower().partition("%")[0]
    if (address := _address(name)) is not None:
        return str(address)
    try:
        return name.encode("ascii").decode()
    except UnicodeEncodeError:
        pass
    try:
        return name.encode("idna").decode().lower().rstrip(".")
    except UnicodeError:
        return name.encode("punycode").decode()  # which is no host, and fits nothing


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a text is: 127.0.0.1 is also 2130706433, 0x7f.1, 0177.0.0.1 and ::ffff:127.0.0.1."""
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return _address_of_numbers(name)
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped if mapped is not None else found


def _address_of_numbers(name: str) -> ipaddress.IPv4Address | None:
    """Read an address as the C library does: one to four numbers, each decimal, octal or hexadecimal."""
    parts = name.split(".")
    if not 1 <= len(parts) <= 4 or not all(parts):
        return None
    numbers = []
    for part in parts:
        base = 16 if part.startswith("0x") else 8 if part.startswith("0") and len(part) > 1 else 10
        try:
            numbers.append(int(part, base))
        except ValueError:
            return None
        if numbers[-1] < 0:
            return None
    *leading, last = numbers
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last
    for at, number in enumerate(leading):
        value += number << (8 * (3 - at))
    return ipaddress.IPv4Address(value)


def fits_host(pattern: str, host: Host) -> bool:
    """Say whether a pattern means a host: `api.example.com`, `*.example.com:443`, `10.0.0.0/8`, `*:443`, `*`."""
    if "/" in pattern:
        try:
            return ipaddress.ip_address(host.name) in ipaddress.ip_network(pattern.strip(), strict=False)
        except ValueError:
            return False
    wanted = pattern.strip()
    port: str | None = None
    if wanted.startswith("["):
        wanted, _, rest = wanted[1:].partition("]")
        port = rest.removeprefix(":") or None
    elif wanted.count(":") == 1:
        wanted, _, port = wanted.partition(":")
    if port not in (None, "*") and (host.port is None or str(host.port) != port):
        return False
    if wanted == "*":
        return True
    if wanted.startswith("*."):
        return host.name.endswith("." + _host_name(wanted[2:])) and _address(host.name) is None
    return host.name == _host_name(wanted)


# Commands.


def command_of(argv: Sequence[str], cwd: str | None = None) -> str:
    """Return a command as it would be typed, with the program that is really meant by its first word."""
    if not argv:
        return ""
    return shlex.join([program_of(argv[0], cwd), *argv[1:]])


def words_of(command: str) -> list[str]:
    """Return the words of a command; all of it as one where its quotes do not match."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def program_of(name: str, cwd: str | None = None) -> str:
    """Return the path of the program that a word starts; the word itself where there is none."""
    if "/" in name:
        return os.path.normpath(os.path.join(cwd or os.getcwd(), name))
    return shutil.which(name) or name


def fits_command(pattern: str, command: str) -> bool:
    """Say whether a pattern means a command. Its first word is a program of the search path, or a path; `*` any text.

    `git *` means git with any arguments, and not a script of that name elsewhere.
    """
    program, blank, rest = pattern.strip().partition(" ")
    words = words_of(command)
    if not words or not program:
        return False
    if program != "*" and not _is_program(program, words[0]):
        return False
    if not blank:
        return len(words) == 1 or program == "*"
    return _any_text(rest.strip()).fullmatch(shlex.join(words[1:])) is not None


def _is_program(pattern: str, program: str) -> bool:
    if "/" in pattern:
        return path_pattern(pattern, os.getcwd(), False).fullmatch(program) is not None
    found = shutil.which(pattern)
    if found is None:
        return program == pattern
    return program == found or os.path.realpath(program) == os.path.realpath(found)


def is_push(argv: Sequence[str]) -> str | None:
    """Return where a command pushes to, `?` where it does not say; None where it is no `git push`."""
    if len(argv) == 1 or (len(argv) >= 3 and argv[1] == "-c" and os.path.basename(argv[0]).endswith("sh")):
        return "?" if _PUSH_IN_SHELL.search(argv[-1]) else None
    if os.path.basename(argv[0]) != "git":
        return None
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at] in _GIT_WITH_VALUE else 1
    if at >= len(argv) or argv[at] != "push":
        return None
    return next((word for word in argv[at + 1 :] if not word.startswith("-")), "?")


# Anything else.


def fits_text(pattern: str, text: str, *, any_case: bool) -> bool:
    """Say whether a pattern means a text; `*` stands for any."""
    return _any_text(pattern, any_case).fullmatch(text) is not None


@functools.lru_cache(maxsize=1024)
def _any_text(pattern: str, any_case: bool = False) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL | (re.IGNORECASE if any_case else 0))
