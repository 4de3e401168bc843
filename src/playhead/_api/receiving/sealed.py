"""Take in what was sealed elsewhere, with the contents that its lines name."""

from __future__ import annotations

import hashlib

from playhead._ids import is_run_id
from playhead.errors import Conflict, UsageError
from playhead.event.envelope import parse
from playhead.store import layout
from playhead.store.appending import Appended, append_lines
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.reader import RunReader


def append_sealed(store: FileStore, run: str, body: bytes, start: int | None = None) -> Appended:
    """Append the lines of a body, each with its newline, to a run."""
    if not body.endswith(b"\n"):
        raise UsageError("the last line is cut off", hint="Each line ends with a newline.")
    lines = body.split(b"\n")[:-1]
    if is_run_id(run) and layout.timeline(store.folder(run)).exists():
        first = next(iter(store.lines(run)), b"")
        if first.endswith(b"\n") and parse(first[:-1]).data.get("received") is not None:
            raise Conflict(f"{run} is sealed here, from spans: lines cannot be appended to it")
    if start is not None and lines and not lines[0].startswith(b'{"v":1,"run":"%b","seq":%d,' % (run.encode(), start)):
        raise UsageError(f"the first line is not event {start} of {run}")
    return append_lines(store, run, lines)


def keep_blob(store: FileStore, digest: str, data: bytes) -> str:
    """Keep bytes under the digest that they must have."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise UsageError(
            "these bytes do not have this digest", hint="It is their SHA-256, in 64 lower-case hex digits."
        )
    store.make_root()
    store.put_blob(data, digest)
    store.sync_files()
    return digest


def keep_artifact(store: FileStore, run: str, name: str, data: bytes) -> str:
    """Keep a file of a run that is here."""
    if not is_run_id(run) or not layout.timeline(store.folder(run)).exists():
        raise UsageError(f"{run[:80]!r} is not here", hint="Send its first lines before its artifacts.")
    kept = store.put_file(run, f"artifacts/{name}", data)
    store.sync_files()
    return kept.removeprefix("artifacts/")


def keep_file(store: FileStore, run: str, name: str, data: bytes) -> str:
    """Keep the policy or the context pack of a run that is here: the one that its events name, and no other."""
    layout.pack_name(name)
    if not is_run_id(run) or not layout.timeline(store.folder(run)).exists():
        raise UsageError(f"{run[:80]!r} is not here", hint="Send its first lines before its files.")
    if hashlib.sha256(data).hexdigest() != _recorded(RunReader(store, run), name):
        raise UsageError(f"this is not the {name} that the events of {run} name")
    store.put_file(run, name, data)
    store.sync_files()
    return name


def _recorded(reader: RunReader, name: str) -> object:
    """Return the digest of a file beside the artifacts, as the events of a run have it."""
    found: object = None
    for line in reader.lines():
        if b'"kind":"run.started"' not in line and b'"role":"context_pack"' not in line:
            continue
        event = parse(line)
        if event.kind == "run.started":
            policy = event.data.get("policy")
            of_policy = policy.get("digest") if isinstance(policy, dict) else None
            found = of_policy if name == layout.POLICY_SNAPSHOT else event.data.get("context_pack")
        elif event.kind == "artifact.created" and name == layout.CONTEXT_PACK:
            found = event.data.get("digest")
    return found


def check_free(store: FileStore, index: Index, target: str) -> None:
    """Raise Conflict where a run answers to this id already."""
    taken = store.folder(target).exists() if is_run_id(target) else index.by_external_id(target) is not None
    if taken:
        raise Conflict(f"there is a run {target} already", hint="Leave the id out, or choose another one.")
