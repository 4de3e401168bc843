"""What an agent sends out about itself stays in when it is replayed."""

from __future__ import annotations

from pathlib import Path

from tests.capture.clients.raw_server import serving
from tests.replay.clients.replaying import SHOWN, record, same

EXPORTING = (
    SHOWN
    + """
import asyncio, aiohttp, httpx, requests, urllib.request

HEADERS = {"content-type": "application/x-protobuf"}
PLACE = URL + "/v1/traces"

async def main():
    async with httpx.AsyncClient() as client:
        await client.post(PLACE, content=b"spans", headers=HEADERS)
    async with aiohttp.ClientSession() as session, session.post(PLACE, data=b"spans", headers=HEADERS) as answer:
        await answer.read()

def ignoring(send):
    try:
        send()
    except Exception:
        pass  # what an exporter does

ignoring(lambda: httpx.post(PLACE, content=b"spans", headers=HEADERS))
ignoring(lambda: httpx.post(PLACE, content=iter([b"sp", b"ans"]), headers=HEADERS))
ignoring(lambda: requests.post(PLACE, data=b"spans", headers=HEADERS))
ignoring(lambda: urllib.request.urlopen(urllib.request.Request(PLACE, b"spans", HEADERS)))
ignoring(lambda: asyncio.run(main()))
show("answer", lambda: requests.get(URL + "/plain").json())
"""
)


def test_exports_are_answered_without_the_network_and_counted(tmp_path: Path) -> None:
    with serving() as server:
        recorded = record(tmp_path, EXPORTING, server.url)
    replayed = same(recorded)
    blocked = [one for one in replayed.report["blocked"] if one["what"] == "telemetry"]
    assert len(blocked) == 6, "one for each export"
    assert all(one["detail"].endswith("/v1/traces") for one in blocked)
