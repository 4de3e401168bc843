"""A provider that answers at once, in a process of its own: canned bytes, no parsing beyond the length of the body."""

from __future__ import annotations

import json
import socket
import sys
import threading

CHUNKS = 200


def completion() -> bytes:
    """Return an answer as the provider sends it: about 800 bytes of JSON."""
    message = {"role": "assistant", "content": "The answer is forty-two. " * 12, "refusal": None, "annotations": []}
    return json.dumps(
        {
            "id": "chatcmpl-bench", "object": "chat.completion", "created": 1700000000, "model": "gpt-5",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 60, "total_tokens": 80},
        },
        separators=(",", ":"),
    ).encode()  # fmt: skip


def events() -> list[bytes]:
    """Return the events of a streamed answer."""
    out = []
    for number in range(CHUNKS - 1):
        delta = {"content": f" word{number}"} if number < CHUNKS - 2 else {}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None if delta else "stop"}
        frame = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1700000000, "model": "gpt-5"}
        out.append(b"data: " + json.dumps(frame | {"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n")
    return [*out, b"data: [DONE]\n\n"]


def serve() -> None:
    """Print the port, and answer until stdin closes."""
    body = completion()
    whole = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_1\r\ncontent-length: %d\r\n\r\n"
        % len(body)
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = [b"%x\r\n%s\r\n" % (len(event), event) for event in events()]
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_accept, args=(listener, whole + body, head, pieces), daemon=True).start()
    sys.stdin.read()


def _accept(listener: socket.socket, whole: bytes, head: bytes, pieces: list[bytes]) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer, args=(connection, whole, head, pieces), daemon=True).start()


def _answer(connection: socket.socket, whole: bytes, head: bytes, pieces: list[bytes]) -> None:
    reader = connection.makefile("rb", buffering=1 << 20)
    while reader.readline():
        length = 0
        while (line := reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = reader.read(length)
        if b'"stream":true' in body[-200:] or b'"stream":true' in body[:200]:
            connection.sendall(head)
            for piece in pieces:
                connection.sendall(piece)  # each a segment of its own, so that the client sees single chunks
            connection.sendall(b"0\r\n\r\n")
        else:
            connection.sendall(whole)


if __name__ == "__main__":
    serve()
