"""Type the payload of every kind.

Fields are only ever added, each with a default, so that old lines stay readable. Fields that a newer Playhead wrote
survive in the raw line; a breaking change is a new kind. `Any` stands for a plain value (event/plain.py).
"""

from __future__ import annotations

from typing import Any, Literal, cast

from playhead.event.mcp import McpAnswered as McpAnswered
from playhead.event.mcp import McpNotified as McpNotified
from playhead.event.mcp import McpRequested as McpRequested
from playhead.event.payload import Payload as Payload
from playhead.event.payload import Phase as Phase
from playhead.event.payload import Status as Status
from playhead.event.payload import Usage as Usage
from playhead.event.payload import as_fields as as_fields
from playhead.event.received import EmitterDescribed as EmitterDescribed
from playhead.event.received import LogEmitted as LogEmitted
from playhead.event.received import SpanRevised as SpanRevised
from playhead.event.replaying import ReplayDeviated as ReplayDeviated
from playhead.event.replaying import ReplayReported as ReplayReported
from playhead.event.replaying import RunGraded as RunGraded
from playhead.event.reports import CiReported as CiReported
from playhead.event.reports import GitCommitted as GitCommitted


class RunStarted(Payload):
    """Open a run: who was asked what, where the code came from, how to start it again."""

    KIND = "run.started"
    PHASE = "opens"
    name: str
    input: dict[str, Any] | None = None  # the request envelope: intent, payload, metadata, id, time, trace
    envelope_hash: str | None = None
    agent: dict[str, Any] | None = None  # name, version
    entrypoint: dict[str, Any] | None = None  # argv, cwd, executable, module, qualname, file
    environment: dict[str, Any] | None = None  # python, platform, packages
    git: dict[str, Any] | None = None  # commit, branch, dirty, root, remote, untracked
    ci: dict[str, Any] | None = None  # provider, run_id, job, commit, branch, url
    context_pack: str | None = None  # digest of context_pack.json at the start
    policy: dict[str, Any] | None = None  # mode, digest of policy_snapshot.json
    origin: dict[str, Any] | None = None  # run, mode, at: for replays and child runs
    external_id: str | None = None
    received: dict[str, Any] | None = None  # of a run that came from outside: by, rule, trace
    tags: dict[str, str] = {}
    ambient: bool | None = None  # whether what clocks, variables and files say is kept from the beginning
    effects: bool | None = None  # false where nobody watches what the program does outside itself
    redaction: dict[str, Any] | None = None  # version, rules in force
    sdk: dict[str, Any] | None = None  # name, version


class RunFinished(Payload):
    """Close a run's body; `events` counts the lines up to and including this one."""

    KIND = "run.finished"
    PHASE = "closes"
    status: Status
    output: Any = None
    metadata: dict[str, Any] = {}
    error: dict[str, Any] | None = None
    events: int | None = None
    root: str | None = None
    redacted: dict[str, int] = {}
    files: list[Any] = []  # path, size, digest, modified_us, start: what the files hold that the program wrote
    files_omitted: int | None = None


class RunInvalidated(Payload):
    """Declare that this run must not be played back."""

    KIND = "run.invalidated"
    why: str
    by: str | None = None


class RunReopened(Payload):
    """Go on after run.finished."""

    KIND = "run.reopened"
    why: str | None = None


class ContentErased(Payload):
    """Say which value was erased, and why."""

    KIND = "content.erased"
    seq: int
    path: str
    why: str | None = None
    by: str | None = None


class StepStarted(Payload):
    """Open a step that the author named."""

    KIND = "step.started"
    PHASE = "opens"
    name: str
    attempt: int = 1
    attributes: dict[str, Any] = {}
    # Set when an agent adopts the process's run: the request it was asked, as in run.started. Of a function that is a
    # step, `input` has its arguments by name, and `entrypoint` where it is.
    adopts: bool = False
    input: Any = None
    envelope_hash: str | None = None
    agent: dict[str, Any] | None = None
    entrypoint: dict[str, Any] | None = None
    tags: dict[str, str] = {}
    inferred: bool = False  # read off the model traffic: nobody named it


class StepFinished(Payload):
    """Close a step, with what was set while it was open."""

    KIND = "step.finished"
    PHASE = "closes"
    status: Status
    error: dict[str, Any] | None = None
    attributes: dict[str, Any] = {}
    adopts: bool = False
    output: Any = None
    metadata: dict[str, Any] = {}
    redacted: dict[str, int] = {}  # of an agent that adopted the run: what its process removed, by rule
    otlp: dict[str, Any] | None = None  # of a span that came from outside: everything else that was said of it


