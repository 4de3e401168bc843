"""Make the golden timelines: `python -m tests.vectors.make DIRECTORY [received]`. v1/README.md says what they are for."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import orjson

from playhead._clock import FakeClock
from playhead._ids import new_run_id
from playhead.event import envelope, kinds
from playhead.event.keys import call_key, envelope_hash
from playhead.event.plainer import Plainer
from playhead.event.references import Held
from playhead.ledger.writer import Ledger
from playhead.store.memory import MemoryStore
from playhead.store.reader import RunReader

LONG = "The login form loses the session cookie when the address has a plus sign in it. " * 5
HISTORY: list[dict[str, Any]] = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "I will look."}]


class Writer:
    """Write typed events to a store in memory, with references and blobs, as a recording does."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.run = new_run_id(clock, lambda size: bytes(range(size)))
        self.store = MemoryStore(clock=clock)
        self.ledger: Ledger = self.store.ledger(self.run, create=True)
        self.held = Held(lambda offset: envelope.parse(self.ledger.line_at(offset)).data)
        self.blobs: dict[str, bytes] = {}
        self.keys: dict[str, str] = {}

    def add(self, payload: kinds.Payload, *, key: tuple[str | None, Any] | None = None, **names: Any) -> str | None:
        """Append one event and return its span."""
        data = self._shape(msgspec.to_builtins(payload, builtin_types=(bytes,)))
        known = None if key is None else call_key(payload.KIND, *key)
        sealed = self.ledger.append(payload.KIND, data[0], opens=payload.PHASE == "opens", key=known, **names)
        assert sealed is not None
        if data[1] is not None:
            self.held.remember(sealed.seq, data[1], sealed.offset, len(data[0]), self.held.known)
        if known is not None:
            self.keys[str(sealed.seq)] = known
        return sealed.span

    def finish(self, payload: kinds.RunFinished, span: str | None) -> None:
        """Append run.finished, with the count and the root."""

        def data(seq: int, root: str) -> bytes:
            payload.events, payload.root = seq + 1, root
            return self._shape(msgspec.to_builtins(payload))[0]

        self.ledger.append(payload.KIND, data, span=span)

    def _shape(self, fields: dict[str, Any]) -> tuple[bytes, Any]:
        plainer = Plainer()
        encoded, news = self.held.encode(plainer.value(fields), plainer)
        for digest, blob in plainer.blobs:
            assert self.store.put_blob(blob) == digest
            self.blobs[digest] = blob
        return encoded, news


