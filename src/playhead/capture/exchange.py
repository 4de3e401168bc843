"""Record one exchange over HTTP, whatever client makes it: the request, the head of the answer, its chunks, its end.

The client's adapter calls `begin` (in begin.py) before the request goes out, and then `sent`, `head`, `chunk` and `end`
as things happen. Nothing here waits, reads ahead or raises into the agent. Where a dialect knows the address, the
exchange is a model call; otherwise it is plain HTTP.
"""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Iterator
from typing import Any

import orjson

from playhead import _limits
from playhead.capture import abandoned, answering, bodies, dialects, enforcing, guard
from playhead.capture.bodies import Answer, kept_answer, kept_request, parsed
from playhead.capture.clients.replies import Reply, Request, reply_to, reply_to_async
from playhead.capture.dialects import Answered, Dialect
from playhead.capture.headers import Pair, Pairs, Spliced, texts
from playhead.capture.later import known_answer
from playhead.capture.scope import Scope, current
from playhead.capture.spans import outcome
from playhead.event import kinds, wire
from playhead.event.plain import describe_error
from playhead.ledger.writer import Around

Closed = dict[str, Any] | None  # why an answer was left before its end
_CLOSED = {"type": "ClosedByClient", "message": "the client stopped reading before the end"}
_RUN_ENDED = {"type": "RunEnded", "message": "the run ended before the answer did"}


