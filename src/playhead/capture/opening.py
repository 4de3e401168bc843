"""Open a recording: a new run in a store, or one that somebody else started, with the settings in force."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from typing import Any

from playhead import settings as settings_module
from playhead._ids import new_run_id
from playhead.capture import children, enforcing, guard
from playhead.capture.gate import Gate
from playhead.capture.recording import Recording
from playhead.capture.redact import Redactor
from playhead.capture.scope import Policy
from playhead.errors import PlayheadError, PolicyDenied, UsageError
from playhead.policy.rules import Rules
from playhead.settings import Settings
from playhead.store.base import Store
from playhead.store.files import FileStore


def open_recording(
    store: Store,
    settings: Settings,
    *,
    policy: Policy | None = None,
    run: str | None = None,
    captures: bool = True,
    rules: enforcing.Given = enforcing.OF_FOLDER,
) -> Recording:
    """Create a new run in a store, or join the one named, and return what records it."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise UsageError(
            "this interpreter runs without a global lock, which Playhead has not been tested with",
            hint="Use a standard build of Python 3.11 to 3.14, or PLAYHEAD_DISABLED=1.",
        )
    gate = Gate(shared_redactor(settings))  # first: where a rule is wrong, there is no run
    identity = run or new_run_id()
    ledger = store.ledger(identity, create=run is None)
    begun = run is not None
    recording = Recording(
        identity, store, ledger, gate, settings=settings, policy=policy, captures=captures, begun=begun
    )
    try:
        enforcing.begin(recording, store, settings, run, rules)
    except Exception:
        withdraw(recording)
        raise
    return recording


def policy_around(origin: Mapping[str, Any] | None, settings: Settings) -> Rules | None:
    """Return the policy that is enforced in the run that another one comes from: it holds in that, too.

    None without one; PolicyDenied where it cannot be read.
    """
    if origin is None or not children.holds():
        return None
    try:
        return enforcing.kept(FileStore(settings.store_root()), origin["run"])
    except PlayheadError as problem:
        said = f"the policy of {origin['run']}, in which this was started, cannot be read: {problem.message}"
        raise PolicyDenied(said, capability="run.start", rule="unrecorded", reason=said) from problem


def withdraw(recording: Recording) -> None:
    """Let go of a run that could not be started, and leave nothing of it where nothing was written."""
    recording.abandon()
    try:
        if next(iter(recording.store.lines(recording.id)), None) is None:
            recording.store.delete(recording.id)
    except (OSError, PlayheadError) as problem:
        guard.logger.warning("%s holds nothing and cannot be removed: %s", recording.id, problem)


@functools.lru_cache(maxsize=8)
def _redactor(
    off: tuple[str, ...], fields: tuple[str, ...], patterns: tuple[tuple[str, str], ...], _env: int
) -> Redactor:
    return Redactor(disabled=off, fields=fields, patterns=dict(patterns))


def shared_redactor(settings: Settings) -> Redactor:
    """Return the redactor for these settings; made anew when the environment changed."""
    patterns = tuple(sorted(settings.redact_patterns.items()))
    return _redactor(settings.redact_off, settings.redact_fields, patterns, hash(frozenset(os.environ.items())))


def default_settings() -> Settings:
    """Return the settings in force in the current directory."""
    return settings_module.load()
