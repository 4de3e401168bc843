"""Record one run: turn what the agent does into events of one ledger."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playhead._version import __version__
from playhead.capture import (
    answering,
    clients,
    effects,
    forks,
    git,
    guard,
    lanes,
    origin,
    reads,
    redact_http,
    request,
    snapshots,
    written,
)
from playhead.capture.gate import Gate
from playhead.capture.headers import Headers, Spliced
from playhead.capture.later import Later
from playhead.capture.scope import Lane, Policy, lane_in, live
from playhead.capture.turns import Turns
from playhead.errors import PlayheadError, UsageError, WriteFailed
from playhead.event import kinds
from playhead.event.envelope import KIND_FORM, parse
from playhead.event.keys import ASKED, call_key
from playhead.event.plain import describe_error
from playhead.event.plainer import inline_blobs
from playhead.event.references import Held
from playhead.ledger.writer import Around, Ledger
from playhead.settings import Settings
from playhead.store import layout
from playhead.store.base import Store


class Recording:
    """A run that is being recorded. `with playhead.record(...) as run` yields one."""

    def __init__(
        self,
        run: str,
        store: Store,
        ledger: Ledger,
        gate: Gate,
        *,
        settings: Settings,
        policy: Policy | None = None,
        captures: bool = True,
        begun: bool = False,
    ) -> None:
        self.id = run
        self.store = store
        self.settings = settings
        self.strict = settings.strict
        self.policy = policy
        self.output: Any = None
        self.metadata: dict[str, Any] = {}
        self.redacted: dict[str, int] = {}
        self._ledger = ledger
        self._gate = gate
        self._held = Held(self._read_back)
        self._cuts = 0
        self._pid = os.getpid()
        self._closed = self.told_late = False
        self.stopped: Exception | None = None  # what could not be recorded inside a library, under `strict`
        self.closed = False  # nothing more can be recorded; a thread that outlives the run may still try
        self.root_span: str | None = None
        self.working_tree: git.GitState | None = None
        self._attempts: dict[tuple[str | None, str], int] = {}
        self._not_captured: set[tuple[str, str]] = set()
        self._begun = begun  # there is a run.started
        self.captures = captures  # the traffic of everything in the run, not only of what is wrapped
        self.redactor = gate.redactor
        self.headers = Headers(gate.redactor)
        self.turns_so_far = Turns(self)
        self.exchanges: dict[int, Any] = {}  # by id, weakly: those whose answer is not recorded yet
        self.later = Later(self)
        self.tap = reads.tap_for(self)
        self.first_lane: Lane | None = None
        self.unsealed: deque[Any] = deque()  # packs of reads whose writing was interrupted
        forks.watch(self)
        lanes.install()
        clients.install()
        effects.install()

    @property
    def path(self) -> Path | None:
        """Return the run directory, where the store has one."""
        root = getattr(self.store, "root", None)
        return None if root is None else layout.run_dir(Path(root), self.id)

    @property
    def turns(self) -> Turns:
        """Return what is known of the conversations, up to now."""
        if self.later.waiting:
            self.later.settle()
        return self.turns_so_far

    @property
    def lost(self) -> int:
        """Return how many events could not be recorded so far."""
        return self._ledger.loss_total

    def sync(self) -> None:
        """Return when everything recorded so far survives a power loss, and what was read with it."""
        try:
            reads.settle(self)
            self._ledger.sync()
        except Exception as problem:
            guard.absorb(problem, self, "a flush to the disk", count=0)  # late on the disk, not lost

    def record(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record an event of any kind, for instance one of your own such as `review.requested`."""
        if not KIND_FORM.fullmatch(kind):
            raise UsageError(f"not a kind: {kind!r}", hint="A kind is `noun.verb`, in lower case.")
        if kind in kinds.PAYLOADS and kind not in _BY_HAND:
            raise UsageError(
                f"{kind} is written by the recorder itself",
                hint=f"Use the verb for it, a kind of your own, or one of {', '.join(sorted(_BY_HAND))}.",
            )
        self.emit_fields(kind, dict(data), parent=self._enclosing())

    # What the rest of capture calls.

    def emit(self, payload: kinds.Payload, *, span: str | None = None, parent: str | None = None) -> str | None:
        """Record a typed event and return its span id; None when it has none or could not be recorded."""
        kind = payload.KIND
        if kind in ASKED:
            return self.emit_fields(kind, kinds.as_fields(payload), parent=parent, opens=True, keyed=ASKED[kind])
        return self.emit_fields(
            kind, kinds.as_fields(payload), span=span, parent=parent, opens=payload.PHASE == "opens"
        )

    def emit_fields(
        self,
        kind: str,
        fields: dict[str, Any],
        *,
        span: str | None = None,
        parent: str | None = None,
        opens: bool = False,
        keyed: Callable[[Any], tuple[str | None, Any]] | None = None,
        sealing: Callable[[bytes, int, str], bytes] | None = None,
        spliced: Spliced | reads.Packed | None = None,
        before: Around | None = None,
        after: Around | None = None,
        lane: str | None = None,
        answered: bool = False,
        on_written: Callable[[int], object] | None = None,
    ) -> str | None:
        """Shape, seal and write one event. This is the hot path: everything that is recorded goes through it.

        `sealing` completes the data under the lock, where its seq and the root before it are known. `answered` says
        that a replay has given the answer to this question already. `on_written` is told when it was written.
        """
        if self.closed:
            guard.too_late(self, kind)
            return None
        if self.later.waiting:
            self.later.settle()
        if lane is None:
            speaking = lane_in(self)
            lane = speaking.path
            if speaking.reads is not None and (speaking.reads.count or self.unsealed):
                reads.seal(self, speaking.reads)
        try:
            cuts = self._ledger.cuts
            if self._cuts != cuts:
                self._cuts = cuts
                self._held.forget()  # lines that it refers to are gone
            known = self._held.known
            encoded, value, blobs, news, floats, unusual_keys, redacted, cut = self._gate.shape(fields, self._held)
            if cut:
                self.lose("value_cut")
            for digest, data in blobs:
                self.store.put_blob(data, digest)
            if redacted:
                self.count_redacted(redacted)
            key = None
            if keyed is not None:
                name, question = keyed(value)
                if blobs:  # a key is of the value as it was, whatever it is written as
                    question = inline_blobs(question, dict(blobs))
                key = call_key(kind, name, question, floats, unusual_keys)
            if spliced is not None:
                encoded = spliced.join(encoded, self._held)
            body = encoded if sealing is None else functools.partial(sealing, encoded)
            sealed = self._ledger.append(kind, body, span, parent, lane, key, opens, None, None, cuts, before, after)
            if sealed is None or sealed.seq < 0:  # it will be written, and nothing can refer to it
                return None if sealed is None else sealed.span
            if on_written is not None:
                on_written(sealed.at_us)
            if self._ledger.cuts == cuts:
                if news is not None:
                    self._held.remember(sealed.seq, news, sealed.offset, len(encoded), known)
                if spliced is not None and self._held.known is known:
                    spliced.wrote(sealed.seq, self._held)
            if answering.player is not None and not answered:
                answering.player.asked(self, kind, sealed.span or str(sealed.seq), lane, key, value)
            return sealed.span
        except Exception as problem:
            guard.absorb(problem, self, kind)
            return None

    def lose(self, reason: str, count: int = 1) -> None:
        """Count what could not be recorded."""
        self._ledger.lose(reason, count)

    def not_captured(self, source: str, where: str) -> None:
        """Note, once for each source and place, what happens and cannot be recorded; nothing of ours is lost."""
        if (source, where) not in self._not_captured:
            self._not_captured.add((source, where))
            if self._begun:
                gap = kinds.GapNoted(reason="not_captured", count=0, detail={"source": source, "where": where})
                self.emit(gap, parent=self._enclosing())

    def attempt(self, parent: str | None, name: str) -> int:
        """Return how often a step of this name was started under this parent, this time included."""
        number = self._attempts.get((parent, name), 0) + 1
        self._attempts[parent, name] = number
        return number

    def artifact(
        self,
        name: str,
        data: bytes,
        *,
        role: str | None = None,
        media: str | None = None,
        parent: str | None = None,
        given: str | None = None,
    ) -> str | None:
        """Keep a file and record that it was created; return the name it got."""
        return snapshots.keep_file(self, self._gate, name, data, role, media, parent, given)

    def start(self, started: kinds.RunStarted) -> None:
        """Write run.started with everything that is known about where the run came from."""
        snapshots.begin(self, started)
        started.redaction = {"version": self._gate.redactor.version, "rules": list(self._gate.redactor.rules)}
        started.sdk = {"name": "playhead", "version": __version__}
        state = origin.look_around(self, started)
        if started.input is not None:
            started.envelope_hash = self.hash_recorded(started.input)
        self.root_span = self.emit(started)
        self.turns.places.add(self.root_span)
        self._begun, found = True, sorted(self._not_captured)
        self._not_captured.clear()
        for source, where in found:  # while the run was being opened
            self.not_captured(source, where)
        if state is not None:
            self.working_tree = state
            origin.keep_diff(self, state)

    def hash_recorded(self, recorded: Any) -> str | None:
        """Return the hash of an envelope in the form in which it will be stored."""
        try:
            return request.hash_of(self._gate.settle(recorded)[0])
        except Exception as problem:
            guard.absorb(problem, self, "the envelope's hash")
            return None

    def clean(self, data: bytes) -> bytes:
        """Return bytes without what is to be redacted, and count that."""
        counts: dict[str, int] = {}
        self._gate.look_at_variables()
        clean = self.redactor.redact_bytes(data, counts)
        self.count_redacted(counts)
        return clean

    def settled(self, value: Any) -> Any:
        """Return a value as it will be read back, and count what was redacted in it."""
        plain, counts = self._gate.settle(value)
        self.count_redacted(counts)
        return plain

    def finish(self, status: kinds.Status, error: BaseException | dict[str, Any] | None = None) -> None:
        """Write run.finished, bring everything to the disk, and let go of the run."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._pid:
            self._detach()  # a forked child that fell out of the parent's `with`: the run is the parent's to finish
            return
        try:
            self.turns.run_ends(status)
            reads.close(self)
            origin.conclude(self)
            forks.hear_children(self)
            finished = kinds.RunFinished(
                status=status,
                output=self.output,
                metadata=self.metadata,
                error=describe_error(error) if isinstance(error, BaseException) else error,
            )
            fields = kinds.as_fields(finished) | written.at_the_end(self)
            if redacted := self.redacted_with(fields):
                fields["redacted"] = redacted
            self.emit_fields("run.finished", fields, span=self.root_span or "0", sealing=_with_totals)
            self.sync()
        finally:
            self._detach()

    def redacted_with(self, fields: dict[str, Any]) -> dict[str, int]:
        """Count the redactions so far, and those in these fields, which are about to be recorded."""
        out = dict(self.redacted)
        try:
            for rule, count in self._gate.settle(fields)[1].items():
                out[rule] = out.get(rule, 0) + count
        except Exception as problem:
            guard.absorb(problem, self, "the count of redactions")
        return out

    def leave(self) -> None:
        """Let go of a run that somebody else will finish."""
        if not self._closed:
            self._closed = True
            try:
                self.turns.run_ends()
                reads.close(self)
                forks.hear_children(self)
                self.sync()
            finally:
                self._detach()

    def abandon(self) -> None:
        """Let go of a run that could not be started, whatever fails on the way."""
        self._closed, self.strict = True, False
        self._detach()

    def _detach(self) -> None:
        self.closed = True
        reads.let_go(self)
        forks.forget(self)
        lanes.uninstall()
        clients.uninstall()
        effects.uninstall()
        try:
            self._ledger.close()
        except Exception as problem:
            guard.give_up(problem, f"{self.id} was recorded, but", self.strict)
        losses = self._ledger.pending_losses
        if losses and not forks.tell_parent(self):
            told = ", ".join(f"{count} × {reason}" for reason, count in losses.items())
            guard.give_up(WriteFailed(told), f"{self.id} lost events that could not even be declared", self.strict)

    @property
    def ledger(self) -> Ledger:
        """Return the one writer of this recording."""
        return self._ledger

    def after_fork(self) -> None:
        """Go on in a forked child, as a writer of its own."""
        self._held = Held(self._read_back)  # a writer refers only to lines it wrote itself
        self.later = Later(self, forked=True)  # what its parent has yet to write is the parent's
        self.turns_so_far.after_fork()
        reads.after_fork(self)
        try:
            self._ledger.after_fork()
        except OSError as problem:
            guard.absorb(problem, self, "the fork")

    def _read_back(self, offset: int) -> Any:
        try:
            return parse(self._ledger.line_at(offset)).data
        except (OSError, PlayheadError):
            return None  # then the content is written in full once more

    def _enclosing(self) -> str | None:
        scope = live()
        return scope.span if scope is not None and scope.recording is self else self.root_span

    def learn_from_request(self, headers: list[tuple[str, str]], url: str) -> None:
        """Take the keys that a request carries as secrets from now on."""
        if self.later.waiting:
            self.later.settle()  # what was asked before this became known is recorded as it was
        self._gate.look_at_variables()
        redact_http.learn_from_request(self.redactor, headers, url)

    def count_redacted(self, counts: dict[str, int]) -> None:
        """Add to what was redacted, by rule."""
        for rule, count in counts.items():
            self.redacted[rule] = self.redacted.get(rule, 0) + count


def _with_totals(encoded: bytes, seq: int, root: str) -> bytes:
    return b'%b,"events":%d,"root":"%b"}' % (encoded[:-1], seq + 1, root.encode())  # it has a status at least


# Kinds of the table that an author may write; the others would make a run say what the recorder did not see.
_BY_HAND = frozenset({"ci.reported", "effect.observed", "note.added"})
