"""Open a run, join the one this process belongs to, or take part in the one that is current, as the place demands."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import Token
from pathlib import Path
from types import TracebackType
from typing import Any

from playhead._ids import is_run_id
from playhead.capture import enforcing, environment, guard, lanes, reads, snapshots
from playhead.capture.ambient import RUN_VARIABLE
from playhead.capture.opening import default_settings, open_recording, policy_around, withdraw
from playhead.capture.recording import Recording
from playhead.capture.request import Envelope
from playhead.capture.scope import Ambient, Lane, Policy, Scope, ambient, context, live, policies
from playhead.capture.spans import Span, outcome
from playhead.event import kinds
from playhead.event.envelope import kind_of, parse
from playhead.event.plain import describe_error
from playhead.settings import Settings
from playhead.store.base import Store
from playhead.store.files import FileStore

_run_of_this_process: str | None = None  # what RUN_VARIABLE said

_adopted: set[str] = set()  # runs that this process knows to be adopted


@dataclasses.dataclass
class Replaying:
    """What a run is told that is opened while this process replays another: whence it comes, and where it is kept."""

    origin: dict[str, Any]
    store: Store
    run: str | None = None  # the first that was opened


replayed: Replaying | None = None


class Record(Span):
    """One execution of an agent.

    The outermost one is a run. Under `playhead record -- CMD` it adopts the run of the process. Inside another one it
    is a step. Set `output` to what the agent answers, and `metadata` to what should go with it.
    """

    _keeps_effects = True

    def __init__(
        self,
        name: str,
        *,
        input: Any = None,
        agent: Mapping[str, Any] | None = None,
        function: Callable[..., Any] | None = None,
        policy: Policy | None = None,
        store: Store | str | Path | None = None,
        tags: Mapping[str, str] | None = None,
        origin: Mapping[str, Any] | None = None,
        strict: bool | None = None,
        capture: bool = True,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare; `told` is what `run.started` says of code and machine, in place of looking around."""
        super().__init__()
        self.name = name
        self.output: Any = None
        self.metadata: dict[str, Any] = {}
        self.recording: Recording | None = None
        self._envelope = Envelope.of(input, name)
        self._agent = dict(agent) if agent else {"name": name}
        self._function = function
        self._policy = policy
        self._store = store
        self._tags = {key: str(value) for key, value in (tags or {}).items()}
        self._origin = dict(origin) if origin else None
        self._strict = strict
        self._capture = capture
        self._told = told
        self._role = "none"
        self._joined: Recording | None = None  # opened by us in a run that is not ours
        self._strict_outside: bool | None = None  # of a run that we take part in with another mind
        self._policies_inside: tuple[Policy, ...] | None = None
        self._policies_token: Token[tuple[Policy, ...]] | None = None

    @property
    def id(self) -> str | None:
        """Return the id of the run; None while nothing is recorded."""
        return self.recording.id if self.recording else None

    @property
    def path(self) -> Path | None:
        """Return the run directory."""
        return self.recording.path if self.recording else None

    @property
    def lost(self) -> int:
        """Return how many events could not be recorded so far."""
        return self.recording.lost if self.recording else 0

    def sync(self) -> None:
        """Return when everything recorded so far survives a power loss."""
        if self.recording:
            self.recording.sync()

    def record(self, kind: str, data: Mapping[str, Any]) -> None:
        """Record an event of any kind, for instance one of your own such as `review.requested`."""
        if self.recording:
            self.recording.record(kind, data)

    def begin(self) -> None:
        if self._policy is not None:
            self._policies_inside = (*policies.get(), self._policy)
            lanes.install()  # so that the policy holds in threads too, recorded or not
        try:
            self._begin()
        except BaseException:
            self._leave_policies()
            raise

    def _leave_policies(self) -> None:
        if self._policies_inside is not None:
            self._policies_inside = None
            lanes.uninstall()

    def _begin(self) -> None:
        process = ambient() if context() is None else None
        if process is None or (process.origin is None and self._store is None):
            outer = live()
            if outer is not None:
                self._take_part(outer)
                return
        strict = bool(self._strict)
        try:
            settings = default_settings()
            if settings.disabled:
                return
            if self._strict is not None:
                settings = dataclasses.replace(settings, strict=self._strict)
            strict = settings.strict
            self._open(settings, process)
        except Exception as problem:
            opened, self.recording = self.recording, None
            if opened is not None:
                withdraw(opened)
            enforcing.insist(problem)
            guard.give_up(problem, f"the run {self.name!r} is not recorded", strict)

    def _take_part(self, outer: Scope) -> None:
        """Be a step of a run that is open, and adopt it where it is the launcher's and no agent has yet."""
        self._role, self.recording, self._outside = "step", outer.recording, outer
        process = ambient()
        if process is not None and process.origin is None and process.recording is outer.recording:
            if self._strict is not None:
                self._strict_outside, outer.recording.strict = outer.recording.strict, self._strict
            self._join(outer)
        else:
            self.span = outer.recording.emit(self._step_started(outer), parent=outer.span)
        outer.recording.turns.places.add(self.span)
        self._inside = outer.inside(self.span)

    def _open(self, settings: Settings, process: Ambient | None) -> None:
        store = _store(self._store, settings)
        run = _run_of_process() if self._store is None else None
        if run is not None:
            self._joined = self.recording = join_run(store, settings, run, policy=self._policy, captures=self._capture)
            self._outside = Scope(self.recording, "0", Lane(tap=self.recording.tap))
            self._join(self._outside)
            self._inside = self._outside.inside(self.span)
            self.recording.turns.places.add(self.span)
            return
        if replayed is not None:
            store, self._origin = replayed.store, replayed.origin
        source = None if process is None else process.source()
        rules = policy_around(source, settings) or enforcing.OF_FOLDER
        recording = open_recording(store, settings, policy=self._policy, captures=self._capture, rules=rules)
        if not self._capture and self._origin is None:
            self.recording = recording  # to be let go of
            enforcing.refuse_uncaptured(recording)
        self._origin = self._origin or source
        if replayed is not None:
            replayed.run = replayed.run or recording.id
        self._role, self.recording = "run", recording
        recording.start(
            kinds.RunStarted(
                name=self.name,
                input=self._envelope.as_dict(),
                agent=self._agent,
                entrypoint=environment.entrypoint(self._function) if self._told is None else self._told["entrypoint"],
                environment=None if self._told is None else self._told["environment"],
                origin=self._origin,
                tags=self._tags,
                ambient=reads.watched(recording),
                effects=None if self._capture and self._keeps_effects else False,
            )
        )
        self.span = recording.root_span
        self._outside = self._inside = Scope(recording, recording.root_span, Lane(tap=recording.tap))
        reads.begin(self._inside.lane)

    def _join(self, scope: Scope) -> None:
        """Open the step of an agent in a run that is not its own; the first one adopts the run.

        Who is first is decided under the lock of the timeline: other threads and processes may begin at the same time.
        """
        recording, self._role = scope.recording, "step"

        def decide(encoded: bytes, seq: int, root: str) -> bytes:
            _adopted.add(recording.id)
            if _is_adopted(recording.store, recording.id):
                return encoded
            self._role = "adopted"
            return b'%b,"adopts":true}' % encoded[:-1]

        started = kinds.as_fields(self._step_started(scope))
        sealing = None if recording.id in _adopted else decide
        self.span = recording.emit_fields("step.started", started, parent=scope.span, opens=True, sealing=sealing)
        if self._policy is not None:  # run.started was written before anybody knew of it
            snapshots.keep_policy(recording, self._policy, self.span)

    def _step_started(self, scope: Scope) -> kinds.StepStarted:
        asked = self._envelope.as_dict()
        return kinds.StepStarted(
            name=self.name,
            attempt=scope.recording.attempt(scope.span, self.name),
            input=asked,
            envelope_hash=scope.recording.hash_recorded(asked),
            agent=self._agent,
            entrypoint=environment.entrypoint(self._function),
            tags=self._tags,
        )

    def end(self, error: BaseException | None = None) -> None:
        recording = self.recording
        stopped = guard.stopped_by(error)
        problem = None if stopped is None else stopped.problem
        if recording is not None and (error is None or isinstance(error, Exception)):
            problem = problem or recording.stopped  # which a library has hidden
        if recording is None or problem is None:
            self._end(error)
            return
        outside = recording.strict if self._strict_outside is None else self._strict_outside
        recording.strict, recording.stopped = False, None  # one is enough: what else is lost is counted
        self._end(problem)
        recording.strict = outside
        raise problem from (None if error is stopped else error)

    def _end(self, error: BaseException | None) -> None:
        self._leave_policies()
        scope, self._outside = self._outside, None
        if scope is None or self.recording is None:
            return
        status = outcome(error)
        failed = error if status != "ok" else None
        if self._role == "run":
            self.recording.output, self.recording.metadata = self.output, self.metadata
            self.recording.finish(status, failed)
            return
        self.recording.turns.leave(self.span)
        if self.span is not None:
            finished = kinds.StepFinished(
                status=status,
                error=None if failed is None else describe_error(failed),
                adopts=self._role == "adopted",
                output=self.output,
                metadata=self.metadata,
            )
            if self._role == "adopted":
                finished.redacted = self.recording.redacted_with(kinds.as_fields(finished))
            self.recording.emit(finished, span=self.span, parent=scope.span)
        if self._strict_outside is not None:
            self.recording.strict, self._strict_outside = self._strict_outside, None
        if self._joined is not None:
            self._joined.leave()

    def __enter__(self) -> Record:
        super().__enter__()
        if self._policies_inside is not None:
            self._policies_token = policies.set(self._policies_inside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token, self._policies_token = self._policies_token, None
        if token is not None:
            try:
                policies.reset(token)
            except ValueError:  # entered in another context: only our own goes, the others hold
                policies.set(tuple(policy for policy in policies.get() if policy is not self._policy))
        super().__exit__(kind, error, trace)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        token = None if self._policies_inside is None else policies.set(self._policies_inside)
        try:
            with super().current():
                yield
        finally:
            if token is not None:
                policies.reset(token)

    async def __aenter__(self) -> Record:
        return self.__enter__()


def join_run(
    store: Store, settings: Settings, run: str, *, policy: Policy | None = None, captures: bool = True
) -> Recording:
    """Open a run that somebody else started, and will finish."""
    recording = open_recording(store, settings, policy=policy, run=run, captures=captures)
    recording.root_span = "0"
    recording.turns.places.add("0")
    return recording


def _is_adopted(store: Store, run: str) -> bool:
    """Say whether an agent has adopted this run before; a run has one request, that of the first."""
    for line in store.lines(run):
        if b'"adopts":true' in line and kind_of(line) == "step.started" and parse(line).data.get("adopts") is True:
            return True
    return False


def _store(given: Store | str | Path | None, settings: Settings) -> Store:
    if given is None:
        return FileStore(settings.store_root())
    return FileStore(given) if isinstance(given, (str, Path)) else given


def _run_of_process() -> str | None:
    """Return the run that `playhead record` opened for this process.

    The variable is taken out of the environment: programs that the agent starts are runs of their own.
    """
    global _run_of_this_process
    named = os.environ.get(RUN_VARIABLE, "")
    if is_run_id(named):
        _run_of_this_process = os.environ.pop(RUN_VARIABLE)
    return _run_of_this_process
