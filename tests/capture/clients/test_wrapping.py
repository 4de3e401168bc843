"""One client is recorded in a run that captures nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
import requests

import playhead
from playhead.testing import ScriptedProvider


def sent() -> list[str]:
    """Return the addresses of what the last run recorded, without the host."""
    out = []
    for event in playhead.load("@last").events():
        if event.kind in ("http.sent", "model.invoked"):
            url = (event.data.get("http") or event.data)["url"]
            out.append("/" + url.split("/", 3)[3])
    return out


@pytest.mark.parametrize("make", [httpx.Client, httpx2.Client, requests.Session])
def test_only_the_wrapped_client_is_recorded(make: Any) -> None:
    with ScriptedProvider() as provider, make() as wrapped, make() as other:
        assert playhead.wrap(wrapped) is wrapped
        with playhead.record("one", capture=False):
            other.get(provider.root_url + "/plain/other")
            assert wrapped.get(provider.root_url + "/plain/wrapped").status_code == 200
            other.get(provider.root_url + "/plain/other")
        assert sent() == ["/plain/wrapped"]
        with playhead.record("all"):
            other.get(provider.root_url + "/plain/other")
            wrapped.get(provider.root_url + "/plain/wrapped")
        assert sent() == ["/plain/other", "/plain/wrapped"]
        assert playhead.unwrap(wrapped) is wrapped
        with playhead.record("none", capture=False):
            wrapped.get(provider.root_url + "/plain/wrapped")
        assert sent() == []
        assert "send" not in vars(wrapped)


@pytest.mark.parametrize("make", [httpx.AsyncClient, httpx2.AsyncClient, aiohttp.ClientSession])
def test_asynchronous_clients_too_also_several_at_once(make: Any) -> None:
    async def main(url: str) -> None:
        async with make() as wrapped, make() as other:
            playhead.wrap(playhead.wrap(wrapped))
            with playhead.record("one", capture=False):
                asked = [wrapped.get(f"{url}/plain/{n}") for n in range(5)] + [other.get(f"{url}/plain/other")]
                answers = await asyncio.gather(*asked)
                for answer in answers:
                    if make is aiohttp.ClientSession:
                        await answer.read()
            playhead.unwrap(wrapped)
            assert not {"send", "_request"} & set(vars(wrapped))

    with ScriptedProvider() as provider:
        asyncio.run(main(provider.root_url))
    assert sorted(sent()) == [f"/plain/{n}" for n in range(5)]


def test_clients_of_providers_are_wrapped_where_they_send() -> None:
    with ScriptedProvider(["Hello."], repeat=True) as provider:
        ours = playhead.wrap(openai.OpenAI(base_url=provider.base_url, api_key="none"))
        claude = playhead.wrap(anthropic.Anthropic(base_url=provider.anthropic_url, api_key="none"))
        with playhead.record("one", capture=False):
            other = openai.OpenAI(base_url=provider.base_url, api_key="none")
            other.responses.create(model="other", input="?")
            list(ours.responses.create(model="gpt-5", input="?", stream=True))
            ours.with_options(max_retries=0).responses.create(model="gpt-5", input="?")
            claude.messages.create(model="claude", max_tokens=9, messages=[{"role": "user", "content": "?"}])
    assert sent() == ["/v1/responses", "/v1/responses", "/v1/messages"]


@pytest.mark.parametrize(
    "thing", [None, 7, "text", object(), {"_client": 1}], ids=["None", "number", "text", "object", "fields"]
)
def test_what_holds_no_client_is_refused(thing: Any) -> None:
    with pytest.raises(playhead.PlayheadError, match="no HTTP client"):
        playhead.wrap(thing)
    assert playhead.unwrap(thing) is thing


def test_a_client_that_makes_its_sessions_later_is_covered_too() -> None:
    class Api:
        """As that of google-genai: a session for each event loop, made when it is needed."""

        def _request_once(self, url: str) -> int:
            with httpx2.Client() as client:
                return client.get(url).status_code

        async def _async_request_once(self, url: str) -> int:
            async with httpx2.AsyncClient() as client:
                return (await client.get(url)).status_code

    class Client:
        def __init__(self) -> None:
            self._api_client = Api()

    with ScriptedProvider() as provider, playhead.record("one", capture=False):
        ours = playhead.wrap(Client())
        assert ours._api_client._request_once(f"{provider.root_url}/plain/a") == 200
        assert asyncio.run(ours._api_client._async_request_once(f"{provider.root_url}/plain/b")) == 200
        assert Api()._request_once(f"{provider.root_url}/plain/c") == 200
        playhead.unwrap(ours)
        assert ours._api_client._request_once(f"{provider.root_url}/plain/d") == 200
    assert sent() == ["/plain/a", "/plain/b"]
