"""Give a client the answer that was recorded: its head, its pieces as they arrived, its end; for all clients."""

from __future__ import annotations

import _thread
import contextlib
import functools
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NoReturn

from playhead.capture import answering, lanes
from playhead.capture.answering import Answer
from playhead.errors import DeviationError
from playhead.event import wire
from playhead.event.plain import restore

Pairs = list[tuple[bytes, bytes]]
_EXPECTED = re.compile(r"([0-9]+) more expected")
_LEFT = ("ClosedByClient", "RunEnded")


class Reply:
    """One recorded answer over HTTP."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        whole = answer.whole()
        self.body = None if whole is None else whole[1]  # of one that came whole, and is at hand
        data = self._data = answer.data if whole is None else {"http": whole[0]}
        head: dict[str, Any] = data.get("http") or data
        self.status: int | None = head.get("status") if isinstance(head.get("status"), int) else None
        kept = head.get("reason")
        self.reason = kept if isinstance(kept, str) else wire.reason(self.status)
        self.version = str(head.get("version") or wire.VERSION)
        self.headers: Pairs = [_pair(name, value) for name, value in head.get("headers") or ()]
        self._began_us = _sent_at(answer, data, head)
        self.head_us = self._began_us + (head.get("head_us") or 0)
        self.error: dict[str, Any] | None = data.get("error")
        if self.error is not None and self.error.get("type") in ("HTTPStatus", "ProviderError"):
            self.error = None  # said by us of an answer that came whole
        self.left = self.error is not None and self.error.get("type") in _LEFT
        self.cancelled = (data.get("outcome") or data.get("status")) == "cancelled" and not self.left

    def pieces(self) -> list[tuple[int, bytes]]:
        """Return the body as it came: when each piece did, and the piece, still encoded."""
        if self.body is not None:
            return [(max(self.head_us, self._answer.ended_us), self.body)]
        chunks = wire.response_chunks(self._data)
        offsets = (self._data.get("chunks") or {}).get("at_us")
        if isinstance(offsets, list) and len(offsets) == len(chunks):
            return [(self._began_us + at, chunk) for at, chunk in zip(offsets, chunks, strict=True)]
        # The only piece of a whole answer came with its end; of any other, before what ended it.
        at_us = self.head_us if self.error is not None else max(self.head_us, self._answer.ended_us)
        return [(at_us, chunk) for chunk in chunks]

    def unended(self, pieces: int) -> frozenset[int]:
        """Say which of so many pieces do not end the chunk that they are of."""
        told = self._data.get("chunks") or {}
        return frozenset(told.get("unended") or ()) if len(told.get("sizes") or ()) == pieces else frozenset()

    @property
    def missing(self) -> int:
        """Return how much of its last chunk never came."""
        found = _EXPECTED.search(str((self.error or {}).get("message")))
        return int(found[1]) if found else 1

    @property
    def ended_us(self) -> int:
        """Return when the answer was over."""
        return self._answer.ended_us

    @property
    def last_us(self) -> int:
        """Return when the last byte came; with the last piece, where nothing else is known."""
        end = (self._data.get("chunks") or {}).get("end_us")
        return self._began_us + end if isinstance(end, int) else self.ended_us

    # In turn with everything else that was recorded.

    def wait_for_head(self) -> None:
        """Return when the head has come, or when the request has failed without one."""
        _player().wait(self.head_us if self.status is not None else self.ended_us)

    async def wait_for_head_async(self) -> None:
        """Do the same in an event loop; one that was given up waits until it is given up again."""
        if self.status is None and self.cancelled:
            await never()
        await _player().wait_async(self.head_us if self.status is not None else self.ended_us)

    def wait_for_end(self) -> None:
        """Return when the answer is over."""
        _player().wait(self.ended_us)

    async def wait_for_end_async(self) -> None:
        """Do the same in an event loop."""
        await _player().wait_async(self.ended_us)

    def chunks(self) -> Iterator[bytes]:
        """Yield the pieces, each in its turn; what was left there is not to be read further."""
        for at_us, piece in self.pieces():
            _player().wait(at_us)
            yield piece
        if self.left:
            self.no_further()
        _player().wait(self.ended_us)

    async def chunks_async(self) -> AsyncIterator[bytes]:
        """Do the same in an event loop."""
        for at_us, piece in self.pieces():
            await _player().wait_async(at_us)
            yield piece
        if self.left:
            self.no_further()
        if self.cancelled:
            await never()
        await _player().wait_async(self.ended_us)

    def no_further(self) -> NoReturn:
        """Refuse to be read past the end of what is known."""
        text = "an answer is read further than when it was recorded: then, the client stopped here"
        raise DeviationError(text, deviation={"type": "read", "text": text})


def _sent_at(answer: Answer, data: dict[str, Any], head: dict[str, Any]) -> int:
    """Return when a request was sent: a question to a model is recorded on its way, when it may be answered already."""
    if isinstance(since := head.get("sent_us"), int):
        return answer.began_us + since
    chunks = data.get("chunks") if isinstance(data.get("chunks"), dict) else {}
    offsets = [head.get("head_us"), (chunks or {}).get("end_us"), *((chunks or {}).get("at_us") or ())]
    last = max((offset for offset in offsets if isinstance(offset, int)), default=0)
    return min(answer.began_us, answer.ended_us - last)


Request = tuple[str, str, list[tuple[str, str]], bytes]  # method, URL, headers, body


def reply_to(span: str | None, end: Callable[[BaseException], None], request: Callable[[], Request]) -> Reply | None:
    """Return the recorded answer to a request, where a replay answers; a deviation ends the exchange, and is raised.

    What has yet to be asked is asked now, with this request.
    """
    try:
        answer = None if answering.player is None else answering.player.answer(span)
        if isinstance(answer, answering.Unasked):
            answer = answer.ask(*request())
    except DeviationError as deviation:
        end(deviation)
        raise
    return None if answer is None else Reply(answer)


async def reply_to_async(
    span: str | None, end: Callable[[BaseException], None], request: Callable[[], Request]
) -> Reply | None:
    """Do the same in an event loop, which goes on while something is asked."""
    try:
        answer = None if answering.player is None else answering.player.answer(span)
        if isinstance(answer, answering.Unasked):
            answer = await _beside(functools.partial(answer.ask, *request()))
    except BaseException as error:  # cancelled, too
        end(error)
        raise
    return None if answer is None else Reply(answer)


async def _beside(ask: Callable[[], Answer]) -> Answer:
    """Call something in a thread of our own, and wait for what it gives back."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return ask()  # in trio, which stands still meanwhile
    future: asyncio.Future[Answer] = loop.create_future()

    def settle(set_it: Callable[[Any], None], outcome: Any) -> None:
        if not future.done():
            set_it(outcome)

    def work() -> None:
        lanes.local.quiet = True
        try:
            done: tuple[Any, Any] = future.set_result, ask()
        except BaseException as error:
            done = future.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, *done)

    quiet, lanes.local.quiet = lanes.local.quiet, True  # it is no thread of the program's
    try:
        _thread.start_new_thread(work, ())
    finally:
        lanes.local.quiet = quiet
    return await future


