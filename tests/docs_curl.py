"""Ask over HTTP as curl does, as far as the pages use it, on a machine that has no curl."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request
from pathlib import Path


def main() -> int:
    """Send one request, and print what is answered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-N", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", "--data-binary", dest="data")
    parser.add_argument("--json", dest="json")
    parser.add_argument("-o", dest="file")
    told = parser.parse_args()
    body = told.data if told.json is None else told.json
    data = None if body is None else Path(body[1:]).read_bytes() if body.startswith("@") else body.encode()
    url = told.url if "://" in told.url else f"http://{told.url}"
    request = urllib.request.Request(url, data, method=told.method)
    if told.json is not None:
        request.add_header("content-type", "application/json")
    for header in told.headers:
        name, _, value = header.partition(":")
        request.add_header(name.strip(), value.strip())
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as refused:
        answer = refused
    with Path(told.file).open("wb") if told.file else sys.stdout.buffer as out:
        if told.i:
            out.write(f"HTTP/1.1 {answer.status} {answer.reason}\r\n".encode())
            out.write("".join(f"{name}: {value}\r\n" for name, value in answer.headers.items()).encode() + b"\r\n")
        while piece := answer.read1(65536):
            out.write(piece)
            out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
