"""Every error can be passed between processes and copied."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import pytest

import playhead
from playhead import errors

OPTIONS: dict[str, dict[str, Any]] = {
    "NotReplayable": {"reasons": ["execution_incomplete"]},
    "EnvelopeMismatch": {"expected": "a", "actual": "b"},
    "RecordedError": {"error": {"type": "ValueError"}},
    "PolicyDenied": {"capability": "net", "resource": None, "rule": "none", "reason": "no"},
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


def _job(_: int) -> None:
    playhead.check("net")


def test_a_denial_in_a_pool_reaches_whoever_waits_for_it() -> None:
    with (
        playhead.record("agent", policy=lambda *_: False),
        multiprocessing.get_context("fork").Pool(1) as pool,
        pytest.raises(playhead.PolicyDenied),
    ):
        pool.map_async(_job, [1]).get(timeout=30)