class ModelInvoked(Payload):
    """Ask a model; one for each attempt on the wire."""

    KIND = "model.invoked"
    PHASE = "opens"
    provider: str | None = None
    model: str | None = None
    request: Any = None
    attempt: int = 1
    operation: str | None = None  # what was asked of the provider: chat, responses, messages, embeddings, …
    body: Any = None  # as it was sent, where the request in its form does not give the same bytes
    http: dict[str, Any] | None = None  # method, url, form, headers


class ModelResponded(Payload):
    """Record what the model answered, or how it failed."""

    KIND = "model.responded"
    PHASE = "closes"
    status: Status
    response: Any = None
    usage: Usage | None = None
    finish: str | None = None
    chunks: Any = None
    error: dict[str, Any] | None = None
    model: str | None = None  # as the provider named it, where it differs from what was asked
    body: Any = None  # as it came, where the response in its form does not give the same bytes: streams
    http: dict[str, Any] | None = (
        None  # status, reason, version, form, head_us (when the head was there), sent_us, headers
    )
    otlp: dict[str, Any] | None = None


class ToolCalled(Payload):
    """Call a tool."""

    KIND = "tool.called"
    PHASE = "opens"
    name: str
    input: Any = None
    effects: list[str] = []  # read, write, irreversible
    call: str | None = None  # the model's own id of the tool call that led to this
    asked_by: str | None = None  # the span of the model call that asked for it
    inferred: bool = False  # nobody saw it run: its result went back to the model
    server: str | None = None  # of an MCP tool: the command line or the address of its server
    params: dict[str, Any] | None = None  # of an MCP tool: what was sent beside name and arguments


class ToolReturned(Payload):
    """Record what the tool gave back."""

    KIND = "tool.returned"
    PHASE = "closes"
    status: Status
    output: Any = None
    error: dict[str, Any] | None = None
    chunks: int | None = None  # how many items a generator yielded; they are the output
    inferred: bool = False
    handled: bool = False  # the framework made the output of the error: nothing was raised
    waited: bool = False  # a coroutine let the event loop go on before it returned
    spawned: int | None = None  # the last child that the lane had begun by the end, where one began inside
    printed: list[Any] | None = None  # what its body wrote: [microseconds since it began, items before, stream, what]
    timers: int | None = None  # the last timer that it had set by the end, where one was set inside
    otlp: dict[str, Any] | None = None


class HttpSent(Payload):
    """Send a request that no dialect knows."""

    KIND = "http.sent"
    PHASE = "opens"
    method: str
    url: str
    headers: list[Any] = []
    body: Any = None
    form: str | None = None  # how the body becomes bytes: json:compact, text, bytes, …


class HttpReceived(Payload):
    """Record the answer to it."""

    KIND = "http.received"
    PHASE = "closes"
    outcome: Status
    status: int | None = None
    reason: str | None = None  # the words of the first line, where they are not the usual ones of the status
    version: str | None = None  # the protocol, where it is not HTTP/1.1
    headers: list[Any] = []
    body: Any = None
    form: str | None = None
    head_us: int | None = None  # when the head of the answer was there, since the request was sent
    sent_us: int | None = None  # when the request was sent, since the event that it is recorded in; may be negative
    chunks: Any = None
    error: dict[str, Any] | None = None


class ProcessStarted(Payload):
    """Start a process."""

    KIND = "process.started"
    PHASE = "opens"
    argv: list[str]  # a command for the shell is one entry
    shell: bool = False  # which is /bin/sh, unless the options name another
    cwd: str | None = None  # the folder that it starts in, given or not
    options: dict[str, Any] = {}  # what else was asked for, as it was given: cwd, executable, user, umask, …
    env: dict[str, Any] = {}  # what differs from the variables of whoever starts it; null for one it does not get
    streams: dict[str, str] = {}  # where stdin, stdout and stderr lead, if not where ours do: pipe, null, stdout, …
    stdin: Any = None  # known before the start
    stdin_file: dict[str, Any] | None = None  # a file that it gets as its stdin: size, and digest unless it is large


