"""aiohttp, answered from the tape."""

from __future__ import annotations

from pathlib import Path

from tests.capture.clients.raw_server import serving
from tests.replay.clients.replaying import SHOWN, record, same

WIRE = (
    SHOWN
    + """
import aiohttp, asyncio, io

async def main():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20, sock_read=1)) as session:
        async def ask(path, method="GET", url=URL, **more):
            async with session.request(method, url + path, **more) as answer:
                seen = answer.version, answer.status, answer.reason, answer.headers.items(), str(answer.url)
                return *seen, (await answer.read())[:400], len(answer.history), answer.method
        async def pieces(path):
            async with session.get(URL + path) as answer:
                return [piece async for piece in answer.content.iter_chunked(7)]
        async def chunks(path):
            async with session.get(URL + path) as answer:
                seen = [b""]
                async for piece, ended in answer.content.iter_chunks():
                    seen[-1] += piece
                    seen += [b""] if ended else []
                return seen
        async def lines(path):
            async with session.get(URL + path) as answer:
                return await answer.content.readuntil(b"\\n"), [line async for line in answer.content]
        async def left(path):
            async with session.get(URL + path) as answer:
                return await answer.content.readany() != b""
        async def status(path):
            async with session.get(URL + path, raise_for_status=True) as answer:
                return answer.status
        async def made():
            for piece in (b"one", b"two" * 1000):
                await asyncio.sleep(0)
                yield piece
        async def redirected():
            async with session.get(URL + "/moved", allow_redirects=False) as answer:
                return answer.status, answer.headers["location"], await answer.text()
        async def waited(path):
            return await asyncio.wait_for(ask(path), 0.3)
        async def within(path):
            return await ask(path, timeout=aiohttp.ClientTimeout(total=0.3))

        for path in PATHS + ["/hints", "/hold", "/hold-head"]:
            await show_async(path, ask(path))
        for path in ["/stream", "/framed", "/large", "/cut-chunks", "/gzip", "/hold"]:
            await show_async("pieces " + path, pieces(path))
            await show_async("chunks " + path, chunks(path))
        await show_async("lines", lines("/stream"))
        await show_async("left", left("/large"))
        await show_async("left", left("/hold"))
        await show_async("status", status("/failed"))
        await show_async("head", ask("/plain", "HEAD"))
        await show_async("moved", redirected())
        await show_async("post", ask("/echo", "POST", json={"a": [1, 2]}))
        await show_async("form", ask("/echo", "POST", data={"a": "b"}))
        await show_async("parts", ask("/echo", "POST", data={"a": io.BytesIO(b"content")}))
        await show_async("made", ask("/echo", "POST", data=made()))
        await show_async("packed", ask("/echo", "POST", data=b"z" * 5000, compress="deflate"))
        await show_async("expect", ask("/echo", "POST", data=b"body", expect100=True))
        await show_async("waited", waited("/hold"))
        await show_async("waited", waited("/hold-head"))
        await show_async("within", within("/hold"))
        await show_async("within", within("/hold-head"))
        await show_async("refused", ask("/", url="http://127.0.0.1:9"))
        await show_async("unknown", ask("/", url="http://no.such.host.invalid"))
        await show_async("insecure", ask("/x", url=URL.replace("http:", "https:")))
        await show_async("proxy", ask("/", proxy="http://127.0.0.1:9"))
        await show_async("again", ask("/plain"))

asyncio.run(main())
"""
)


def test_whatever_comes_over_the_wire_comes_again(tmp_path: Path) -> None:
    with serving() as server:
        recorded = record(tmp_path, WIRE, server.url)
    same(recorded)
