"""Name everything that can go wrong, once.

    PlayheadError
    ├── UsageError              what was asked cannot be asked
    │   ├── BadName             an artifact name that could leave the run directory, or is unusable
    │   ├── ArtifactNotFound    no event of the run recorded an artifact of that name
    │   └── ConfigError         a setting that cannot be read
    ├── RunNotFound             no run answers to that name
    │   ├── AmbiguousRun        more than one does
    │   └── EventNotFound       the run has no event of that number
    ├── NotFound                the server keeps no key, cassette or job of that id
    ├── KeyRefused              an API key is not known, was revoked, or has expired
    ├── Conflict                what is asked for contradicts what is there already
    ├── StoreError              the place where runs are kept cannot be used
    │   └── StoreTooNew         a newer Playhead wrote it; reading still works
    ├── LedgerError             a timeline could not be extended or read
    │   ├── WriteFailed         the operating system refused the bytes
    │   ├── LedgerClosed        the writer was closed
    │   └── BrokenLine          a line is not what a line must be
    ├── MissingContent          a blob or a referenced line is gone
    ├── Altered                 a record or an artifact is not what was recorded
    ├── NotComparable           two runs cannot be compared
    ├── BadCassette             a file is no cassette, or one that cannot be trusted
    ├── BadImport               a file or a repository cannot be imported
    ├── BadBody                 what was sent cannot be read at all
    ├── NotReplayable           playback was refused; `reasons` says why
    ├── EnvelopeMismatch        the request differs from the recorded one (the seeds' ReplayHashMismatch)
    ├── RecordedError           the recorded run ended in this error
    ├── PolicyDenied            a policy said no
    │   └── EffectDenied        to something outside the process; a PermissionError too
    ├── BadRequest              a request over HTTP cannot be answered as it is
    │   ├── NotThere            there is nothing at this address
    │   ├── NotAllowed          nothing of that kind can be done there
    │   ├── Forbidden           whoever asks may not
    │   ├── TooLarge            more than is taken in at once
    │   ├── UnknownMedia        a form that is not read here
    │   ├── TooMany             more often than is allowed
    │   ├── LinesMissing        lines were sent that come after some that are not here
    │   └── Busy                the server has too much to do just now
    ├── ServerError             a server did not answer, or not as a server of Playhead does
    ├── InFlight                a call was under way when the run was cut off that is resumed
    └── Refused                 a replay does not touch the world
        ├── WriteRefused        a file outside the scratch folder; a PermissionError too
        └── NetworkRefused      the network; a ConnectionRefusedError too

    DeviationError              a replay asked what was not recorded: no Exception, since libraries catch those
    RecordingStopped            `strict`, inside a library: no Exception, since libraries catch those and try again

Each class has a stable `code` for scripts, and each instance may carry a `hint` that says what to do next:
`message` is the one without the other, `str(error)` is both.
"""

from __future__ import annotations

import errno
from typing import Any

from playhead.errors.base import PlayheadError as PlayheadError
from playhead.errors.served import BadRequest as BadRequest
from playhead.errors.served import Busy as Busy
from playhead.errors.served import Forbidden as Forbidden
from playhead.errors.served import LinesMissing as LinesMissing
from playhead.errors.served import NotAllowed as NotAllowed
from playhead.errors.served import NotThere as NotThere
from playhead.errors.served import ServerError as ServerError
from playhead.errors.served import TooLarge as TooLarge
from playhead.errors.served import TooMany as TooMany
from playhead.errors.served import UnknownMedia as UnknownMedia


class UsageError(PlayheadError):
    """What was asked cannot be asked."""

    code = "usage"


class BadName(UsageError):
    """An artifact name that could leave the run directory, or that no file can have."""

    code = "bad_name"
    default_hint = "Use a relative name such as 'patch.diff' or 'logs/test.txt'."


class ArtifactNotFound(UsageError):
    """No event of the run recorded an artifact of that name."""

    code = "artifact_not_found"


class ConfigError(UsageError):
    """A setting cannot be read."""

    code = "config"
    default_hint = "See docs/reference/configuration.md for every setting and its form."


class RunNotFound(PlayheadError):
    """No run answers to that name."""

    code = "run_not_found"
    default_hint = "`playhead ls` lists the runs of this store; `--store DIR` names another one."


class EventNotFound(RunNotFound):
    """The run has no event of that number."""

    code = "event_not_found"
    default_hint = "`playhead show RUN` lists its events."


class AmbiguousRun(RunNotFound):
    """More than one run begins with that prefix."""

    code = "run_ambiguous"
    default_hint = "Give more letters of the id."


class NotFound(PlayheadError):
    """The server keeps no key, cassette or job of that id, in this project."""

    code = "not_found"
    default_hint = "Ids are told when something is made, and by the lists of the same project."


class KeyRefused(PlayheadError):
    """An API key is not known, was revoked, or has expired."""

    code = "key_refused"
    default_hint = "`playhead keys create` makes a key, on the machine of the server."


class Conflict(PlayheadError):
    """What is asked for contradicts what is there already."""

    code = "conflict"
    default_hint = "Look at what is there, and ask for something else."


class StoreError(PlayheadError):
    """The place where runs are kept cannot be used."""

    code = "store"
    default_hint = "`playhead doctor` says what is wrong with the store."


class StoreTooNew(StoreError):
    """A newer Playhead wrote this store; it can be read, not written."""

    code = "store_too_new"
    default_hint = "Upgrade with `pip install -U playhead`; reading works meanwhile."


class LedgerError(PlayheadError):
    """A timeline could not be extended or read."""

    code = "ledger"


class WriteFailed(LedgerError):
    """The operating system refused the bytes of an event."""

    code = "write_failed"
    default_hint = "Free some space or fix the permissions of the store; `playhead doctor` checks both."