class ProcessExited(Payload):
    """Record how it ended; a process killed by a signal has a negative exit code, as in subprocess."""

    KIND = "process.exited"
    PHASE = "closes"
    status: Status
    exit_code: int | None = None
    output: Any = None
    stdin: Any = None  # what was written to its pipe
    stdout: Any = None  # what was read from it: the bytes of the pipe, as text where they are UTF-8
    stderr: Any = None
    unwritten: int | None = None  # bytes that it did not take any more, where nobody read its stdin to the end
    chunks: dict[str, Any] = {}  # by stream: sizes and at_us, as of an answer over HTTP; end_us where its end was read
    pid: int | None = None
    exit_us: int | None = None  # when the exit was known, since the start
    polls: int | None = None  # how often it was asked whether it had ended, and had not
    timeouts: list[Any] = []  # of these, those that waited for a time: ask (which of them, from 0), at_us, seconds
    signals: list[Any] = []  # that the agent sent it: signal, at_us
    wait_status: int | None = None  # what os.system returned
    printed: dict[str, Any] | None = (
        None  # by output of the program that it inherited: from which byte to which, again and again
    )
    error: dict[str, Any] | None = None


class OutputWritten(Payload):
    """Keep what the program wrote to its own stdout or stderr."""

    KIND = "output.written"
    stream: Literal["stdout", "stderr"]
    text: Any  # a string, or `$bytes` where it is not UTF-8


class PolicyChecked(Payload):
    """Record a policy decision, allow included."""

    KIND = "policy.checked"
    capability: str
    decision: Literal["allow", "deny", "ask"]
    resource: str | None = None
    rule: str = "none"
    reason: str | None = None
    mode: Literal["observe", "enforce"] = "observe"
    context: dict[str, Any] = {}
    by: str | None = (
        None  # `policy` where the rules of a file decided: also about calls and effects that nobody checked
    )
    asked: str | None = None  # `agent` where its own code asked, and the rules of a file answered
    times: int | None = None  # how often the same was decided in this place, where not each time is recorded


class ArtifactCreated(Payload):
    """Name a file that this run produced."""

    KIND = "artifact.created"
    name: str
    digest: str
    size: int
    role: str | None = None  # patch, log, test_results, context_pack, diff
    media: str | None = None
    given: str | None = None  # the name as the agent gave it, where no file can have it


class EffectObserved(Payload):
    """Record what the process did outside itself."""

    KIND = "effect.observed"
    what: str  # file.written, file.deleted, file.renamed, process.started, socket.connected, environment.changed
    target: str
    detail: dict[str, Any] = {}


class AmbientRead(Payload):
    """Pack reads of nondeterminism that is not a call; event/reads.py tells how."""

    KIND = "ambient.read"
    reads: list[Any] = []  # what holds text: {of, by, via, values}
    packed: list[Any] = []  # numbers and random bytes: {of, by, via}, and at, ns or values or bytes, sizes
    count: int | None = None  # of all reads
    order: str | None = None  # in which order the groups of `packed`, then of `reads`, were read from


# How the note begins that says what changed in the working tree; its data says which files.
TREE_CHANGED = "files in the working tree: "
COMMITS = "commits/"  # how the names of artifacts begin that are patches of commits


class NoteAdded(Payload):
    """Keep a remark."""

    KIND = "note.added"
    text: str
    data: Any = None


# Gaps that tell of something that was never seen; nothing that was is missing, and the run can be played back.
UNSEEN = frozenset({"not_captured", "python_not_attached"})


class GapNoted(Payload):
    """Declare what could not be recorded, with the exact count."""

    KIND = "gap.noted"
    reason: str
    count: int = 1
    detail: Any = None


PAYLOADS: dict[str, type[Payload]] = {
    payload.KIND: payload
    for payload in cast(
        "list[type[Payload]]",
        [
            RunStarted, RunFinished, RunInvalidated, RunReopened, ContentErased, StepStarted, StepFinished,
            ModelInvoked, ModelResponded, ToolCalled, ToolReturned, McpRequested, McpAnswered, McpNotified,
            HttpSent, HttpReceived, ProcessStarted, ProcessExited, OutputWritten, PolicyChecked, ArtifactCreated,
            EffectObserved, AmbientRead, GitCommitted, CiReported, NoteAdded, GapNoted, ReplayDeviated, ReplayReported,
            RunGraded, EmitterDescribed, LogEmitted, SpanRevised,
        ],
    )
}  # fmt: skip

OPENING_TO_CLOSING: dict[str, str] = {
    "run.started": "run.finished",
    "step.started": "step.finished",
    "model.invoked": "model.responded",
    "tool.called": "tool.returned",
    "mcp.requested": "mcp.answered",
    "http.sent": "http.received",
    "process.started": "process.exited",
}
CLOSING = frozenset(OPENING_TO_CLOSING.values())
CALLS = frozenset({"model.invoked", "tool.called", "mcp.requested", "http.sent", "process.started"})


def phase(kind: str) -> Phase:
    """Say whether a kind opens a span, closes one, or stands alone; an unknown kind stands alone."""
    payload = PAYLOADS.get(kind)
    return payload.PHASE if payload else "point"