def needed(reply: Reply | None) -> Reply | None:
    """Return an answer; None where the world is to be asked, and a deviation where that is not to be."""
    if reply is None and not _player().asks_world:
        text = "a request that could not be recorded is not answered in a replay"
        raise DeviationError(text, deviation={"type": "added", "text": text})
    return reply


class _Empty:
    """An answer that says that all is well."""

    kind = "http.received"
    began_us = ended_us = 0
    span: str | None = None

    def whole(self) -> None:
        return None

    @property
    def data(self) -> dict[str, Any]:
        return {"outcome": "ok", "status": 200, "headers": [["content-length", "0"]], "form": wire.NONE, "head_us": 0}


EMPTY = _Empty()


async def never() -> None:
    """Wait to be cancelled, as when it was recorded; where nothing else can happen any more, that was a deviation."""
    import asyncio

    if asyncio._get_running_loop() is None:
        import trio  # type: ignore[import-not-found,unused-ignore]

        await trio.sleep_forever()  # its deadlines are in real time, and take no turns
    await _player().wait_async(answering.LAST_US)
    text = "an answer is waited for that never came: when it was recorded, the program gave up here"
    raise DeviationError(text, deviation={"type": "read", "text": text})


def wired(reply: Reply, method: str) -> Iterator[tuple[int, bytes]]:
    """Yield an answer as it goes over the wire in HTTP/1, and when: for clients that are answered below a parser.

    What came at one time came in one packet.
    """
    for at_us, parts in itertools.groupby(_parts(reply, method), lambda part: part[0]):
        yield at_us, b"".join(part for _, part in parts)


