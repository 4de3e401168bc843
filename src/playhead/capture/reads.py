"""Record what the lanes of a run read: packed, and sealed before the lane's next event."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead import _limits
from playhead.capture import answering, audit, forks, guard, hooks, lanes, scope, sources
from playhead.capture.patches import Patches
from playhead.capture.sources import generators, modules, stdin
from playhead.event import reads as form
from playhead.event.envelope import kind_of, parse

if TYPE_CHECKING:
    from playhead.capture.recording import Recording
    from playhead.capture.scope import Lane
    from playhead.event.references import Held

_lock = threading.RLock()
_installed = 0
_asked = False  # by the program itself
_patches = Patches()
_take = operator.methodcaller("take")
_taps: set[int] = set()  # of the taps that are open


class Packed(NamedTuple):
    """Members of an event that are encoded already, and hold nothing to redact."""

    members: bytes

    def join(self, encoded: bytes, held: Held) -> bytes:
        """Return the data of an event with these members at its end."""
        comma = b"," if len(encoded) > 2 and self.members else b""
        return b"%b%b%b}" % (encoded[:-1], comma, self.members)

    def wrote(self, seq: int, held: Held) -> None:
        """Remember nothing: nothing refers to them."""


def prepare() -> None:
    """Get ready to watch, so that what lies below can be replaced before."""
    hooks.prepare(_complain)


def beneath(work: Callable[[], object]) -> None:
    """Do something below what is watched, such as to replace it: nothing is watched meanwhile."""
    with _lock:
        if _installed:
            sources.unwatch_all()
            hooks.restore()
        try:
            work()
        finally:
            if _installed:
                sources.watch_all()


def install() -> None:
    """Begin to watch what programs read; counted, so that every call needs one `uninstall`."""
    global _installed
    with _lock:
        _installed += 1
        if _installed == 1:
            hooks.watched = True
            hooks.prepare(_complain)
            hooks.listen(len(_taps))
            sources.watch_all()


def uninstall() -> None:
    """Restore what was there before the first `install`."""
    global _installed
    with _lock:
        _installed -= 1
        if _installed == 0:
            hooks.watched = False
            sources.unwatch_all()
            hooks.restore()


def install_once() -> None:
    """Begin to watch in the name of the program, however often it asks."""
    global _asked
    with _lock:
        if not _asked:
            _asked = True
            install()


def uninstall_once() -> None:
    """End that."""
    global _asked
    with _lock:
        if _asked:
            _asked = False
            uninstall()


def watched(recording: Recording) -> bool:
    """Say whether what the lanes of a run read is kept, as things stand."""
    return recording.captures and _installed > 0


def tap_for(recording: Recording) -> Any:
    """Return where the lanes of a run keep what they read, and in which order they ended; None if nothing is wanted."""
    return open_tap(recording) if recording.captures else None


def open_tap(recording: Recording | None = None) -> Any:
    """Return a tap for a run, or for one that is yet to be opened and `attach`ed."""
    tap = hooks.Tap(_drop, _ignore, _limits.READS_MAX, _limits.READS_PACKED_MAX)
    if recording is not None:
        attach(tap, recording)
    with _lock:
        _taps.add(id(tap))
        hooks.listen(len(_taps))
        if len(_taps) == 1:
            _patches.replace(os, "_exit", _exiting)
            audit.listen("os.exec", _becoming)
    return tap


def attach(tap: Any, recording: Recording) -> None:
    """Let a run have what its lanes read."""

    def full(of: str, by: str) -> None:
        source = of.rpartition(":")[2]
        sort = "clocks" if source.startswith(("time.", "datetime.")) else "all but clocks"
        where = f"{sort}, after {_limits.READS_MAX} reads of them; the first that is missing: {source}, by {by}"
        recording.not_captured("reads", where)

    tap.owner, tap.begun = recording, write_soon
    tap.seal, tap.full = (lambda pack: seal(recording, pack)), full


def hand_over(tap: Any, recording: Recording) -> None:
    """Let a run that has just been opened have what was read before it was."""
    let_go(recording)
    recording.tap = tap
    attach(tap, recording)
    if tap.remaining < 0:
        recording.not_captured("reads", f"before the first event, all but the first {_limits.READS_PACKED_MAX}")
    tap.remaining = tap.clocks_remaining = _limits.READS_MAX
    sources.tell_unlike(recording)


def begin(lane: Lane) -> None:
    """Keep the state of what a run finds when it begins, in its first lane."""
    if lane.reads is not None and _installed:
        lane.tap.owner.first_lane = lane
        sources.tell_unlike(lane.reads.tap.owner)
        generators.note_states(lane.reads, None)


def seal(recording: Recording, pack: Any) -> None:
    """Write what a pack holds as one event of its lane."""
    if recording.closed:
        return
    if _installed:
        modules.note_new(_first(recording, pack), None)
    _write(recording, pack)


def _first(recording: Recording, pack: Any) -> Any:
    """Return the pack of the first lane of this process: what it imports belongs there, whoever is written first."""
    lane = _first_lane(recording)
    return pack if lane is None or lane.reads is None or lane.tap is not pack.tap else lane.reads


def _first_lane(recording: Recording) -> Lane | None:
    process = scope.ambient()
    return recording.first_lane if process is None or process.recording is not recording else process.lane


def _write(recording: Recording, *packs: Any) -> None:
    """Write what is left of packs that were interrupted, and these."""
    taken: list[tuple[Any, Any]] = []
    written, since = 0, -1
    try:
        # Each in one step: a signal handler may raise between any two.
        with contextlib.suppress(IndexError):
            taken.extend(iter(recording.unsealed.popleft, None))
        taken.extend(zip(packs, map(_take, packs), strict=True))
        for pack, (order, groups, span) in taken:
            since, _ = recording.ledger.head
            if groups:
                fields, members = form.written(*stdin.joined(recording, order, groups))
                parent = recording.root_span if span is None else span
                recording.emit_fields("ambient.read", fields, parent=parent, spliced=Packed(members), lane=pack.lane)
            written += 1
    except BaseException:  # an interrupt: they are in no pack any more, and in no event
        if since >= 0 and written < len(taken) and _is_there(recording, since, taken[written][0].lane):
            written += 1  # the interrupt came right after it
        recording.unsealed.extend(taken[written:])
        raise


def _is_there(recording: Recording, since: int, lane: str) -> bool:
    """Say whether an event of reads of this lane was written after a certain one: nobody else writes them now."""
    lines = (line for line in recording.store.lines(recording.id) if kind_of(line) == "ambient.read")
    return any(event.seq > since and event.lane == lane for event in map(parse, lines))


def close(recording: Recording) -> None:
    """Write what is left at the end of a run, and keep nothing from now on."""
    tap = recording.tap
    if tap is not None:
        lane = _first_lane(recording)
        if _installed and lane is not None and lane.reads is not None and lane.reads.tap is tap:
            modules.note_new(lane.reads, None)  # of a program that has read nothing else, too
        for last in (False, True):  # once more, for what came meanwhile
            if last:
                tap.open = 0
            for pack in tap.waiting():
                seal(recording, pack)
        _write(recording)


def let_go(recording: Recording) -> None:
    """Let go of what a run kept, sealed or not."""
    tap, recording.tap = recording.tap, None
    if tap is not None:
        tap.open, tap.owner, tap.begun = 0, None, None
        with _lock:
            _taps.discard(id(tap))
            hooks.listen(len(_taps))
            if not _taps:
                audit.unlisten("os.exec", _becoming)
                _patches.restore()


def _ended(parent: Lane | None, child: Lane, outcome: str) -> None:
    """Keep in the lane that waits for it that another one has ended, and write what that one has read."""
    if parent is not None and parent.reads is not None:
        named = [child.name] if child.name else []
        told = [child.path, time.time_ns() // 1000, outcome, *named]
        parent.reads.add("lane.ended", "", told, 40 + len(child.name))
    if child.reads is not None and child.reads.count and child.tap.owner is not None:
        seal(child.tap.owner, child.reads)


def _exiting(original: Any) -> Any:
    @functools.wraps(original)
    def _exit(status: int) -> Any:
        try:
            try:
                _keep_handlers_out()
            finally:
                if answering.player is not None:
                    answering.player.report()
                _seal_all()
                for recording in forks.recordings():
                    forks.tell_parent(recording)
        finally:
            original(status)  # whatever a signal handler raises meanwhile: who calls this counts on it

    return _exit


def _keep_handlers_out() -> None:
    """Let no signal handler of the program run any more: without us the process would be gone by now."""
    import _signal  # type: ignore[import-not-found]  # what `signal` is made of, which a program may not have loaded

    handled = [number for number in _signal.valid_signals() if callable(_signal.getsignal(number))]
    _signal.pthread_sigmask(_signal.SIG_BLOCK, handled)


def write_soon() -> None:
    """Let what is read or answered from now on be written soon, if no other event comes before: the program may hang,
    or die.
    """
    from playhead.store import syncer  # loaded by whoever opened the run

    syncer.soon(_write_waiting)


def _write_waiting() -> None:
    for recording in forks.recordings():
        guard.aside(recording.later.settle, [recording])
    guard.aside(_settle_all, forks.recordings())
    if any(recording.tap is not None and recording.tap.waiting() for recording in forks.recordings()):
        write_soon()  # they have begun meanwhile, when others were waiting already


def _settle_all() -> None:
    for recording in forks.recordings():
        settle(recording)


def settle(recording: Recording) -> None:
    """Write what is yet to be written, and what all lanes have read: no event of a lane may come between taking that
    and writing it.
    """
    recording.later.settle()
    for pack in () if recording.tap is None else recording.tap.waiting():
        with recording.ledger.lock:
            seal(recording, pack)


def _becoming(args: tuple[Any, ...]) -> None:
    _seal_all()


def _seal_all() -> None:
    """Write what all lanes have read: this process ends, or becomes another program, without a word."""
    for recording in forks.recordings():
        recording.later.settle()
        if recording.tap is not None:
            for pack in recording.tap.waiting():
                seal(recording, pack)


def after_fork(recording: Recording) -> None:
    """Forget in a forked child what its parent has read, and will seal."""
    if recording.tap is not None:
        for pack in recording.tap.waiting():
            pack.take()
    recording.unsealed.clear()


def _drop(pack: Any) -> None:
    pack.tap.remaining = (
        pack.tap.clocks_remaining
    ) = -1  # there is no run yet, and may never be one: the beginning is enough


def _ignore(of: str, by: str) -> None:
    """Say nothing: there is no run to say it in."""


def _complain(problem: Exception) -> None:
    for recording in forks.recordings():
        guard.absorb(problem, recording, "a read", inside=True)


lanes.on_end = _ended


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
