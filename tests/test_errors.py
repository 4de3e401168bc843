"""Every error can be passed between processes and copied."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import pytest

import playhead
from playhead import errors
from playhead.event import plain

OPTIONS: dict[str, dict[str, Any]] = {
    "NotReplayable": {"reasons": ["execution_incomplete"]},
    "EnvelopeMismatch": {"expected": "a", "actual": "b"},
    "RecordedError": {"error": {"type": "ValueError"}},
    "PolicyDenied": {"capability": "net", "resource": None, "rule": "none", "reason": "no"},
    "EffectDenied": {"capability": "net", "resource": None, "rule": "none", "reason": "no"},
}
KINDS = sorted(
    {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.PlayheadError)},
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_can_be_pickled_and_copied(kind: type[errors.PlayheadError]) -> None:
    error = kind("what", **OPTIONS.get(kind.__name__, {"hint": "do"}))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.as_dict() == error.as_dict()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_says_what_to_do_next_and_the_record_of_it_only_what_happened(
    kind: type[errors.PlayheadError],
) -> None:
    error = kind("what", **OPTIONS.get(kind.__name__, {"hint": "do"}))
    assert str(error) == f"what\n  {error.hint}"
    assert plain.describe_error(error)["message"] == "what"
    assert str(errors.PlayheadError("what")) == "what"


def test_a_mistake_in_python_shows_how_to_mend_it() -> None:
    with pytest.raises(errors.UsageError, match=r"unknown effects: destroy\n  .*irreversible"):
        playhead.tool(effects=["destroy"])(print)


def _job(_: int) -> None:
    playhead.check("net")


def test_a_denial_in_a_pool_reaches_whoever_waits_for_it() -> None:
    with (
        playhead.record("agent", policy=lambda *_: False),
        multiprocessing.get_context("fork").Pool(1) as pool,
        pytest.raises(playhead.PolicyDenied),
    ):
        pool.map_async(_job, [1]).get(timeout=30)
