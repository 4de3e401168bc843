"""Hand out what runs hold beside their lines: artifacts, packs, blobs. Never in a form that a browser would run."""

from __future__ import annotations

import hashlib
import re
from typing import Any
from urllib.parse import quote

from playhead.errors import Altered, MissingContent, UsageError
from playhead.server.answering import Answer
from playhead.server.asking import Ask
from playhead.server.finding import reader_of, run_of
from playhead.server.routing import route
from playhead.store import layout

_BYTES = "application/octet-stream"
_TEXT = "text/plain; charset=utf-8"
# What a browser shows as it is, and cannot run. Everything else is bytes to it.
_SAFE = {
    "image/png": "image/png",
    "image/jpeg": "image/jpeg",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
    "application/json": "application/json",
    "text/plain": _TEXT,
    "text/markdown": _TEXT,
    "text/x-diff": _TEXT,
    "text/x-patch": _TEXT,
}
_MEDIA = tuple(dict.fromkeys(media.partition(";")[0] for media in _SAFE.values()))
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@route("GET", "/api/runs/{run}/artifacts", group="Contents")
def list_artifacts(ask: Ask) -> dict[str, Any]:
    """List the artifacts that the events of a run name.

    `{run, artifacts}`, each `{name, seq, digest, size, role, media}`.
    """
    reader = reader_of(run_of(ask.project, ask.path["run"]))
    found = []
    for name, (seq, digest) in reader.artifacts().items():
        data = reader.data(seq)
        found.append({"name": name, "seq": seq, "digest": digest, "size": data.get("size"), "role": data.get("role"),
                      "media": data.get("media")})  # fmt: skip
    return {"run": reader.id, "artifacts": found}


@route("GET", "/api/runs/{run}/artifacts/{name:path}", group="Contents", media=(_BYTES, *_MEDIA),
       answers={200: None, 206: None})  # fmt: skip
def one_artifact(ask: Ask) -> Answer:
    """Return the bytes of an artifact; `Range` is understood. 409 where they are not what was recorded.

    Images, JSON and text come in their own form, and everything else as bytes that no browser shows.
    """
    run = run_of(ask.project, ask.path["run"])
    name = ask.path["name"]
    content = run.artifact(name)
    seq, _ = reader_of(run).artifacts()[name]
    media = reader_of(run).data(seq).get("media")
    return _handed(ask, content, media, name.rpartition("/")[2])


@route("GET", "/api/runs/{run}/files/{name:path}", group="Contents", media=("application/json", _BYTES),
       answers={200: None, 206: None})  # fmt: skip
def one_file(ask: Ask) -> Answer:
    """Return `context_pack.json`, `policy_snapshot.json` or `artifacts/NAME` of a run, as the file lies there.

    Nothing is compared: whoever asks has the digest in the timeline, and `artifacts` above compares.
    """
    run, name = run_of(ask.project, ask.path["run"]), ask.path["name"]
    media = None if name.startswith("artifacts/") else "application/json"
    return _handed(ask, run.store.file(run.id, name), media, None)


@route("GET", "/api/blobs/{digest}", group="Contents", media=(_BYTES,), answers={200: None, 206: None})
def one_blob(ask: Ask) -> Answer:
    """Return the bytes of a digest, of this project; `Range` is understood."""
    digest = ask.path["digest"]
    if not layout.is_digest(digest):
        raise UsageError(f"not a digest: {digest[:80]!r}", hint="A digest is 64 lower-case hex digits.")
    try:
        content = ask.project.store.blob(digest)
    except MissingContent:
        raise MissingContent(f"there is no blob {digest} in this project") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise Altered(f"blob {digest} was altered")
    return _handed(ask, content, None, None)


def _handed(ask: Ask, content: bytes, media: object, name: str | None) -> Answer:
    shown = _SAFE.get(str(media).partition(";")[0].strip().lower(), _BYTES)
    headers = {"accept-ranges": "bytes", "etag": f'"{hashlib.sha256(content).hexdigest()}"'}
    how = "attachment" if shown == _BYTES else "inline"
    headers["content-disposition"] = how if name is None else f"{how}; filename*=UTF-8''{quote(name)}"
    headers["content-security-policy"] = "sandbox; default-src 'none'; frame-ancestors 'none'"
    wanted = _RANGE.fullmatch(ask.headers.get("range", ""))
    if wanted is None or wanted[0] == "bytes=-":
        return Answer(content, media=shown, headers=headers)
    start, end = _between(wanted[1], wanted[2], len(content))
    if start >= len(content) or start > end:
        headers["content-range"] = f"bytes */{len(content)}"
        problem = UsageError(f"it has only {len(content):,} bytes")
        from playhead.server.answering import encoded

        return Answer(encoded(problem.as_dict()), status=416, headers=headers)
    headers["content-range"] = f"bytes {start}-{end}/{len(content)}"
    return Answer(content[start : end + 1], status=206, media=shown, headers=headers)


def _between(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1
