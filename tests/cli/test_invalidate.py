from __future__ import annotations

import json


def test_an_invalidated_run_is_refused_from_then_on_and_still_verifies(ask, sample, store):
    said = ask("invalidate", "@last", "--why", "the cache was stale", "--by", "ada", "--json")
    assert said.code == 0
    told = said.json
    (unseen,) = told.pop("not_captured")
    assert unseen["source"] == "reads"  # nobody called `install`
    assert told == {
        "run": sample, "why": "the cache was stale", "replayable": False, "reasons": ["manually_invalidated"],
    }  # fmt: skip
    last = json.loads((store / "runs" / sample / "timeline.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["data"]) == ("run.invalidated", {"why": "the cache was stale", "by": "ada"})
    assert ask("replay", sample).code == 1
    assert ask("verify", sample).code == 0
    assert ask("ls", "--json").json[0]["reasons"] == ["manually_invalidated"]
    assert "the cache was stale (by ada" in ask("show", sample).out
    assert "1 event after the end" in ask("show", sample).out


def test_a_reason_is_needed(ask, sample):
    assert ask("invalidate", "@last").code == 2
    assert ask("invalidate", "@last", "--why", "  ").code == 2
    assert ask("replay", sample).code == 0


def test_a_copy_outside_a_store_is_not_written(ask, sample, store, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(store / "runs" / sample, copy)
    before = (copy / "timeline.jsonl").read_bytes()
    assert ask("invalidate", str(copy), "--why", "x").code == 3
    assert (copy / "timeline.jsonl").read_bytes() == before
