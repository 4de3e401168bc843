"""Ask each recorded question to a model once more, alone: no code of the agent runs, and no answer leads to another."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from playhead.capture import dialects
from playhead.capture.record import Record
from playhead.capture.spans import ModelCall
from playhead.errors import UsageError
from playhead.event import wire
from playhead.event.envelope import Event
from playhead.replay.models.asker import Asker, BudgetSpent, Came
from playhead.replay.models.overrides import Asked, elsewhere
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views.answers import read
from playhead.views.aside import said
from playhead.views.difference import changes

# By dialect: the header that has the key, what stands before it, and the variables that may hold it.
_KEYS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "anthropic.messages": ("x-api-key", "", ("ANTHROPIC_API_KEY",)),
    "google.generate": ("x-goog-api-key", "", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
}
_KEY = ("authorization", "Bearer ", ("OPENAI_API_KEY",))
_OF_PROVIDERS = {
    "openrouter": "OPENROUTER_API_KEY", "groq": "GROQ_API_KEY", "mistral": "MISTRAL_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY", "together": "TOGETHER_API_KEY", "xai": "XAI_API_KEY",
}  # fmt: skip
_HIDDEN = "[redacted:"
_KEPT = ("anthropic-version", "anthropic-beta", "content-type", "openai-beta", "openai-organization", "openai-project")


class Question(NamedTuple):
    """One recorded question, and what was answered then."""

    seq: int
    lane: str
    provider: str | None
    model: str | None
    request: Any
    asked: Asked
    answered: Event | None


class Alone(NamedTuple):
    """What came of one question."""

    question: Question
    came: Came | None
    response: Any
    usage: Any
    model: str | None
    problem: str  # why it was not asked, or not answered


@dataclass
class AskedAlone:
    """What came of the questions of a run that were asked again, each alone."""

    run: str
    origin: dict[str, Any]
    mode: str
    isolated: bool
    asked: int
    same: int
    changed: int
    failed: int
    cost: float | None
    unpriced: list[str]
    questions: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead replay --mode model --isolated`."""
        return asdict(self)


def questions(reader: RunReader, base_url: str | None, headers: Mapping[str, str]) -> list[Question]:
    """Return the questions to models of a run, as they can be asked again."""
    opened: dict[str | None, Event] = {}
    found: list[tuple[Event, Event | None]] = []
    for event in reader.resolved():
        if event.kind == "model.invoked":
            opened[event.span] = event
            found.append((event, None))
        elif event.kind == "model.responded" and event.span in opened:
            at = next(n for n, (question, _) in enumerate(found) if question.span == event.span)
            found[at] = (found[at][0], event)
    return [_question(event, answered, base_url, headers) for event, answered in found]


def _question(event: Event, answered: Event | None, base_url: str | None, headers: Mapping[str, str]) -> Question:
    data = event.data
    http = data.get("http") or {}
    provider, model, request = (data.get(name) for name in ("provider", "model", "request"))
    if http.get("url"):
        url, method = str(http["url"]), str(http.get("method") or "POST")
        body = wire.request_bytes(data)
        kept = [
            (str(n), str(v)) for n, v in http.get("headers") or () if str(n).lower() in _KEPT and _HIDDEN not in str(v)
        ]
    else:
        url, body = _made(event, provider, model, request, base_url)
        method, kept = "POST", [("content-type", "application/json")]
    dialect = dialects.find(method, url)
    pairs = {
        name.lower(): value
        for name, value in [*kept, *_key(dialect[0].name if dialect else "", provider), *headers.items()]
    }
    return Question(
        event.seq, event.lane, provider, model, request, Asked(method, url, list(pairs.items()), body), answered
    )


def _made(event: Event, provider: Any, model: Any, request: Any, base_url: str | None) -> tuple[str, bytes]:
    """Make a request of a question of which only the meaning was recorded, as by OTLP or by hand."""
    if base_url is None:
        raise UsageError(
            f"event {event.seq} does not say where the model was asked",
            hint="`--base-url URL` says where to ask it: http://127.0.0.1:8080/v1.",
        )
    if isinstance(request, list):
        request = {"messages": request}
    if not isinstance(request, dict):
        request = {"messages": [{"role": "user", "content": request if isinstance(request, str) else str(request)}]}
    if provider == "anthropic":
        path, body = "/v1/messages", {"max_tokens": 4096, "model": model, **request}
    elif provider in ("google", "vertex", "gemini"):
        path, body = f"/v1beta/models/{quote(str(model), safe='')}:generateContent", dict(request)
    elif "input" in request and "messages" not in request:
        path, body = "/v1/responses", {"model": model, **request}
    else:
        path, body = "/v1/chat/completions", {"model": model, **request}
    return elsewhere(f"http://recorded{path}", base_url), orjson.dumps(body)


