"""The older completions of OpenAI, and its embeddings."""

from __future__ import annotations

from typing import Any

from tests.capture.dialects.wire import answer, read, sse

from playhead.capture.dialects.openai_plain import COMPLETIONS, EMBEDDINGS
from playhead.event.kinds import Usage


def chunk(said: str, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {
        "text": said,
        "index": index,
        "logprobs": {"tokens": [said], "token_logprobs": [-0.5]},
        "finish_reason": finish,
    }
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": "gpt-3.5-turbo-instruct",
        "choices": [choice],
        **more,
    }


def test_a_streamed_completion_has_the_shape_of_one_that_is_not() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    answered = read(COMPLETIONS, sse(chunk("Hel"), chunk("lo"), chunk("", "stop", usage=usage), end="data: [DONE]\n\n"))
    assert answered.response["choices"] == [{
        "index": 0, "text": "Hello", "finish_reason": "stop",
        "logprobs": {"tokens": ["Hel", "lo", ""], "token_logprobs": [-0.5, -0.5, -0.5]},
    }]  # fmt: skip
    assert answered.response["object"] == "text_completion"
    assert (answered.model, answered.finish) == ("gpt-3.5-turbo-instruct", "stop")
    assert answered.usage == Usage(input=5, output=2)
    assert answer(COMPLETIONS, answered.response).finish == "stop"


def test_embeddings_keep_their_vectors_and_count_input_only() -> None:
    body = {
        "object": "list", "model": "text-embedding-3-small", "usage": {"prompt_tokens": 8, "total_tokens": 8},
        "data": [{"object": "embedding", "index": 0, "embedding": [0.0023064255, -0.009327292]}],
    }  # fmt: skip
    answered = answer(EMBEDDINGS, body)
    assert answered.usage == Usage(input=8)
    assert answered.model == "text-embedding-3-small"
    assert (answered.calls, answered.finish) == ((), None)


def test_azure_has_the_model_in_the_path() -> None:
    assert EMBEDDINGS.asked({"input": "a"}, "/openai/deployments/ada/embeddings").model == "ada"
    assert COMPLETIONS.asked({"prompt": "a", "model": "m"}, "/v1/completions").model == "m"
