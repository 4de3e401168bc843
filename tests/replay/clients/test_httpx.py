"""httpx and its fork, answered from the tape."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.capture.clients.raw_server import serving
from tests.replay.clients.replaying import SHOWN, record, same

WIRE = (
    SHOWN
    + """
import importlib
httpx = importlib.import_module(sys.argv[2])

def seen(answer):
    told = answer.extensions
    return (answer.http_version, answer.status_code, answer.reason_phrase, answer.headers.multi_items(), str(answer.url),
            answer.content[:400], answer.num_bytes_downloaded, told.get("http_version"), told.get("reason_phrase"),
            answer.elapsed is not None, len(answer.history), answer.encoding)

def failing(error):
    return isinstance(error, httpx.RequestError) and str(error.request.url).removeprefix(URL)

class Wrapping(httpx.BaseTransport):
    def __init__(self, inner):
        self._inner = inner
    def handle_request(self, request):
        answer = self._inner.handle_request(request)
        answer.headers["x-wrapped"] = "yes"
        return answer

def main():
    with httpx.Client(timeout=1) as client:
        for path in PATHS + ["/hints", "/hold", "/hold-head"]:
            show(path, lambda: seen(client.get(URL + path, follow_redirects=True)))
            try:
                with client.stream("GET", URL + path) as answer:
                    print("raw", b"".join(answer.iter_raw())[:400], answer.is_closed)
            except httpx.HTTPError as error:
                print("raw failed", failing(error), trail(error))
        with client.stream("GET", URL + "/stream") as answer:
            print("left", next(answer.iter_bytes(4)))
        with client.stream("GET", URL + "/stream") as answer:
            print("lines", list(answer.iter_lines()))
        show("head", lambda: seen(client.head(URL + "/plain")))
        show("made", lambda: seen(client.post(URL + "/echo", content=(piece for piece in [b"a", b"bc"]))))
        show("parts", lambda: seen(client.post(URL + "/echo", files={"f": ("name", b"content")})))
        show("status", lambda: client.get(URL + "/failed").raise_for_status())
        show("refused", lambda: client.get("http://127.0.0.1:9/"))
        show("unknown", lambda: client.get("http://no.such.host.invalid/"))
        show("insecure", lambda: client.get(URL.replace("http:", "https:") + "/x"))
        show("odd", lambda: client.get("gopher://127.0.0.1/"))
    show("proxy", lambda: httpx.Client(proxy="http://127.0.0.1:9").get("http://a.invalid/"))
    show("proxied", lambda: seen(httpx.Client(proxy=URL).get("http://a.invalid/plain")))
    show("again", lambda: httpx.Client(transport=httpx.HTTPTransport(retries=2)).get("http://127.0.0.1:9/"))
    show("mounted", lambda: seen(httpx.Client(mounts={"http://": httpx.HTTPTransport()}).get(URL + "/plain")))
    show("wrapped", lambda: seen(httpx.Client(transport=Wrapping(httpx.HTTPTransport())).get(URL + "/plain")))

async def main_async(sleep, within):
    async with httpx.AsyncClient(timeout=1) as client:
        for path in PATHS + ["/hold", "/hold-head"]:
            try:
                print(path, seen(await client.get(URL + path)))
            except httpx.HTTPError as error:
                print(path, "failed", failing(error), trail(error)[:2])
        async with client.stream("GET", URL + "/large") as answer:
            async for piece in answer.aiter_bytes(5):
                print("left", piece)
                break
        async with client.stream("GET", URL + "/hold", timeout=None) as answer:
            with within(0.3):
                async for piece in answer.aiter_raw():
                    print("given up", piece)
        with within(0.3):
            await client.get(URL + "/hold-head", timeout=None)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1)) as client:
        async with client.stream("GET", URL + "/hold") as answer:
            try:
                await client.get(URL + "/plain", timeout=httpx.Timeout(5, pool=0.2))
            except httpx.HTTPError as error:
                print("no room", failing(error), trail(error)[:2])

main()
import anyio
for backend in ("asyncio", "trio"):
    anyio.run(main_async, anyio.sleep, anyio.move_on_after, backend=backend)
"""
)


@pytest.mark.parametrize("library", ["httpx", pytest.param("httpx2", marks=pytest.mark.hard)])  # the same code
def test_whatever_comes_over_the_wire_comes_again(tmp_path: Path, library: str) -> None:
    with serving() as server:
        recorded = record(tmp_path, WIRE, server.url, library)
    same(recorded)
