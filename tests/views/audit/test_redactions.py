from __future__ import annotations

from tests.views.audit.told import Told, found


def test_what_the_run_counted_is_told_at_the_first_event_that_has_a_mark() -> None:
    run = Told()
    at = run.add("note.added", {"text": "[redacted:env]"})
    run.add("run.finished", {"status": "ok", "redacted": {"env": 3, "header": 1}}, span="0")
    env, header = found("redaction", run)
    assert (env.seq, env.count, env.target, env.severity) == (at, 3, "env", "info")
    assert (header.seq, header.count) == (at + 1, 1)


def test_of_a_run_without_an_end_it_is_said_that_there_may_be_more() -> None:
    run = Told()
    run.add("note.added", {"text": "[redacted:env] and [redacted:env]"})
    (one,) = found("redaction", run)
    assert one.count == 2
    assert one.detail.startswith("at least 2 values")
