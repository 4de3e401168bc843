"""Read the address of a server: scheme, host, port, and the path below which it is reached."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from playhead.errors import UsageError
from playhead.settings import is_address, without_credentials

_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """Where a server is."""

    scheme: str
    host: str
    port: int
    prefix: str  # of every path, without a slash at its end: where a proxy has the server below one

    def __str__(self) -> str:
        """Return it as it is shown, and read again."""
        return f"{self.scheme}://{self.netloc}{self.prefix}"

    @property
    def netloc(self) -> str:
        """Return host and port, as the header `Host` has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def target(self, path: str, query: dict[str, object] | None = None) -> str:
        """Return the target of a request; what stands in `path` is quoted, but for slashes."""
        told = {name: _word(value) for name, value in (query or {}).items() if value is not None}
        return quote(f"{self.prefix}{path}", safe="/%:@~!$&'()*+,;=") + (f"?{urlencode(told)}" if told else "")


def part(text: str) -> str:
    """Return one part of a path, quoted."""
    return quote(text, safe="")


def read_address(text: str) -> Address:
    """Read what somebody wrote; UsageError where it is no address of a server, or holds a secret."""
    shown = without_credentials(text)[:200]
    if not is_address(text):
        raise UsageError(f"not the address of a server: {shown!r}", hint="For instance http://localhost:4000.")
    try:
        split = urlsplit(text)
        host, port = split.hostname, split.port
    except ValueError as problem:
        raise UsageError(f"not the address of a server: {shown!r} ({problem})") from None
    if split.username is not None or split.password is not None:
        raise UsageError(
            f"the address {shown} holds a name or a password",
            hint="Addresses end up in histories and logs: put the key into PLAYHEAD_API_KEY, and leave it out there.",
        )
    if not host or any(letter <= " " or letter > "~" for letter in text):
        raise UsageError(f"not the address of a server: {shown!r}", hint="For instance http://localhost:4000.")
    if split.query or split.fragment:
        raise UsageError(f"the address {shown} has a question mark or a #", hint="Name where the server is, no page.")
    prefix = split.path.rstrip("/")
    if prefix.endswith("/api"):  # copied from an example with curl
        prefix = prefix.removesuffix("/api")
    scheme = split.scheme.lower()
    return Address(scheme, host, _PORTS[scheme] if port is None else port, prefix)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
