"""Record: the verbs that an agent's author writes into the agent."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

from playhead import _limits
from playhead.capture import enforcing, guard, reads, snapshots
from playhead.capture.arguments import arguments_of, is_method
from playhead.capture.around import around
from playhead.capture.guard import RecordingWarning
from playhead.capture.opening import default_settings
from playhead.capture.record import Record
from playhead.capture.redact import make_known
from playhead.capture.request import Envelope
from playhead.capture.scope import Policy, Scope, live, policies
from playhead.capture.spans import ModelCall, Span, Step, ToolCall
from playhead.errors import BadName, PolicyDenied, UsageError
from playhead.event import kinds
from playhead.event.plain import fields_of
from playhead.store.base import Store
from playhead.store.layout import artifact_name, cleaned

F = TypeVar("F", bound=Callable[..., Any])

Decision = Literal["allow", "deny", "ask"]
EFFECTS = ("read", "write", "irreversible")


def install(*, ambient: bool = True) -> None:
    """Begin to watch what clocks, random numbers, variables and files tell, for runs that are opened from now on.

    Call it first, before other modules are imported. Under `playhead record` it is done already. Where the setting
    `ambient` says no, nothing is watched.
    """
    if ambient and default_settings().ambient:
        reads.install_once()


def uninstall() -> None:
    """Undo `install`."""
    reads.uninstall_once()


def record(
    name: str,
    *,
    input: Any = None,
    policy: Policy | None = None,
    store: Store | str | Path | None = None,
    tags: Mapping[str, str] | None = None,
    version: str | None = None,
    strict: bool | None = None,
    capture: bool = True,
) -> Record:
    """Record what happens inside `with playhead.record("name", input=...) as run:` as one run.

    Set `run.output` to the answer. `input` is the request: any value, or a `playhead.Envelope`. `policy` is a function
    that `playhead.check` asks. With `strict`, an event that cannot be recorded raises; otherwise it is counted. Without
    `capture`, HTTP traffic is not recorded, save that of clients given to `playhead.wrap`.
    """
    agent = {"name": name, "version": version} if version else None
    return Record(
        _named(name),
        input=input,
        policy=policy,
        store=store,
        tags=tags,
        agent=agent,
        strict=strict,
        capture=capture,
    )


@overload
def agent(function: F, /) -> F: ...
@overload
def agent(
    name: str | None = None,
    *,
    policy: Policy | None = None,
    store: Store | str | Path | None = None,
    tags: Mapping[str, str] | None = None,
    version: str | None = None,
    strict: bool | None = None,
    capture: bool = True,
) -> Callable[[F], F]: ...
def agent(name_or_function: Any = None, /, **options: Any) -> Any:
    """Make every call of a function one recorded run: its arguments are the request, its return value the output."""
    version, given = options.pop("version", None), options.pop("name", None)
    name_or_function = given if name_or_function is None else name_or_function

    def decorate(function: F) -> F:
        name = _named(name_or_function if isinstance(name_or_function, str) else _name_of(function))
        described = {"name": name, "version": version} if version else None

        def request(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            asked = arguments_of(function, args, kwargs)
            only = next(iter(asked.values())) if len(asked) == 1 else None
            if isinstance(only, Envelope):
                return only
            if args and is_method(function) and fields_of(args[0], type(args[0])) is not None:
                asked = {"self": args[0], **asked}  # what it is made of may decide the answer
            return asked

        def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span:
            return Record(name, input=request(args, kwargs), function=function, agent=described, **options)

        make.starts_run = True  # type: ignore[attr-defined]
        request.intent, request.function = name, function  # type: ignore[attr-defined]
        wrapped = around(function, make, _set_output)
        wrapped.playhead_request = request  # type: ignore[attr-defined]  # for Envelope.of_call
        return cast(F, wrapped)

    return decorate(name_or_function) if callable(name_or_function) else decorate


@overload
def step(function: F, /) -> F: ...
@overload
def step(name: str, /, **attributes: Any) -> Step: ...
def step(name_or_function: Any, /, **attributes: Any) -> Any:
    """Name a part of a run: `with playhead.step("plan") as step:`, `async with`, or a decorator, bare or called."""
    if callable(name_or_function):
        return Step(_name_of(name_or_function))(name_or_function)
    return Step(_named(name_or_function), attributes)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(name: str | None = None, /, *, effects: list[str] | tuple[str, ...] = ()) -> Callable[[F], F]: ...
def tool(name_or_function: Any = None, /, *, effects: Any = ()) -> Any:
    """Record every call of a function as a tool call. `effects` declares what it does: read, write, irreversible."""
    declared = [effects] if isinstance(effects, str) else list(effects)
    unknown = [effect for effect in declared if effect not in EFFECTS]
    if unknown:
        raise UsageError(f"unknown effects: {', '.join(map(str, unknown))}", hint=f"Use {', '.join(EFFECTS)}.")

    def decorate(function: F) -> F:
        name = _named(name_or_function if isinstance(name_or_function, str) else _name_of(function))

        def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span:
            return ToolCall(name, arguments_of(function, args, kwargs), declared)

        recorded: Any = around(function, make, _set_output)
        recorded.playhead_effects = declared  # for a framework that calls it, and tells of the call itself
        return cast(F, recorded)

    return decorate(name_or_function) if callable(name_or_function) else decorate


def model_call(
    *, provider: str | None = None, model: str | None = None, request: Any = None, attempt: int = 1
) -> ModelCall:
    """Record a model call made by hand: `with playhead.model_call(...) as call: ...; call.respond(answer)`."""
    return ModelCall(provider, model, request, attempt)


def check(capability: str, resource: Any = None, **context: Any) -> Decision:
    """Ask whether something is allowed, record the decision, and raise PolicyDenied where a policy says no.

    Without a policy the answer is `allow`, rule `none`, mode `observe`. A policy is called as `policy(capability,
    resource, context)` and answers True, False, "allow", "deny", or a mapping with `decision`, `rule` and `reason`.
    A policy that raises, or answers anything else, denies. Inside a run with a policy, an agent with one of its own is
    bound by both. A policy is enforced whether or not the run can be recorded.
    """
    scope = live()
    in_force = policies.get()
    target = None if resource is None else _text(resource)
    decision: Decision = "allow"
    rule, reason = "none", None
    for policy in in_force:
        decision, rule, reason = _ask(policy, capability, target, context)
        if decision != "allow":
            break
    if decision == "allow":
        ruled = enforcing.check(scope, capability, target or "", context=context, by_agent=True)
        if ruled is not None:
            return ruled.decision if enforcing.is_enforced(scope) else "allow"
    if scope is not None:
        checked = kinds.PolicyChecked(
            capability=capability, resource=target, decision=decision, rule=rule, reason=reason, context=context
        )
        checked.mode = "enforce" if in_force else "observe"
        _emit(scope, checked)
    if decision != "allow":
        about = f"{capability} on {target}" if target else capability
        raise PolicyDenied(
            f"{about}: {reason or decision}",
            capability=capability,
            resource=target,
            rule=rule,
            reason=reason or decision,
        )
    return decision


def _ask(
    policy: Policy, capability: str, resource: str | None, context: dict[str, Any]
) -> tuple[Decision, str, str | None]:
    rule = str(getattr(policy, "__name__", type(policy).__name__))
    try:
        answer = policy(capability, resource, context)
    except Exception as problem:
        return "deny", rule, f"the policy raised {type(problem).__name__}: {problem}"
    reason = None
    if isinstance(answer, Mapping):
        rule, reason = str(answer.get("rule", rule)), answer.get("reason")
        answer = answer.get("decision")
    if answer is True:
        answer = "allow"
    if answer is False:
        answer = "deny"
    if answer not in ("allow", "deny", "ask"):
        if inspect.iscoroutine(answer):
            answer.close()
            return "deny", rule, "the policy is a coroutine; a policy is a plain function"
        return "deny", rule, f"the policy answered {answer!r}, which is no decision"
    return answer, rule, None if reason is None else str(reason)


def artifact(
    name: str, content: bytes | str | os.PathLike[str], *, role: str | None = None, media: str | None = None
) -> str | None:
    """Keep a file with the run: text, bytes, or the path of a file. Returns the name it got, None without a run.

    A name that no file can have, or that leads elsewhere, is made into one; the given one is kept beside it.
    """
    scope = live()
    if scope is None:
        return None
    if not isinstance(name, str):
        raise UsageError(f"the name of an artifact is a text, not {name!r}")
    recording, given = scope.recording, None
    try:
        artifact_name(name)
    except BadName:
        if recording.strict:
            raise
        given, name = name, cleaned(name)
    if isinstance(content, str):
        data = content.encode("utf-8", "surrogatepass")
    elif isinstance(content, os.PathLike):
        try:
            data = Path(content).read_bytes()
        except OSError as problem:
            guard.absorb(problem, recording, f"artifact {name}")
            return None
    elif isinstance(content, (bytes, bytearray, memoryview)):
        data = bytes(content)
    else:
        raise UsageError(
            f"an artifact is text, bytes or a path, not {type(content).__name__}", hint="Encode it first, e.g. as JSON."
        )
    media = media or _media(name)
    return recording.artifact(name, data, role=role, media=media, parent=scope.span, given=given)


def note(text: str, data: Any = None) -> None:
    """Add a remark to the timeline."""
    scope = live()
    if scope is not None:
        _emit(scope, kinds.NoteAdded(text=_text(text), data=data))


def add_secret(value: str) -> None:
    """Redact a value from now on, wherever it stands and however it is encoded, in every run of this process.

    What was recorded before stays as it is: say it before you use it. A value that is too short to be told from
    ordinary text is refused with a warning, and not looked for.
    """
    if not make_known(value):
        told = f"a secret of fewer than {_limits.SECRET_CHARACTERS_MIN} characters is not redacted by its value"
        warnings.warn(RecordingWarning(told), stacklevel=2)


def context_pack(pack: Any) -> None:
    """Say what context the agent works with from now on; each pack is kept, the latest as context_pack.json."""
    scope = live()
    if scope is not None:
        snapshots.keep_pack(scope.recording, pack, parent=scope.span)


def _emit(scope: Scope, payload: kinds.Payload) -> None:
    scope.recording.emit(payload, parent=scope.span)


def _set_output(span: Any, result: Any) -> None:
    if not isinstance(span, Step):
        span.output = result


def _text(value: Any) -> str:
    """Return a text for people, whatever the value does when asked for one."""
    try:
        return str(os.fspath(value) if isinstance(value, os.PathLike) else value)
    except Exception as problem:
        return f"<{type(value).__name__}: {type(problem).__name__} in __str__>"


def _name_of(function: Any) -> str:
    """Name a callable: a function by its name, a partial by that of its function, an object by its class."""
    inner = getattr(function, "func", function)
    return str(getattr(function, "__name__", None) or getattr(inner, "__name__", None) or type(function).__name__)


def _named(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"a name is a non-empty string, not {name!r}")
    return name


def _media(name: str) -> str | None:
    import mimetypes

    if name.endswith((".diff", ".patch")):
        return "text/x-diff"
    return mimetypes.guess_type(name)[0]