def _key(dialect: str, provider: Any) -> list[tuple[str, str]]:
    """Return the header with the key of a provider, from the variables of this process; none where it has none."""
    header, before, names = _KEYS.get(dialect, _KEY)
    named = _OF_PROVIDERS.get(str(provider))
    value = next((os.environ[name] for name in (*([named] if named else []), *names) if os.environ.get(name)), None)
    return [] if value is None else [(header, before + value)]


def ask_alone(
    reader: RunReader,
    store: FileStore,
    asker: Asker,
    *,
    headers: Mapping[str, str] | None = None,
    at_once: int = 1,
    done: Callable[[], None] = lambda: None,
) -> AskedAlone:
    """Ask every question of a run again, record that as a run of its own, and say which answers changed."""
    asked = questions(reader, asker.overrides.base_url, headers or {})
    if not asked:
        raise UsageError(f"{reader.id} asked no model", hint="`playhead ls` says which runs did.")

    def one(question: Question) -> Alone:
        try:
            return _answered(question, asker.ask(question.asked))
        except (BudgetSpent, UsageError) as problem:
            return Alone(question, None, None, None, None, str(problem))
        finally:
            done()

    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        found = list(pool.map(one, asked))
    origin = {"run": reader.id, "mode": "model", "at": asked[-1].seq, "isolated": True}
    overrides = asker.overrides.as_dict()
    run = _recorded(reader, store, found, {**origin, **({"overrides": overrides} if overrides else {})})
    return _told(reader, run, origin, found, asker)


def _answered(question: Question, came: Came) -> Alone:
    if came.status is None:
        return Alone(question, came, None, None, None, came.problem)
    media = next((value for name, value in came.headers if name.lower() == "content-type"), "")
    told = dialects.documents(came.body, media)
    dialect = dialects.find(question.asked.method, question.asked.url)
    if came.status >= 400 or told is None or dialect is None:
        return Alone(
            question, came, None, None, None, f"{came.status} {came.body[:300].decode(errors='replace')}".strip()
        )
    answered = dialect[0].answered(*told)
    return Alone(question, came, answered.response, answered.usage, answered.model, "")


def _recorded(reader: RunReader, store: FileStore, found: list[Alone], origin: dict[str, Any]) -> str:
    """Record the questions and their answers, in order."""
    name = str(reader.first().data.get("name") or "questions")
    with Record(name, store=store, origin=origin, capture=False) as record:
        for one in found:
            question = one.question
            with ModelCall(question.provider, one.model or question.model, question.request) as call:
                if one.problem:
                    call.respond({"error": one.problem})
                else:
                    call.respond(one.response, usage=_counts(one.usage), model=one.model)
        run = record.id
    assert run is not None, "a store was given"
    return run


def _counts(usage: Any) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        name: count
        for name in ("input", "output", "cached", "reasoning")
        if (count := getattr(usage, name)) is not None
    }


def _told(reader: RunReader, run: str, origin: dict[str, Any], found: list[Alone], asker: Asker) -> AskedAlone:
    """Say which answers changed."""
    rows, same = [], 0
    for one in found:
        then = None if one.question.answered is None else one.question.answered.data
        differences = [] if then is None or one.problem else changes(said(then), said({"response": one.response}))
        same += not differences and not one.problem and then is not None
        rows.append(
            {
                "seq": one.question.seq,
                "lane": one.question.lane,
                "models": [one.question.model, one.model],
                "same": not differences and not one.problem and then is not None,
                "then": None if then is None else read(then.get("response"), 200).told,
                "now": None if one.problem else read(one.response, 200).told,
                "problem": one.problem or None,
                "changes": [change.as_dict() for change in differences],
            }
        )
    return AskedAlone(
        run=run,
        origin=origin,
        mode="model",
        isolated=True,
        asked=asker.count,
        same=same,
        changed=sum(not row["same"] and not row["problem"] for row in rows),
        failed=sum(bool(row["problem"]) for row in rows),
        cost=asker.cost,
        unpriced=asker.bill.unpriced,
        questions=rows,
    )
