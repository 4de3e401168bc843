"""Keep the context pack and the policy of a run, each as a file beside its timeline and as an artifact in it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from playhead.capture import enforcing, guard
from playhead.capture.scope import Policy
from playhead.errors import PlayheadError
from playhead.event import kinds
from playhead.policy.rules import Rules
from playhead.store import layout

if TYPE_CHECKING:
    from playhead.capture.gate import Gate
    from playhead.capture.recording import Recording

_EMPTY_PACK = b"{}\n"  # what context_pack.json holds before there is a pack


def begin(recording: Recording, started: kinds.RunStarted) -> None:
    """Write the policy that a run begins with, and say in run.started what both files hold."""
    described = _described(recording.policy, enforcing.policy_of(recording))
    snapshot = _encoded(described)
    started.policy = {"mode": described["mode"]}
    try:
        recording.store.put_file(recording.id, layout.POLICY_SNAPSHOT, snapshot)
        started.policy["digest"] = hashlib.sha256(snapshot).hexdigest()
    except OSError as problem:
        if described["mode"] == "enforce":
            raise  # whoever joins the run would not know what it is held to
        guard.absorb(problem, recording, layout.POLICY_SNAPSHOT)
    started.context_pack = hashlib.sha256(_EMPTY_PACK).hexdigest()


def keep_file(
    recording: Recording,
    gate: Gate,
    name: str,
    data: bytes,
    role: str | None,
    media: str | None,
    parent: str | None,
    given: str | None,
) -> str | None:
    """Keep an artifact and record that it was created; return the name it got."""
    try:
        clean, counts = gate.file(data)
        name = gate.file_name(name, counts)
        recording.count_redacted(counts)
        stored = recording.store.put_file(recording.id, f"artifacts/{name}", clean).removeprefix("artifacts/")
    except (OSError, PlayheadError) as problem:
        guard.absorb(problem, recording, f"artifact {name}")
        return None
    digest = hashlib.sha256(clean).hexdigest()
    created = kinds.ArtifactCreated(name=stored, digest=digest, size=len(clean), role=role, media=media, given=given)
    recording.emit(created, parent=parent)
    return stored


def keep_pack(recording: Recording, pack: Any, parent: str | None = None) -> None:
    """Keep the context pack that is in force from now on."""
    encoded = _encoded(recording.settled(pack))
    lost = recording.lost
    name = recording.artifact(
        layout.CONTEXT_PACK, encoded, role="context_pack", media="application/json", parent=parent
    )
    if name is None or recording.lost != lost:
        return  # a pack that no event tells of would look like an altered one
    try:
        file = recording.store.file(recording.id, f"artifacts/{name}")
        recording.store.put_file(recording.id, layout.CONTEXT_PACK, file)
    except (OSError, PlayheadError) as problem:
        guard.absorb(problem, recording, layout.CONTEXT_PACK)


def keep_policy(recording: Recording, policy: Policy, parent: str | None) -> None:
    """Keep the policy of an agent that joined a run, as an artifact; the snapshot of the run is of its start."""
    snapshot = _encoded(_described(policy, None))
    recording.artifact(layout.POLICY_SNAPSHOT, snapshot, role="policy", media="application/json", parent=parent)


def _described(policy: Policy | None, rules: Rules | None) -> dict[str, Any]:
    """Return what rules a run: the rules of a file, and a function of the program."""
    found: dict[str, Any] = {"mode": "observe", "policy": None} if rules is None else rules.as_snapshot()
    if policy is None:
        return found
    name = f"{getattr(policy, '__module__', '?')}:{getattr(policy, '__qualname__', type(policy).__qualname__)}"
    return {"mode": "enforce", "policy": {"callable": name, **(found["policy"] or {})}}


def _encoded(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"