def write() -> Writer:
    """Return a finished run that holds every kind, every sort of reference, and addenda."""
    out = Writer()
    asked = {"intent": "fix-login", "payload": {"issue": 1842, "text": LONG}, "metadata": {"who": "golden"}}
    root = out.add(
        kinds.RunStarted(
            name="golden", input=asked, envelope_hash=envelope_hash("fix-login", asked["payload"], asked["metadata"]),
            agent={"name": "golden", "version": "1"}, entrypoint={"argv": ["agent.py"]}, environment={"python": "3.11"},
            git={"commit": "c0ffee", "branch": "main", "dirty": False}, ci={"provider": "github"}, tags={"team": "red"},
            policy={"mode": "observe"}, origin={"run": "run_0", "mode": "fork", "at": 3}, external_id="trace-1",
            sdk={"name": "playhead", "version": "1"},
        )
    )  # fmt: skip
    step = out.add(kinds.StepStarted(name="plan", attributes={"try": 1}), parent=root)
    _calls(out, step)
    out.add(kinds.OutputWritten(stream="stdout", text="done ✓\n"), parent=step)
    out.add(kinds.PolicyChecked(capability="repo.write", decision="allow", resource="src/"), parent=step)
    out.add(
        kinds.ArtifactCreated(name="p.diff", digest=hashlib.sha256(b"diff").hexdigest(), size=4, role="patch"),
        parent=step,
    )
    out.store.put_file(out.run, "artifacts/p.diff", b"diff")
    out.add(kinds.EffectObserved(what="file.written", target="src/login.py", detail={"bytes": 5}), parent=step)
    out.add(kinds.AmbientRead(reads=[["clock", 1_700_000_000.25], ["random", 0.5]]), parent=step, lane="0.1")
    out.add(kinds.GitCommitted(commit="abc", files=["src/login.py"], patch="p.diff", message="Fix"), parent=step)
    out.add(kinds.NoteAdded(text="a remark", data={"n": [1, 1.0, True, None, -0.0, 0.25]}), parent=step)
    out.add(kinds.GapNoted(reason="write_failed", count=2), parent=step)
    out.add(kinds.ReplayDeviated(type="repeated", text="asked a third time, recorded twice", seq=9, at=12), parent=step)
    out.add(kinds.ReplayReported(answered=3, calls=4, unasked=[7], unasked_count=1), parent=step)
    out.add(kinds.RunGraded(verdict="reproduced", sources=[{"source": "clock", "recorded": 2}]), parent=step)
    out.add(kinds.StepFinished(status="ok", attributes={"found": True}), span=step, parent=root)
    out.finish(kinds.RunFinished(status="ok", output={"answer": LONG}, metadata={"m": 1}), root)
    out.add(kinds.CiReported(job="test", step="unit", result="passed", test={"name": "t", "status": "passed"}))
    out.add(kinds.RunInvalidated(why="stale data", by="golden"))
    out.add(kinds.ContentErased(seq=1, path="/attributes", why="asked for", by="golden"))
    out.add(kinds.RunReopened(why="late span"))
    out.finish(kinds.RunFinished(status="ok", output={"answer": LONG}), root)
    return out


def _calls(out: Writer, step: str | None) -> None:
    request = {"model": "gpt-5", "messages": HISTORY, "temperature": 1.0}
    span = out.add(
        kinds.ModelInvoked(provider="openai", model="gpt-5", request=request), key=("gpt-5", request), parent=step
    )
    usage = kinds.Usage(input=100, output=7, cached=3, reasoning=1)
    out.add(
        kinds.ModelResponded(status="ok", response={"text": "look"}, usage=usage, finish="stop"), span=span, parent=step
    )
    request = {"model": "gpt-5", "messages": [*HISTORY, {"role": "user", "content": "And?"}], "temperature": 0.1}
    span = out.add(kinds.ModelInvoked(model="gpt-5", request=request, attempt=2), key=("gpt-5", request), parent=step)
    out.add(kinds.ModelResponded(status="error", error={"type": "Timeout", "message": "late"}), span=span, parent=step)
    asked = {"query": "login", "raw": bytes(range(256)) * 2, "odd": b"\x00\xff"}
    span = out.add(kinds.ToolCalled(name="search", input=asked, effects=["read"]), parent=step, lane="0.1")
    out.add(kinds.ToolReturned(status="ok", output={"hits": ["x" * 40_000, LONG]}), span=span, parent=step, lane="0.1")
    span = out.add(kinds.McpRequested(method="tools/list", params={"cursor": "2"}, server="npx files"), parent=step)
    out.add(kinds.McpAnswered(status="ok", result={"tools": [{"name": "read"}]}), span=span, parent=step)
    out.add(kinds.McpNotified(method="notifications/progress", params={"progress": 0.5}, from_server=True), parent=step)
    span = out.add(kinds.HttpSent(method="GET", url="https://x.test/a?b=1", headers=[["accept", "*/*"]]), parent=step)
    out.add(kinds.HttpReceived(outcome="ok", status=404, headers=[["via", "1"]], body="no"), span=span, parent=step)
    span = out.add(kinds.ProcessStarted(argv=["git", "status"], cwd="/repo"), parent=step)
    out.add(kinds.ProcessExited(status="ok", exit_code=0, output={"stdout": "clean"}), span=span, parent=step)


