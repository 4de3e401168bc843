"""http.client and what stands on it, answered from the tape."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.capture.clients.raw_server import serving
from tests.replay.clients.replaying import SHOWN, record, same

PROGRAMS = {
    "http.client": """
        import http.client, urllib.parse
        place = urllib.parse.urlsplit(URL)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=1)
        def ask(path, method="GET", **more):
            try:
                connection.request(method, path, **more)
                answer = connection.getresponse()
                return answer.version, answer.status, answer.reason, answer.getheaders(), answer.read()[:400]
            except BaseException:
                connection.close()
                raise
        for path in PATHS + ["/hold", "/hold-head"]:
            show(path, lambda: ask(path))
        show("head", lambda: ask("/plain", "HEAD"))
        show("post", lambda: ask("/echo", "POST", body=b"x" * 70000))
        show("made", lambda: ask("/echo", "POST", body=(piece for piece in [b"a", b"bc"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}))
        show("refused", lambda: http.client.HTTPConnection("127.0.0.1", 9).request("GET", "/"))
        show("unknown", lambda: http.client.HTTPConnection("no.such.host.invalid", 9).request("GET", "/"))
        show("insecure", lambda: http.client.HTTPSConnection(place.hostname, place.port).request("GET", "/x"))
        """,
    "urllib": """
        import urllib.request
        def ask(path, **more):
            with urllib.request.urlopen(urllib.request.Request(URL + path, **more), timeout=1) as answer:
                return answer.status, answer.reason, answer.url, answer.headers.items(), answer.read()[:400]
        for path in PATHS + ["/hold", "/hold-head"]:
            show(path, lambda: ask(path))
        show("post", lambda: ask("/echo", data=b"{}", method="PUT"))
        show("refused", lambda: urllib.request.urlopen("http://127.0.0.1:9/"))
        """,
    "urllib3": """
        import urllib3, io
        pool = urllib3.PoolManager(timeout=1, retries=urllib3.Retry(1, status_forcelist=[503], backoff_factor=0.01))
        def ask(path, method="GET", **more):
            answer = pool.request(method, URL + path, **more)
            return answer.version, answer.status, answer.reason, answer.headers.items(), answer.data[:400]
        def stream(path, **more):
            answer = pool.request("GET", URL + path, preload_content=False, **more)
            try:
                return list(answer.stream(7)), answer.tell()
            finally:
                answer.release_conn()
        for path in PATHS + ["/flaky", "/hold", "/hold-head"]:
            show(path, lambda: ask(path))
            show(path, lambda: stream(path))
        show("raw", lambda: stream("/gzip", decode_content=False))
        show("post", lambda: ask("/echo", "POST", body=b"a" * 100000))
        show("fields", lambda: ask("/echo", "POST", fields={"file": ("name", b"content")}, multipart_boundary="x"))
        show("file", lambda: ask("/echo", "POST", body=io.BytesIO(b"from a file")))
        show("chunked", lambda: ask("/echo", "POST", body=[b"a", b"bc"], chunked=True))
        show("refused", lambda: urllib3.PoolManager(retries=False).request("GET", "http://127.0.0.1:9/"))
        show("refused", lambda: pool.request("GET", "http://127.0.0.1:9/"))
        show("unknown", lambda: pool.request("GET", "http://no.such.host.invalid/"))
        show("insecure", lambda: pool.request("GET", URL.replace("http:", "https:") + "/x"))
        show("proxy", lambda: urllib3.ProxyManager("http://127.0.0.1:9", retries=False).request("GET", "http://a.invalid/"))
        """,
    "requests": """
        import requests
        session = requests.Session()
        def ask(path, method="GET", **more):
            answer = session.request(method, URL + path, timeout=1, **more)
            return answer.status_code, answer.reason, answer.url, answer.headers, answer.content[:400], len(answer.history)
        def stream(path, size):
            with session.get(URL + path, stream=True, timeout=1) as answer:
                return list(answer.iter_content(size)), answer.raw.tell()
        def failing(path):
            session.get(URL + path).raise_for_status()
        def left(path):
            with session.get(URL + path, stream=True) as answer:
                return next(answer.iter_content(3))
        for path in PATHS + ["/hold", "/hold-head"]:
            show(path, lambda: ask(path))
            show(path, lambda: stream(path, None))
            show(path, lambda: stream(path, 4))
        show("status", lambda: failing("/failed"))
        show("left", lambda: left("/large"))
        show("left", lambda: left("/hold"))
        show("lines", lambda: list(session.get(URL + "/stream", stream=True).iter_lines()))
        show("json", lambda: session.post(URL + "/echo", json={"a": 1}).json())
        show("made", lambda: ask("/echo", "POST", data=(piece for piece in [b"a", b"b" * 10])))
        show("files", lambda: session.post(URL + "/echo", files={"f": b"abc"}).status_code)
        show("refused", lambda: requests.get("http://127.0.0.1:9/"))
        show("proxy", lambda: requests.get("http://a.invalid/", proxies={"http": "http://127.0.0.1:9"}))
        show("insecure", lambda: requests.get(URL.replace("http:", "https:") + "/x"))
        """,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.hard] if name == "urllib3" else []) for name in PROGRAMS],  # as in requests
)
def test_whatever_comes_over_the_wire_comes_again(tmp_path: Path, name: str) -> None:
    with serving() as server:
        recorded = record(tmp_path, SHOWN + textwrap.dedent(PROGRAMS[name]), server.url)
    same(recorded)