class LedgerClosed(LedgerError):
    """The writer of this run was closed."""

    code = "ledger_closed"
    default_hint = "Record inside `with playhead.record(...)`."


class BrokenLine(LedgerError):
    """A line is not what a line must be."""

    code = "broken_line"
    default_hint = "`playhead verify RUN` names the first bad line and what is wrong with it."


class MissingContent(PlayheadError):
    """A blob or a referenced line is gone."""

    code = "missing_content"
    default_hint = "`playhead verify RUN` lists what is missing."


class Altered(PlayheadError):
    """A record or an artifact is not what was recorded."""

    code = "altered"
    default_hint = "`playhead verify RUN` says what was altered."


class NotComparable(PlayheadError):
    """Two runs cannot be compared, which is not the same as that they do not differ."""

    code = "not_comparable"
    default_hint = "`playhead verify RUN` says what is wrong with a run."


class BadCassette(PlayheadError):
    """A file is no cassette, or is not built as one: it is not read any further."""

    code = "bad_cassette"
    default_hint = "Take the file again from where it came from, or pack the run anew."


class BadImport(PlayheadError):
    """A file or a repository is not what it should be, or more than can be taken in: nothing of it is imported."""

    code = "bad_import"
    default_hint = "docs/guides/git-and-ci.md says what can be imported, and docs/reference/limits.md how much."


class BadBody(PlayheadError):
    """What was sent is not what its media type says, or is damaged: nothing of it was taken."""

    code = "bad_body"
    default_hint = "Send OTLP as protobuf or JSON, with the media type that says which: docs/reference/otlp.md."


class NotReplayable(PlayheadError):
    """Playback was refused. `reasons` holds the named reasons, most important first."""

    code = "not_replayable"
    default_hint = "`--force` (or force=True) plays back what there is, with a warning."

    def __init__(self, message: str, *, reasons: list[str], hint: str | None = None, detail: Any = None) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.reasons = reasons


class EnvelopeMismatch(PlayheadError):
    """The request is not the one that was recorded."""

    code = "envelope_mismatch"
    default_hint = "This run answers another request: execute the agent, or look with playhead.find(envelope=...)."

    def __init__(self, message: str, *, expected: str, actual: str) -> None:
        super().__init__(message, detail={"expected": expected, "actual": actual})
        self.expected = expected
        self.actual = actual


ReplayHashMismatch = EnvelopeMismatch


class RecordedError(PlayheadError):
    """The recorded run ended in this error; `error` is what was recorded."""

    code = "recorded_error"
    default_hint = "This is the original error played back, not a new failure."

    def __init__(self, message: str, *, error: dict[str, Any]) -> None:
        super().__init__(message, detail=error)
        self.error = error


class PolicyDenied(PlayheadError):
    """A policy said no. The decision is in the timeline."""

    code = "policy_denied"
    default_hint = "The decision and its rule are in the timeline (`playhead show @last`)."

    def __init__(
        self,
        message: str,
        *,
        capability: str = "",
        resource: str | None = None,
        rule: str = "",
        reason: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(
            message,
            hint=hint,
            detail={"capability": capability, "resource": resource, "rule": rule, "reason": reason},
        )
        self.capability = capability
        self.resource = resource
        self.rule = rule
        self.reason = reason


class EffectDenied(PolicyDenied, PermissionError):
    """A policy said no to what the process was about to do outside itself: to a file, a process, the network."""

    code = "effect_denied"
    errno = errno.EACCES

    def __init__(self, message: str, *, resource: str | None = None, **told: Any) -> None:
        PolicyDenied.__init__(self, message, resource=resource, **told)
        self.strerror, self.filename = message, resource


class Refused(PlayheadError):
    """A replay does not touch the world; `target` is what would have been touched."""

    code = "refused"

    def __init__(self, message: str, *, target: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint, detail={"target": target})
        self.target = target


class WriteRefused(Refused, PermissionError):
    """A replay was about to write outside its scratch folder, in a way that cannot be turned there."""

    code = "write_refused"
    default_hint = "docs/guides/isolation.md says which ways of writing are turned to the scratch folder."
    errno = errno.EACCES


class NetworkRefused(Refused, ConnectionRefusedError):
    """A replay was about to use the network."""

    code = "network_refused"
    default_hint = "A replay answers from the recording; what is not in it cannot be asked."
    errno = errno.ECONNREFUSED


class InFlight(PlayheadError):
    """A call was under way when the run ended that is resumed; nobody knows whether it was done."""

    code = "in_flight"
    default_hint = "Look at what it was to change: the agent may catch this and do so."


class RecordingStopped(BaseException):
    """Under `strict`, something inside a library could not be recorded; `problem` says why.

    SDKs take every `Exception` of a transport for a failure of the network, and ask again. `playhead.record` raises the
    problem itself in its place.
    """

    def __init__(self, message: str, problem: Exception) -> None:
        super().__init__(message, problem)
        self.problem = problem  # beside `__cause__`, which a library that raises it again may take off

    def __str__(self) -> str:
        """Say what was not recorded, and why."""
        return f"{self.args[0]}: {self.problem}"


class DeviationError(BaseException):
    """A replay did something else than the run that it replays: `deviation` says what, as data.

    No Exception: SDKs take those of their transport for a failing network, and try again.
    """

    code = "deviation"

    def __init__(self, message: str, *, deviation: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.deviation = deviation or {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass between processes."""
        return _rebuilt_deviation, (type(self), self.message, self.deviation)


def _rebuilt_deviation(kind: type[DeviationError], message: str, deviation: dict[str, Any]) -> DeviationError:
    return kind(message, deviation=deviation)