def write_received() -> Writer:
    """Return a run that came from outside: a late root, a span that was told anew, a log, times of their own."""
    out = Writer()
    received = {"by": "otlp", "rule": "session", "trace": "4bf92f3577b34da6a3ce929d0e0e4736"}
    root = out.add(
        kinds.RunStarted(name="golden", external_id="session-1", received=received, redaction={"version": "r1"}),
        **_at(0),
    )
    resource = {"attributes": {"service.name": "golden"}, "schema_url": "https://x.test/1"}
    out.add(
        kinds.EmitterDescribed(resource=resource, scope={"name": "golden", "version": "1"}, digest="0123456789abcdef"),
        parent=root, **_at(0),
    )  # fmt: skip
    request = {"model": "gpt-5", "messages": HISTORY}
    span = "00f067aa0ba902b7"
    out.add(kinds.ModelInvoked(provider="openai", model="gpt-5", request=request), key=("gpt-5", request), span=span,
            parent="53995c3f42cd8ad8", **_at(20))  # fmt: skip
    told = {"call": True, "richness": 12, "answer": "chatcmpl-1"}
    kept = {"name": "chat gpt-5", "kind": 3, "ns": [1, 999], "attributes": {"gen_ai.system": "openai", "long": LONG},
            "said": {"gen_ai.prompt": "opened/request"}, "digest": "fedcba9876543210", "emitter": 1}  # fmt: skip
    out.add(kinds.ModelResponded(status="ok", response={"text": "look"}, otlp={**kept, "told": told}), span=span,
            parent="53995c3f42cd8ad8", **_at(30))  # fmt: skip
    log = {"severity_number": 9, "digest": "00000000000000aa", "emitter": 1}
    out.add(kinds.LogEmitted(name="gen_ai.choice", severity="INFO", body="look", otlp=log), parent=span, **_at(29))
    revised = {"name": "chat gpt-5", "digest": "fedcba9876543211", "emitter": 1, "told": told}
    out.add(
        kinds.SpanRevised(why="sent_again", opens="model.invoked", opened={"model": "gpt-5", "request": request},
                          closed={"status": "error", "error": {"message": "late"}, "otlp": revised},
                          parent="53995c3f42cd8ad8", elapsed_us=[19, 31]),
        key=("gpt-5", request), span=span, parent="53995c3f42cd8ad8", **_at(31),
    )  # fmt: skip
    other = "00000000000000000000000000000002:53995c3f42cd8ad8"
    out.add(kinds.StepStarted(name="agent", attributes={"input": "?"}), span=other, parent=root, **_at(-5))
    out.add(kinds.StepFinished(status="ok", output=LONG, otlp={"told": {"root": True}}), span=other, parent=root,
            **_at(40))  # fmt: skip
    out.finish(kinds.RunFinished(status="ok", output=LONG), root)
    return out


def _at(elapsed_us: int) -> dict[str, int]:
    return {"time_us": 1_700_000_000_000_000 + elapsed_us, "elapsed_us": elapsed_us}


def expected(out: Writer) -> dict[str, Any]:
    """Say what every reader must find in the timeline."""
    reader = RunReader(out.store, out.run)
    events = list(reader.resolved())
    finished = [event for event in events if event.kind == "run.finished"]
    return {
        "run": out.run,
        "events": len(events),
        "head": events[-1].hash,
        "genesis": envelope.genesis(out.run),
        "hashes": [event.hash for event in events],
        "roots": [event.data["root"] for event in finished],
        "keys": out.keys,
        "envelope_hash": events[0].data.get("envelope_hash"),
        "kinds": [event.kind for event in events],
        "resolved": [hashlib.sha256(orjson.dumps(event.data)).hexdigest() for event in events],
    }


def save(folder: Path, out: Writer | None = None) -> None:
    """Write the timeline, its blobs, its artifact and what is expected of it."""
    out = out or write()
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    (folder / "timeline.jsonl").write_bytes(b"".join(out.store.lines(out.run)))
    (folder / "expected.json").write_bytes(orjson.dumps(expected(out), option=orjson.OPT_INDENT_2) + b"\n")
    for digest, data in out.blobs.items():
        (folder / "blobs" / digest).write_bytes(data)


if __name__ == "__main__":
    save(Path(sys.argv[1]), write_received() if sys.argv[2:] == ["received"] else None)
