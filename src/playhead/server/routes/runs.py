"""List runs, and say what is known of one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from playhead import _limits
from playhead._api.listing import list_runs, told
from playhead._api.points_in_time import moment_us
from playhead._api.showing import described
from playhead.event.kinds import Status
from playhead.replay.judged import fidelity_of
from playhead.server import paging
from playhead.server.asking import Ask
from playhead.server.finding import reader_of, run_of
from playhead.server.routing import Body, Query, route
from playhead.store.search import TextIndex

Limit = Annotated[int, msgspec.Meta(ge=1, le=_limits.PAGE_MAX)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=_limits.REFERENCE_CHARACTERS_MAX)]


class Filters(Query):
    """Which runs are meant; as it is made, all of them."""

    name: Text | None = None  # exactly this name
    status: Literal["running", "crashed", "ok", "error", "cancelled"] | None = None  # how it ended, or that it has not
    error: bool | None = None  # ended in an error, or crashed
    since: Text | None = None  # started at or after: 30m, 2h, 3d, or a date and time
    until: Text | None = None  # started before
    agent: Text | None = None  # the name of its agent
    commit: Text | None = None  # started from this commit, or made it: its id, or the beginning of one
    tag: Text | None = None  # key, or key=value

    def chosen(self) -> dict[str, Any]:
        """Return them as the index takes them."""
        return {
            "name": self.name,
            "status": self.status,
            "has_error": self.error,
            "since_us": None if self.since is None else moment_us(self.since),
            "until_us": None if self.until is None else moment_us(self.until),
            "agent": self.agent,
            "commit": None if self.commit is None else self.commit.lower(),
            "tag": self.tag,
        }


class RunsQuery(Filters):
    """Which runs, and how many at once."""

    text: Text | None = None  # a part of the name
    q: Text | None = None  # words in anything that the run says; "in quotes" for a phrase
    limit: Limit = _limits.LIST_RUNS_DEFAULT  # runs in one page
    cursor: Text | None = None  # the `next` of the page before


@route("GET", "/api/runs", group="Runs", query=RunsQuery, answers={200: {"runs": [], "next": None}})
def list_of_runs(ask: Ask) -> dict[str, Any]:
    """List runs, newest first, open ones included.

    Each as `playhead ls --json` has it. With `q` those that say something; GET /api/search tells where they say it.
    """
    query: RunsQuery = ask.query
    question = [ask.project.name, query.chosen() | {"text": query.text, "q": query.q}]
    before = paging.after(query.cursor, question)
    ids = None if query.q is None else _texts(ask).runs_with(query.q)
    runs = list_runs(
        ask.project.index, limit=query.limit + 1, before=before, text=query.text, ids=ids, **query.chosen()
    )
    page = [told(run) for run in runs[: query.limit]]
    last = paging.cursor(page[-1]["id"], question) if len(runs) > query.limit else None
    return {"runs": page, "next": last}


@route("GET", "/api/runs/{run}", group="Runs")
def one_run(ask: Ask) -> dict[str, Any]:
    """Say what is known of a run: how it ended, its timeline, whether it can be played back.

    As `playhead show --json` has it. A run is named by its id, the beginning of one, its name (its latest run),
    `@last`, or the id that it had outside: a trace, a session.
    """
    return described(run_of(ask.project, ask.path["run"]))


class VerifyQuery(Query):
    """How much is checked."""

    deep: bool = False  # also recompute the root that run.finished declares


@route("GET", "/api/runs/{run}/verify", group="Runs", query=VerifyQuery)
def verify_run(ask: Ask) -> dict[str, Any]:
    """Check a run: integrity, completeness and fidelity, as three answers.

    As `playhead verify --json` has it. A broken run is answered with 200 too: that it is broken is the answer.
    """
    run = run_of(ask.project, ask.path["run"])
    found: dict[str, Any] = msgspec.to_builtins(run.verify(deep=ask.query.deep))
    found["fidelity"] = fidelity_of(reader_of(run)) or {"verdict": "not_compared"}
    return found


class PlaybackQuery(Query):
    """Whether a run is played back that should not be."""

    force: bool = False  # play back what there is, although it is not replayable


@route("GET", "/api/runs/{run}/playback", group="Runs", query=PlaybackQuery)
def play_back(ask: Ask) -> dict[str, Any]:
    """Return the recorded outcome, with nothing executed; 409 with the reasons where the run is not replayable.

    `{status, from_replay, original_run_id, payload, metadata, error}`, as `playhead replay --json` has it.
    """
    run = run_of(ask.project, ask.path["run"])
    result = run.playback(force=ask.query.force, plain=True)
    return {
        "status": result.status,
        "from_replay": result.from_replay,
        "original_run_id": result.original_run_id,
        "payload": result.payload,
        "metadata": result.metadata,
        "error": result.error,
    }


class FinishBody(Body):
    """How a run ended."""

    status: Status | None = None  # as its root ended, where nothing is said
    error: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None  # what went wrong; the status is then `error`


@route("POST", "/api/runs/{run}/finish", scope="ingest", group="Runs", body=FinishBody, runs="writing")
def finish_run(ask: Ask) -> dict[str, Any]:
    """End a run that came from outside; without this it ends when its root has, and it has been quiet for a while.

    `{run, status}`. What comes after it opens the run again. A run that was not made of spans is answered with 404.
    """
    body: FinishBody = ask.json()
    run = run_of(ask.project, ask.path["run"])
    ask.project.intake.finish(run.id, body.status, body.error)
    return {"run": run.id, "status": run.status}


class InvalidateBody(Body):
    """Why a run must not be played back."""

    why: Text  # the reason, which readiness tells from then on
    by: Text | None = None  # who says so; else the key that asks


@route("POST", "/api/runs/{run}/invalidate", scope="admin", group="Runs", body=InvalidateBody, runs="writing")
def invalidate_run(ask: Ask) -> dict[str, Any]:
    """Declare that a run must not be played back; that is added to its record. `{run, replayable}` says how it is."""
    body: InvalidateBody = ask.json()
    run = run_of(ask.project, ask.path["run"])
    key = ask.caller.key
    run.invalidate(body.why, body.by or ("somebody" if key is None else f"key {key.id}"))
    return {"run": run.id, "replayable": run.readiness().replayable}


def _texts(ask: Ask) -> TextIndex:
    """Return the search, after reading what is new for a while: others may write into this store, too."""
    ask.project.texts.catch_up(_limits.SEARCH_CATCH_UP_S)
    return ask.project.texts


class SearchQuery(Query):
    """What is looked for."""

    q: Text  # words, "a phrase in quotes", -without, begin*
    limit: Limit = _limits.SEARCH_HITS_DEFAULT  # hits in one page
    cursor: Text | None = None  # the `next` of the page before


@route("GET", "/api/search", group="Runs", query=SearchQuery)
def search(ask: Ask) -> dict[str, Any]:
    """Find the events that say something, in the newest runs first: run, seq, kind, and a piece of the text.

    `{hits, next}`; `marks` of a hit says from which character to which of `snippet` the words stand.
    """
    query: SearchQuery = ask.query
    question = [ask.project.name, "search", query.q]
    found = _texts(ask).find(query.q, query.limit, paging.after(query.cursor, question))
    hits = [{name: value for name, value in hit._asdict().items() if name != "cursor"} for hit in found]
    last = paging.cursor(found[-1].cursor, question) if len(found) == query.limit else None
    return {"hits": hits, "next": last}
