"""Headers are written once where they are the same, read whole, and hold no secret."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from tests.capture.sdk_calls import (
    openai_call,
    whole,
)

import playhead
from playhead.event import wire
from playhead.testing import ScriptedProvider


class Growing:
    """A client whose every request carries another secret, so that what was encoded before must not be used again."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider

    def ask(self, number: int) -> None:
        secret = f"value-{number:04}-qzxwvutsrqpo"
        with openai.OpenAI(base_url=self.provider.base_url, api_key=secret) as client:
            client.responses.create(
                model="gpt-5", input=f"what is {secret}, and {number}?", extra_headers={"x-app": secret}
            )


def test_the_same_headers_are_written_once_and_read_whole() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider, playhead.record("headers") as run:
        with openai.OpenAI(base_url=provider.base_url, api_key="sk-none") as client:
            for number in range(6):
                client.responses.create(model="gpt-5", input=f"{number}" * number or "?")
        path = run.path
    lines = (path / "timeline.jsonl").read_text().splitlines()
    assert sum('"$same"' in line or '"$extends"' in line for line in lines) >= 5
    whole(provider)


def test_a_secret_that_became_known_stays_out_of_headers_that_refer_to_others() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider, playhead.record("secrets") as run:
        asking = Growing(provider)
        for number in range(8):
            asking.ask(number)
            asking.ask(number)
        root = run.path.parent.parent
    for file in root.rglob("*"):
        assert not file.is_file() or b"qzxwvutsrqpo" not in file.read_bytes(), file
    assert playhead.verify("@last").integrity.verdict == "intact"
    asked = [event.data for event in playhead.load("@last").events() if event.kind == "model.invoked"]
    assert len(asked) == 16
    for data in asked:
        assert ["x-app", "[redacted:known-value]"] in data["http"]["headers"] or any(
            name == "x-app" and "redacted" in json.dumps(value) for name, value in data["http"]["headers"]
        )


def test_two_threads_that_write_headers_at_once_are_both_read_whole() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider:
        client = openai.OpenAI(base_url=provider.base_url, api_key="none")
        with client, playhead.record("threads"), ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: client.responses.create(model="gpt-5", input=str(n)), range(40)))
        bodies = sorted(request.body for request in provider.requests)
        names = [name for name, _ in provider.requests[0].headers]
    invoked = [event.data for event in playhead.load("@last").events() if event.kind == "model.invoked"]
    assert sorted(wire.request_bytes(data) for data in invoked) == bodies
    for data in invoked:
        assert [name for name, _ in data["http"]["headers"]] == names


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_writes_its_headers_in_full() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider:
        with playhead.record("forked"):
            openai_call(provider)
            child = os.fork()
            if not child:
                try:
                    openai_call(provider)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            openai_call(provider)
        whole(provider)


def test_a_timeline_that_was_cut_is_followed_by_whole_headers() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider:
        with playhead.record("cut") as run:
            timeline = run.path / "timeline.jsonl"
            kept = timeline.read_bytes()
            openai_call(provider)
            timeline.write_bytes(kept)  # the line that the next ones would refer to is gone
            openai_call(provider)
            openai_call(provider)
        names = [name for name, _ in provider.requests[0].headers]
    invoked = [event.data for event in playhead.load("@last").events() if event.kind == "model.invoked"]
    assert len(invoked) >= 1
    assert all([name for name, _ in data["http"]["headers"]] == names for data in invoked)
    assert playhead.verify("@last").integrity.verdict == "intact"
