"""Ask a server: one connection for each thread, kept open, and asked again where it was lost in the middle.

Only what changes nothing is asked again: everything that is read, and no more. Redirects are not followed, since a key
goes along with every request.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from playhead import _limits
from playhead._muted import muted
from playhead._version import __version__
from playhead.errors import ConfigError, ServerError
from playhead.store.remote.address import Address
from playhead.store.remote.refusals import not_a_server, refusal

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

KEY_VARIABLE = "PLAYHEAD_API_KEY"
JSON = "application/json"
_WAIT = (429, 503)  # too much at once: the server says how long to wait


class Reply(NamedTuple):
    """What a server answered."""

    body: bytes
    headers: dict[str, str]  # by their names, in small letters

    def json(self, address: object) -> Any:
        """Return the document that it is."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise not_a_server(address, "its answer is no JSON") from None


class Connection:
    """Ask one server, with one key. Threads may share it; it is no worse for a fork."""

    def __init__(self, address: Address, key: str | None = None, *, timeout_s: float | None = None) -> None:
        self.address = address
        self._key = _checked(os.environ.get(KEY_VARIABLE) if key is None else key)
        self._timeout_s = timeout_s or _limits.REMOTE_TIMEOUT_S
        self._open = threading.local()

    def __repr__(self) -> str:
        return f"<Connection {self.address}>"  # never the key

    def get(self, path: str, query: dict[str, object] | None = None, *, accept: str = JSON) -> Reply:
        """Read something."""
        return self._asked("GET", self.address.target(path, query), None, {"accept": accept}, again=True)

    def json(self, path: str, query: dict[str, object] | None = None) -> Any:
        """Read a document."""
        return self.get(path, query).json(self.address)

    def send(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        query: dict[str, object] | None = None,
        body: bytes | None = None,
        media: str = JSON,
        again: bool = False,
    ) -> Any:
        """Send a document, or bytes, and return the document that is answered; `again` where it changes nothing."""
        data = body if body is not None else b"" if document is None else orjson.dumps(document)
        headers = {"accept": JSON, **({"content-type": media} if data else {})}
        return self._asked(method, self.address.target(path, query), data, headers, again=again).json(self.address)

    @contextmanager
    def stream(self, path: str, query: dict[str, object] | None = None, *, accept: str) -> Iterator[Iterator[bytes]]:
        """Read something that may never end, piece by piece, over a connection of its own."""
        connection = self._connection()
        try:
            with self._said():
                answer = self._once(connection, "GET", self.address.target(path, query), None, {"accept": accept})
                if answer.status != 200:
                    raise self._refused(answer, answer.read(_limits.REMOTE_ERROR_BYTES_MAX))
            yield self._pieces(answer)
        finally:
            with _quietly():
                connection.close()

    def close(self) -> None:
        """Close the connection of this thread; the next question opens it again."""
        kept = getattr(self._open, "kept", None)
        if kept is not None:
            del self._open.kept
            with _quietly():
                kept[1].close()

    def _pieces(self, answer: HTTPResponse) -> Iterator[bytes]:
        while True:
            with self._said():
                piece = answer.read1(_limits.READ_CHUNK_BYTES)
            if not piece:
                return
            yield piece

    def _asked(self, method: str, target: str, body: bytes | None, headers: dict[str, str], *, again: bool) -> Reply:
        """Ask, and ask again where the connection was lost, or the server asks for patience."""
        patience_s, left = _limits.REMOTE_PATIENCE_S, _limits.REMOTE_TRIES_MAX if again else 1
        while True:
            left -= 1
            fresh = getattr(self._open, "kept", None) is None
            try:
                with self._said():
                    answer = self._once(self._kept(), method, target, body, headers)
                    whole = answer.read() if answer.status < 300 else answer.read(_limits.REMOTE_ERROR_BYTES_MAX)
            except ServerError as problem:
                self.close()
                # One that was kept open may have been closed over there long ago: that is no failure yet.
                if not was_lost(problem) or (left <= 0 and (fresh or not again)):
                    raise
                time.sleep(0 if not fresh else _limits.REMOTE_PAUSE_S * (_limits.REMOTE_TRIES_MAX - left))
                continue
            if answer.will_close or answer.status >= 300:
                self.close()  # what is left of an answer that was not read would stand before the next one
            if answer.status in _WAIT and again:
                after_s = _after_s(answer)
                if after_s <= patience_s:
                    patience_s -= after_s
                    time.sleep(after_s)
                    continue
            if answer.status >= 300:
                raise self._refused(answer, whole)
            return Reply(whole, {name.lower(): value for name, value in answer.getheaders()})

    def _once(
        self, connection: HTTPConnection, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> HTTPResponse:
        told = {"user-agent": f"playhead/{__version__}", **headers}
        if self._key is not None:
            told["authorization"] = f"Bearer {self._key}"
        connection.request(method, target, body=body, headers=told)
        answer = connection.getresponse()
        if answer.length is None and not answer.chunked:
            # The standard library takes a head that was cut off for whole. Ours always says how long the answer is.
            from http.client import IncompleteRead

            raise IncompleteRead(b"")
        return answer

    def _kept(self) -> HTTPConnection:
        kept = getattr(self._open, "kept", None)
        if kept is None or kept[0] != os.getpid():  # that of a parent is the parent's
            kept = self._open.kept = (os.getpid(), self._connection())
        connection: HTTPConnection = kept[1]
        return connection

    def _connection(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if self.address.scheme == "https" else HTTPConnection
        return kind(self.address.host, self.address.port, timeout=self._timeout_s)

    def _refused(self, answer: HTTPResponse, body: bytes) -> Exception:
        if 300 <= answer.status < 400:
            where = (answer.getheader("location") or "").partition("?")[0][:200]
            return ServerError(
                f"{self.address} sends elsewhere (status {answer.status}), and nobody goes there: a key would go along",
                hint=f"Name the address itself: {where}" if where else "Name the address of the server itself.",
            )
        return refusal(body, answer.status, self.address, after_s=_after_s(answer), keyed=self._key is not None)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Say in our own words what went wrong on the way; nothing of it is recorded, wherever this is used."""
        import ssl
        from http.client import BadStatusLine, HTTPException

        try:
            with _quietly():
                yield
        except ssl.SSLCertVerificationError as problem:
            raise ServerError(
                f"the certificate of {self.address} cannot be trusted: {problem.verify_message}",
                hint="SSL_CERT_FILE names a file with the certificates that are trusted besides.",
            ) from None
        except ssl.SSLError as problem:
            raise ServerError(
                f"{self.address} does not speak TLS as is expected: {problem.reason or problem}",
                hint="Is it http:// and not https://? `playhead serve` itself speaks plain HTTP.",
            ) from None
        except TimeoutError:
            raise ServerError(f"{self.address} did not answer in {self._timeout_s:g} s") from None
        except BadStatusLine as problem:
            if type(problem) is BadStatusLine and not "HTTP/".startswith(
                str(problem)[:5]
            ):  # it does speak, and no HTTP
                why = "it does not answer with HTTP"
                raise ServerError(f"{self.address}: {why}", hint="Is it https:// and not http://?") from None
            raise ServerError(f"{self.address} closed the connection") from problem
        except (HTTPException, OSError) as problem:
            raise ServerError(
                f"{self.address} cannot be reached: {_reason(problem)}" if isinstance(problem, OSError)
                else f"the answer of {self.address} was cut off"
            ) from problem  # fmt: skip


_known: dict[tuple[Address, str | None], Connection] = {}


def connection_to(address: Address, key: str | None = None) -> Connection:
    """Return the connection to a server; in one process there is one for each address and key."""
    key = os.environ.get(KEY_VARIABLE) if key is None else key
    found = _known.get((address, key))
    if found is None:
        found = _known[address, key] = Connection(address, key)
    return found


@contextmanager
def _quietly() -> Iterator[None]:
    token = muted.set(True)
    try:
        yield
    finally:
        muted.reset(token)


def _checked(key: str | None) -> str | None:
    key = (key or "").strip()
    if any(not "!" <= letter <= "~" for letter in key):
        raise ConfigError("the API key has letters that no key has", hint=f"{KEY_VARIABLE} is one: ph_…")
    return key or None


def was_lost(problem: ServerError) -> bool:
    """Say whether a connection was lost, or was not to be had just then: asking again may help."""
    from http.client import BadStatusLine, IncompleteRead

    return isinstance(problem.__cause__, (ConnectionError, IncompleteRead, BadStatusLine))


def _after_s(answer: HTTPResponse) -> float:
    told = answer.getheader("retry-after") or ""
    return float(told[:6]) if told.isdecimal() else 1.0


def _reason(problem: OSError) -> str:
    return (problem.strerror or str(problem) or type(problem).__name__).lower()