class Exchange:
    """One request and its answer."""

    __slots__ = (
        "__weakref__", "_answer", "_dialect", "_ended", "_head_us", "_headers", "_inside", "_later", "_method",
        "_model", "_opened", "_provider", "_scope", "_sending", "_sent_bytes", "_span", "_start", "_status", "_texts",
        "_unasked", "_url", "_written_us",
    )  # fmt: skip

    def __init__(self, scope: Scope, method: str, url: str, headers: Pairs) -> None:
        self._scope = self._inside = scope
        self._method = method
        self._url = url
        self._headers = list(headers)  # now: they may be changed on their way
        self._texts: list[Pair] | None = None
        self._dialect: Dialect | None = None
        self._provider = ""  # of a model
        self._model: Any = None  # as it was asked for
        self._span: str | None = None
        self._sending: list[bytes] = []
        self._sent_bytes = 0
        self._unasked = b""  # what a replay has asked for the program
        self._opened = self._ended = self._later = False
        self._status: int | None = None
        self._head_us: int | None = None
        self._answer = Answer()
        self._start = time.monotonic_ns()
        self._written_us: int | None = None  # when its first event was written, by the same clock

    @property
    def headers(self) -> list[Pair]:
        """Return the headers of the request as text, made when somebody wants them."""
        if self._texts is None:
            self._texts = texts(self._headers)
        return self._texts

    def told(self) -> Iterator[Pair]:
        """Yield them, and make them with the first."""
        yield from self.headers

    # What an adapter tells.

    def begun(self) -> None:
        """Let the run know of this exchange, so that it can end it with itself."""
        self._scope.recording.exchanges[id(self)] = weakref.ref(self)

    def sent(self, piece: bytes, *, unended: bool = False) -> None:
        """Take in a piece of a request body that is sent as it is made."""
        if isinstance(piece, (bytes, bytearray, memoryview)):  # anything else is for the client to refuse
            self._sent_bytes += len(piece)
            if self._sent_bytes <= _limits.BODY_BYTES_MAX:
                self._sending.append(bytes(piece))

    @property
    def recorded(self) -> bool:
        """Say whether the request is recorded."""
        return self._opened

    def opened(self, body: bytes | None = None) -> None:
        """Record the request; called with its body, or after the last piece of it."""
        if self._opened:
            return
        self._opened = True
        if self._sending:
            self._start = time.monotonic_ns()  # the last piece has just left
        body = self._body() if body is None else body
        if answering.player is not None and answering.player.asks_models:
            self._unasked = body
        self._record_opening(body)
        if self._sending:
            self._sending.clear()
        else:
            self._start = time.monotonic_ns()

    def _body(self) -> bytes:
        return self._sending[0] if len(self._sending) == 1 else b"".join(self._sending)

    def _record_opening(self, body: bytes) -> None:
        token = current.set(self._scope)
        try:
            self._open(body)
        except Exception as problem:
            guard.absorb(problem, self._scope.recording, f"a request to {self._url}", inside=True)
        finally:
            current.reset(token)

    def head(
        self, status: int, headers: Pairs, *, reason: str | None = None, version: str | None = None, at: int = 0
    ) -> None:
        """Take in the head of the answer: with its words and its protocol, where the adapter knows them.

        `at` is when it came, by the monotonic clock; what has one time came in one packet.
        """
        self.opened()
        self._head_us = ((at or time.monotonic_ns()) - self._start) // 1000
        self._status = status
        self._answer.pairs = list(headers)
        self._answer.reason, self._answer.version = reason, version

    def chunk(self, data: bytes, *, unended: bool = False, at: int = 0) -> None:
        """Take in a piece of the answer's body, as it came, still encoded; `unended` if more of its chunk follows."""
        if data and not self._ended:
            answer = self._answer
            answer.size += len(data)
            if answer.size <= _limits.BODY_BYTES_MAX:
                if unended:
                    answer.unended.append(len(answer.chunks))
                answer.times.append(at or time.monotonic_ns())
                answer.chunks.append(data)

    def end(self, error: BaseException | None = None, *, closed: bool = False, at: int = 0) -> None:
        """Record the answer: whole, failed with an error, or left by the client before its end (`closed`)."""
        self._answer.end = at
        self._end(error, _CLOSED if closed else None)

    def left(self) -> None:
        """Record that nobody read the answer to its end, and nobody closed it."""
        self.end(closed=True)

    def run_ends(self) -> None:
        """Record what has come so far, since nothing can be recorded later."""
        self._end(None, _RUN_ENDED)

    def _end(self, error: BaseException | None, closed: Closed) -> None:
        if abandoned.collecting():
            abandoned.leave(functools.partial(self._end, error, closed))
            return
        # Taken out in one step: of several threads that end it, one goes on.
        if self._scope.recording.exchanges.pop(id(self), None) is None:
            return
        self._ended = True
        self.opened()
        if self._later:
            self._scope.recording.later.put(functools.partial(self._record_closing, error, closed))
        else:
            self._record_closing(error, closed)

    def _record_closing(self, error: BaseException | None, closed: Closed) -> None:
        token = current.set(self._inside)
        try:
            self._close(error, closed)
        except Exception as problem:
            if self._dialect is not None:
                self._scope.recording.turns.answered(self._scope, self._span, None, "error")
            guard.absorb(problem, self._scope.recording, f"the answer of {self._url}", inside=True)
        finally:
            current.reset(token)
            self._answer = Answer()  # whoever holds on to the exchange does not hold on to the answer

    def reply(self) -> Reply | None:
        """Return the recorded answer, where a replay answers; the request is recorded by now, or is with this."""
        if (known := self._known_reply()) is not None:
            return known
        self.opened()
        return reply_to(self._span, self.end, self._request)

    async def reply_async(self) -> Reply | None:
        """Do the same in an event loop."""
        if (known := self._known_reply()) is not None:
            return known
        self.opened()
        return await reply_to_async(self._span, self.end, self._request)

    def _request(self) -> Request:
        return self._method, self._url, self.headers, self._unasked

    def _known_reply(self) -> Reply | None:
        if not self._opened and self._sent_bytes <= _limits.BODY_BYTES_MAX:
            body = self._body()
            answer = known_answer(self._scope, self._method, self._url, body)
            if answer is not None:
                self._opened = self._later = True
                self._start = time.monotonic_ns()
                self._sending.clear()
                self._scope.recording.later.put(functools.partial(self._record_opening, body))
                return Reply(answer)
        return None

    @property
    def ended(self) -> bool:
        """Say whether the answer is recorded."""
        return self._ended

    # How the request is recorded.

    def _open(self, body: bytes) -> None:
        recording = self._scope.recording
        recording.learn_from_request(self.headers, self._url)
        counts: dict[str, int] = {}
        value, form = kept_request(recording.redactor, body, self.headers, counts)
        if form == wire.UNOPENED:
            recording.lose("body_unopened")
        if self._sent_bytes > _limits.BODY_BYTES_MAX:
            recording.lose("body_too_large")
        pairs = recording.headers.pairs(self.headers, True, counts)
        method, url = orjson.dumps(self._method), recording.headers.url(self._url, counts)
        found = None if self._scope.span in recording.turns.by_hand else dialects.find(self._method, self._url)
        request = None if found is None else parsed(value, form)
        if found is None or request is None or not dialects.speaks(found[0], request):
            self._inside = recording.turns.inside(self._scope)
            fields = {} if form == wire.NONE else {"body": value}
            before = b'"method":%b,"url":%b,"form":"%b","headers":' % (method, url, form.encode())
            address = orjson.loads(url)  # redacted, as it is recorded

            parts = bodies.multipart_identity(value, self.headers)

            def question(data: Any) -> tuple[str | None, Any]:
                return self._method, [address, data.get("body") if parts is None else parts]

            self._span = recording.emit_fields(
                "http.sent",
                fields,
                parent=self._inside.span,
                opens=True,
                keyed=question,
                spliced=Spliced(before, pairs, b"", "/headers", asking=True),
                on_written=self._wrote,
            )
        else:
            before = b'"http":{"method":%b,"url":%b,"form":"%b","headers":' % (method, url, form.encode())
            self._open_model(found, request, value, form, Spliced(before, pairs, b"}", "/http/headers", True))
        recording.count_redacted(counts)

    def _open_model(
        self, found: tuple[Dialect, str, str], request: Any, value: Any, form: str, spliced: Spliced
    ) -> None:
        dialect, provider, operation = found
        recording = self._scope.recording
        asked = dialect.asked(request, dialects.split(self._url)[1])
        self._dialect, self._provider = dialect, provider
        turns = recording.turns
        attempt = turns.attempt(self._scope, self._url, request)
        fields: dict[str, Any] = {"provider": provider}
        if asked.model is not None:
            fields["model"] = self._model = asked.model
        fields["operation"], fields["request"] = operation, request
        if attempt > 1:
            fields["attempt"] = attempt
        if request is not value or not form.startswith(wire.JSON):
            fields["body"] = value

        def question(data: Any) -> tuple[str | None, Any]:
            return data.get("model"), [operation, dialects.normalised(dialect, data.get("request"))]

        with turns.lock:
            self._inside, before = turns.begin(self._scope, asked.results, again=attempt > 1)
            parent = self._inside.span
            self._span = recording.emit_fields(
                "model.invoked",
                fields,
                parent=parent,
                opens=True,
                keyed=question,
                spliced=spliced,
                before=before,
                answered=self._later,
                on_written=self._wrote,
            )
            if before is not None and self._span is not None:
                self._inside = turns.opened(self._scope, str(int(self._span) - 1))  # it was written right before
            if self._span is not None:
                turns.asking(self._span, self._inside.span)

    def _wrote(self, at_us: int) -> None:
        self._written_us = at_us

    # How the answer is recorded.

    def _close(self, error: BaseException | None, closed: Closed) -> None:
        recording, answer = self._scope.recording, self._answer
        counts: dict[str, int] = {}
        answer.headers = texts(answer.pairs)
        if answer.size > _limits.BODY_BYTES_MAX:
            recording.lose("body_too_large")
        whole = error is None and not closed
        kept_answer(recording.redactor, answer, self._dialect is not None, self._start, counts, whole=whole)
        if answer.form == wire.UNOPENED:
            recording.lose("body_unopened")
        pairs = recording.headers.pairs(answer.headers, False, counts)
        told = [] if self._status is None else [b'"status":%d' % self._status]
        told += bodies.first_line(recording.redactor, answer, self._status, counts)
        recording.count_redacted(counts)
        told.append(b'"form":"%b"' % answer.form.encode())
        if self._head_us is not None:
            told.append(b'"head_us":%d' % self._head_us)
        if self._written_us is not None:
            told.append(b'"sent_us":%d' % (self._start // 1000 - self._written_us))
        told.append(b'"headers":')
        if self._dialect is None:
            described = None if error is None else describe_error(error)
            status: kinds.Status = outcome(error)
            if closed:
                status, described = "cancelled", closed
            fields: dict[str, Any] = {"outcome": status}
            if answer.form != wire.NONE:
                fields["body"] = answer.value
            self._emit("http.received", fields, described, Spliced(b",".join(told), pairs, b"", "/headers", False))
        else:
            spliced = Spliced(b'"http":{' + b",".join(told), pairs, b"}", "/http/headers", asking=False)
            self._close_model(self._dialect, error, closed, spliced)

    def _close_model(self, dialect: Dialect, error: BaseException | None, closed: Closed, spliced: Spliced) -> None:
        answer = self._answer
        answered: Answered | None = None
        if answer.documents is not None and self._status is not None and self._status < 400:
            answered = dialect.answered(answer.documents, answer.streamed)
        status, described = bodies.outcome_of(self._answer, self._status, error, closed, answered)
        if answer.streamed and answer.form in (wire.TEXT, wire.BYTES) and self._hide_split_secrets(answered):
            # What was in several of its parts is in several places of what they say together, too.
            found = dialects.documents(wire.write(answer.value, answer.form), answer.media)
            answered = None if found is None or answered is None else dialect.answered(*found)
        response = answered.response if answered is not None else answer.first
        fields: dict[str, Any] = {"status": status}
        if response is not None:
            fields["response"] = response
        recording = self._scope.recording
        if answer.aside is not None and answer.aside[1] == recording.redactor.generation and answer.form == wire.TEXT:
            spliced = spliced.after_blob("body", recording.store.put_blob(answer.aside[0]), len(answer.aside[0]))
        elif answer.form != wire.NONE and not (response is answer.value and answer.form.startswith(wire.JSON)):
            fields["body"] = answer.value
        if answered is not None:
            if answered.usage is not None:
                fields["usage"] = kinds.as_fields(answered.usage)
                enforcing.answered(recording, self._provider, (answered.model, self._model), fields["usage"])
            if answered.finish is not None:
                fields["finish"] = answered.finish
            if answered.model is not None:
                fields["model"] = answered.model
        after = recording.turns.answered(self._scope, self._span, answered, status)
        self._emit("model.responded", fields, described, spliced, after)

    def _hide_split_secrets(self, answered: Answered | None) -> bool:
        """Look at the events of a stream together where what they say together looks like a secret, or is not known."""
        recording = self._scope.recording
        assembled = None if answered is None else answered.response
        if assembled is not None and not recording.redactor.suspicious(orjson.dumps(assembled, default=str)):
            return False
        self._answer.aside = None  # what is learned from it when it is written may stand there too
        counts: dict[str, int] = {}
        hidden = bodies.hide_split_secrets(recording.redactor, self._answer, counts)
        recording.count_redacted(counts)
        return hidden

    def _emit(
        self,
        kind: str,
        fields: dict[str, Any],
        error: dict[str, Any] | None,
        spliced: Spliced,
        after: Around | None = None,
    ) -> None:
        recording = self._scope.recording
        if self._answer.pieces is not None:
            fields["chunks"] = self._answer.pieces
        if error is not None:
            fields["error"] = error
        if self._span is None:
            recording.lose("unopened_span")
        else:
            parent = self._inside.span
            recording.emit_fields(kind, fields, span=self._span, parent=parent, spliced=spliced, after=after)
