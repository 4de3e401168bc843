"""Use HTTP clients without an SDK on top: requests, urllib3, urllib, http.client, aiohttp, httpx, httpx2, botocore."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import botocore.config
import botocore.session
import httpx
import httpx2
import requests
import requests.adapters
import urllib3
from scenario import KEY, MANY, ROOT, main, raising_scenario, scenario

BODY = {"words": "Grüße, 世界 🌍", "number": 1.5, "list": [1, 2, 3]}
BYTES = bytes(range(256)) * 40
BUSY_TWICE = urllib3.Retry(total=2, status_forcelist=[503], backoff_factor=0.01, allowed_methods=None)


def url(name: str, **query: Any) -> str:
    """Return an address whose answer is what the query says."""
    words = "&".join(f"{key}={value}" for key, value in query.items())
    return f"{ROOT}/plain/case:{name}/x?{words}"


def pieces() -> Iterator[bytes]:
    for number in range(5):
        yield b"piece %d of an upload;" % number


async def pieces_async() -> AsyncIterator[bytes]:
    for piece in pieces():
        yield piece


def latin(chunks: Any) -> list[str]:
    return [chunk.decode("latin-1") for chunk in chunks]


# requests


@scenario
def requests_get(seen: list[Any]) -> Any:
    answer = requests.get(url("requests_get", pretty=1), headers={"Authorization": f"Bearer {KEY}"}, timeout=10)
    return [answer.status_code, answer.json()]


@scenario
def requests_session(seen: list[Any]) -> Any:
    with requests.Session() as session:
        first = session.post(url("requests_session"), json=BODY, timeout=10)
        second = session.post(url("requests_session"), data={"a": "1", "b": "ü"}, timeout=10)
        third = session.put(url("requests_session"), data=BYTES, timeout=10)
        fourth = session.head(url("requests_session"), timeout=10)
        return [first.json(), second.json(), latin([third.content]), fourth.status_code]


@scenario
def requests_stream(seen: list[Any]) -> Any:
    with requests.get(url("requests_stream", size=5000, split=700, chunked=1), stream=True, timeout=10) as answer:
        seen += latin(answer.iter_content(chunk_size=None))
    return len(seen)


@scenario
def requests_upload(seen: list[Any]) -> Any:
    return latin([requests.post(url("requests_upload"), data=pieces(), timeout=10).content])


@scenario
def requests_multipart(seen: list[Any]) -> Any:
    files = {"file": ("a.bin", io.BytesIO(BYTES), "application/octet-stream")}
    return requests.post(url("requests_multipart", status=201), files=files, data={"a": "b"}, timeout=10).status_code


@raising_scenario
def requests_retry(seen: list[Any]) -> Any:
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=BUSY_TWICE))
        return session.get(url("requests_retry", status=503), timeout=10).status_code


@scenario
def requests_gzip(seen: list[Any]) -> Any:
    return requests.post(url("requests_gzip", encoding="gzip"), json=BODY, timeout=10).json()


@scenario
def requests_zstd(seen: list[Any]) -> Any:
    return requests.post(url("requests_zstd", encoding="zstd"), json=BODY, timeout=10).json()


@raising_scenario
def requests_cut(seen: list[Any]) -> Any:
    with requests.get(url("requests_cut", size=5000, split=700, chunked=1, cut=3), stream=True, timeout=10) as answer:
        for chunk in answer.iter_content(chunk_size=None):
            seen += latin([chunk])


@raising_scenario
def requests_cut_head(seen: list[Any]) -> Any:
    return requests.get(url("requests_cut_head", cut="before-head"), timeout=10).status_code


@raising_scenario
def requests_timeout(seen: list[Any]) -> Any:
    return requests.get(url("requests_timeout", delay_s=2), timeout=0.3).status_code


@scenario
def requests_closed_early(seen: list[Any]) -> Any:
    address = url("requests_closed_early", size=5000, split=700, chunked=1, chunk_delay_s=0.05)
    with requests.get(address, stream=True, timeout=10) as answer:
        seen += latin([next(answer.iter_content(chunk_size=None))])
    return "left"


@scenario
def requests_threads(seen: list[Any]) -> Any:
    with requests.Session() as session, ThreadPoolExecutor(MANY) as pool:
        return list(
            pool.map(
                lambda number: session.post(url(f"requests_threads_{number}"), json=[number], timeout=10).json(),
                range(MANY),
            )
        )


# urllib3, urllib, http.client


@scenario
def urllib3_chunked(seen: list[Any]) -> Any:
    with urllib3.PoolManager() as pool:
        address = url("urllib3_chunked", size=5000, split="torn", chunked=1)
        answer = pool.request("GET", address, preload_content=False)
        seen += latin(answer.read_chunked())
        answer.release_conn()
        again = pool.request("POST", url("urllib3_chunked"), json=BODY)
        return [len(seen), again.json()]


@scenario
def urllib3_upload(seen: list[Any]) -> Any:
    with urllib3.PoolManager() as pool:
        return latin([pool.request("POST", url("urllib3_upload"), body=pieces(), chunked=True).data])


@raising_scenario
def urllib3_refused(seen: list[Any]) -> Any:
    """Ask where nobody listens."""
    with urllib3.PoolManager(retries=False) as pool:
        return pool.request("GET", "http://127.0.0.1:9/plain/case:urllib3_refused/").status


@scenario
def urllib_request(seen: list[Any]) -> Any:
    asked = urllib.request.Request(url("urllib_request"), data=b"raw \xff bytes", headers={"Content-Type": "a/b"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        while chunk := answer.read(5):
            seen += latin([chunk])
    try:
        urllib.request.urlopen(url("urllib_request", status=404), timeout=10)
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]


@scenario
def http_client(seen: list[Any]) -> Any:
    connection = http.client.HTTPConnection(urlsplit(ROOT).netloc, timeout=10)
    path = url("http_client").removeprefix(ROOT)
    connection.putrequest("POST", path)
    connection.putheader("Content-Length", "6")
    connection.putheader("X-Twice", "1")
    connection.putheader("X-Twice", "2")
    connection.endheaders()
    connection.send(b"abc")
    connection.send(b"def")
    first = connection.getresponse()
    said = first.read()
    connection.request("GET", path + "size=100&chunked=1&split=33")
    second = connection.getresponse()
    buffer = bytearray(10)
    seen += [second.readinto(buffer), second.read1(7).decode("latin-1"), second.read().decode("latin-1")]
    connection.close()
    return [said.decode(), first.status, second.getheaders()]


# aiohttp


@scenario
async def aiohttp_calls(seen: list[Any]) -> Any:
    async with aiohttp.ClientSession() as session:
        async with session.get(url("aiohttp_calls")) as answer:
            seen.append(await answer.json())
        async with session.post(url("aiohttp_calls"), json=BODY) as answer:
            seen.append([answer.status, await answer.json()])
        async with session.post(url("aiohttp_calls"), data=BYTES) as answer:
            seen += latin([await answer.read()])
        async with session.get(url("aiohttp_calls", status=500)) as answer:
            return answer.status


@scenario
async def aiohttp_stream(seen: list[Any]) -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url("aiohttp_stream", size=5000, split=700, chunked=1)) as answer,
    ):
        whole = b""
        async for data, ends in answer.content.iter_chunks():
            whole += data
            if ends and whole:  # that a chunk ended may come by itself, as chance has it
                seen += latin([whole])
                whole = b""
    return len(seen)


@scenario
async def aiohttp_upload(seen: list[Any]) -> Any:
    async with aiohttp.ClientSession() as session:
        async with session.post(url("aiohttp_upload"), data=pieces_async()) as answer:
            seen += latin([await answer.read()])
        form = aiohttp.FormData({"a": "b"})
        form.add_field("file", BYTES, filename="a.bin")
        async with session.post(url("aiohttp_upload", status=201), data=form) as answer:
            return answer.status


@scenario
async def aiohttp_encoded(seen: list[Any]) -> Any:
    async with aiohttp.ClientSession() as session:
        for encoding in ("gzip", "br", "zstd"):
            async with session.post(url("aiohttp_encoded", encoding=encoding), json=BODY) as answer:
                seen.append(await answer.json())


@raising_scenario
async def aiohttp_cut(seen: list[Any]) -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url("aiohttp_cut", size=5000, split=700, chunked=1, cut=3)) as answer,
    ):
        return len(await answer.read())


@raising_scenario
async def aiohttp_timeout(seen: list[Any]) -> Any:
    patience = aiohttp.ClientTimeout(total=0.3)
    async with (
        aiohttp.ClientSession(timeout=patience) as session,
        session.get(url("aiohttp_timeout", delay_s=2)) as answer,
    ):
        return answer.status


@scenario
async def aiohttp_gather(seen: list[Any]) -> Any:
    async with aiohttp.ClientSession() as session:

        async def one(number: int) -> Any:
            async with session.post(url(f"aiohttp_gather_{number}"), json=[number]) as answer:
                return await answer.json()

        return await asyncio.gather(*(one(number) for number in range(MANY)))


# httpx and httpx2, which are alike


def httpx_sync(library: Any, name: str, seen: list[Any]) -> Any:
    with library.Client() as client:
        seen.append(client.get(url(name)).json())
        seen.append(client.post(url(name, encoding="br"), json=BODY).json())
        seen.append(client.post(url(name, status=201), files={"file": ("a.bin", BYTES)}, data={"a": "b"}).status_code)
        seen += latin([client.post(url(name), content=pieces()).content])
        with client.stream("GET", url(name, size=5000, split=700, chunked=1)) as answer:
            seen += latin(answer.iter_raw())
        return client.get(url(name, status=418)).status_code


async def httpx_async(library: Any, name: str, seen: list[Any]) -> Any:
    async with library.AsyncClient() as client:
        seen.append((await client.get(url(name))).json())
        seen.append((await client.post(url(name, encoding="gzip"), json=BODY)).json())
        seen += latin([(await client.post(url(name), content=pieces_async())).content])
        async with client.stream("GET", url(name, size=5000, split="torn", chunked=1)) as answer:
            seen += latin([chunk async for chunk in answer.aiter_raw()])
        return (await client.get(url(name, status=418))).status_code


def httpx_cut(library: Any, name: str, seen: list[Any]) -> Any:
    address = url(name, size=5000, split=700, chunked=1, cut=3)
    with library.Client() as client, client.stream("GET", address) as answer:
        for chunk in answer.iter_raw():
            seen += latin([chunk])


@scenario
def httpx1_calls(seen: list[Any]) -> Any:
    return httpx_sync(httpx, "httpx1_calls", seen)


@scenario
async def httpx1_async(seen: list[Any]) -> Any:
    return await httpx_async(httpx, "httpx1_async", seen)


@raising_scenario
def httpx1_cut(seen: list[Any]) -> Any:
    return httpx_cut(httpx, "httpx1_cut", seen)


@scenario
def httpx2_calls(seen: list[Any]) -> Any:
    return httpx_sync(httpx2, "httpx2_calls", seen)


@scenario
async def httpx2_async(seen: list[Any]) -> Any:
    return await httpx_async(httpx2, "httpx2_async", seen)


@raising_scenario
def httpx2_cut(seen: list[Any]) -> Any:
    return httpx_cut(httpx2, "httpx2_cut", seen)


@scenario
async def httpx2_gather(seen: list[Any]) -> Any:
    async with httpx2.AsyncClient() as client:
        answers = await asyncio.gather(
            *(client.post(url(f"httpx2_gather_{number}"), json=[number]) for number in range(MANY))
        )
    return [answer.json() for answer in answers]


# botocore


@scenario
def botocore_bedrock(seen: list[Any]) -> Any:
    """Ask a model of Bedrock; what comes back is what was sent."""
    client = botocore.session.get_session().create_client(
        "bedrock-runtime",
        region_name="eu-north-1",
        endpoint_url=f"{ROOT}/plain/case:botocore_bedrock",
        aws_access_key_id="none",
        aws_secret_access_key=KEY,
        config=botocore.config.Config(retries={"total_max_attempts": 2}),
    )
    answer = client.invoke_model(modelId="some.model-v1", body=json.dumps(BODY))
    seen.append(json.loads(answer["body"].read()))
    client.converse(modelId="some.model-v1", messages=[{"role": "user", "content": [{"text": "Grüße"}]}])
    return answer["contentType"]


if __name__ == "__main__":
    main()