def _parts(reply: Reply, method: str) -> Iterator[tuple[int, bytes]]:
    pieces, whole = reply.pieces(), reply.error is None
    chunked = _is_chunked(reply)
    length = b"%d" % sum(len(piece) for _, piece in pieces)
    version = reply.version if reply.version.startswith("HTTP/1.") else wire.VERSION
    head = [f"{version} {reply.status} {reply.reason}\r\n".encode("latin-1", "replace")]
    for name, value in reply.headers:
        # What was redacted may have another length than what came.
        exact = length if name.lower() == b"content-length" and pieces and whole else value
        head.append(b"%b: %b\r\n" % (name, exact))
    yield reply.head_us, b"".join([*head, b"\r\n"])
    if is_bodiless(reply, method):
        return
    if chunked:
        yield from _chunks(reply, pieces)
        if whole:
            yield reply.last_us, b"0\r\n\r\n"
    else:
        yield from pieces


def _chunks(reply: Reply, pieces: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces in the chunks in which they came; the last may be cut."""
    unended = reply.unended(len(pieces))
    begins = True
    for number, (at_us, piece) in enumerate(pieces):
        before = b""
        if begins:
            last = number
            while last in unended and last + 1 < len(pieces):
                last += 1
            size = sum(len(part) for _, part in pieces[number : last + 1])
            before = b"%x\r\n" % (size + (reply.missing if last in unended else 0))
        begins = number not in unended
        yield at_us, before + piece + (b"\r\n" if begins else b"")


def is_bodiless(reply: Reply, method: str) -> bool:
    """Say whether such an answer has no body, whatever its headers say."""
    return method == "HEAD" or reply.status is None or reply.status < 200 or reply.status in (204, 304)


def ends_with_connection(reply: Reply, method: str) -> bool:
    """Say whether the end of such an answer is the end of the connection: nothing else tells how long it is."""
    if is_bodiless(reply, method):
        return False
    return not any(name.lower() == b"content-length" for name, _ in reply.headers) and not _is_chunked(reply)


def _is_chunked(reply: Reply) -> bool:
    return any(name.lower() == b"transfer-encoding" and b"chunked" in value.lower() for name, value in reply.headers)


def _pair(name: Any, value: Any) -> tuple[bytes, bytes]:
    return _latin(name), _latin(value)


def _latin(text: Any) -> bytes:
    if isinstance(text, str):
        return text.encode("latin-1", "replace")
    text = restore(text)
    if isinstance(text, bytes):
        return text
    if isinstance(text, dict):  # what was redacted: nothing but the rule is known of it
        return f"[redacted:{next(iter(text.values()), '')}]".encode()
    return str(text).encode("latin-1", "replace")


def _player() -> answering.Player:
    assert answering.player is not None, "only a replay has replies"
    return answering.player
