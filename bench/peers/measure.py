"""Measure servers one at a time: start-up, memory, ingest, disk, what a kill leaves; and questions to all in turns."""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import get_args

from bench.peers.load import SPANS_OF_A_REQUEST, Load, Request, Texts
from bench.peers.process import ServerFailed
from bench.peers.servers import LISTED, Asked, Server

WARM_UP_REQUESTS = 16
REST_S = 1.5  # before the memory of a server that does nothing is read
_STORED_S_MAX = 180  # without one more span stored
_POLL_S = 0.02
_WARM_UP_SEED = 255


@dataclass
class Idle:
    """What a server takes that was given nothing."""

    start_s: float
    memory: int
    disk: int


@dataclass
class Ingested:
    """What came of sending spans and waiting until all could be asked for."""

    spans: int
    warm_up_s: float
    warm_up_spans: int
    answers_s: list[float]
    acked_s: float
    stored_s: float
    refused: int
    memory: int
    disk_per_span: float = 0.0

    @property
    def rate(self) -> float:
        """Return spans per second, until the last could be asked for."""
        return self.spans / self.stored_s

    @property
    def rate_from_the_start(self) -> float:
        """Return the same with the first requests, which MLflow's workers take seconds for."""
        return (self.spans + self.warm_up_spans) / (self.stored_s + self.warm_up_s)

    @property
    def ack_rate(self) -> float:
        """Return requests per second, until the last was answered."""
        return len(self.answers_s) / self.acked_s

    def answer_ms(self, share: float) -> float:
        """Return a quantile of the time until a request was answered."""
        return sorted(self.answers_s)[int(share * (len(self.answers_s) - 1))] * 1000


@dataclass
class Asking:
    """A running server with a number of runs in it, and how long it took to answer what it was asked."""

    server: Server
    runs: int
    load: Load
    ms: dict[Asked, list[float]] = field(default_factory=lambda: {asked: [] for asked in get_args(Asked)})

    @property
    def label(self) -> str:
        """Return its name with its size."""
        return f"{self.server.label}, {self.runs:,} {'small runs' if self.load.is_brief else 'runs'}"

    def median_ms(self, asked: Asked) -> float:
        """Return the median over the rounds."""
        return statistics.median(self.ms[asked])


def idle(server: Server) -> Idle:
    """Start a server with a new folder, let it rest, and stop it."""
    start_s = server.start()
    time.sleep(REST_S)
    memory = server.memory_bytes()
    return Idle(start_s, memory, server.stop())


def ingest(server: Server, traces: int, texts: Texts, seed: int, disk_of_nothing: int) -> Ingested:
    """Send so many traces over one connection; the clock runs until every span can be asked for."""
    requests = list(Load(seed, texts).requests(traces))
    server.start()
    first = list(Load(_WARM_UP_SEED).requests(WARM_UP_REQUESTS + 1, 10))
    warm_up_s = _warm_up(server, first[1:])
    before = sum(request.spans for request in first)
    spans = sum(request.spans for request in requests)
    with closing(server.client()) as client:
        client.send(first[0], server.headers)  # whichever worker this connection has come to
        wait_until_stored(server, before)
        start = time.perf_counter()
        answers = [client.send(request, server.headers) for request in requests]
        acked_s = time.perf_counter() - start
        stored_s = wait_until_stored(server, before + spans) - start
    refused, memory = client.refused, server.memory_bytes()
    result = Ingested(spans, warm_up_s, before, answers, acked_s, stored_s, refused, memory)
    server.settle()
    result.disk_per_span = (server.stop() - disk_of_nothing) / (before + spans)
    return result


def survivors(server: Server, traces: int, seed: int) -> tuple[int, int]:
    """Send traces, kill the server as soon as the last is answered; return how many spans it took and still has."""
    requests = list(Load(seed).requests(traces))
    server.start()
    with closing(server.client()) as client:
        for request in requests:
            client.send(request, server.headers)
        server.kill()
    return sum(request.spans for request in requests), server.spans_after_kill()


def fill(server: Server, runs: int, seed: int, *, is_brief: bool) -> Asking:
    """Start a server and give it so many runs."""
    load = Load(seed, is_brief=is_brief)
    server.start()
    with closing(server.client()) as client:
        # Many small runs to a request: their number is what matters, not how they came.
        for request in load.requests(runs, SPANS_OF_A_REQUEST * (10 if is_brief else 1)):
            client.send(request, server.headers)
    wait_until_stored(server, runs * load.spans_of_a_trace)
    return Asking(server, runs, load)


def ask_in_turns(all_asking: Sequence[Asking], rounds: int) -> None:
    """Ask every server every question, one after the other, so many times; each search is for another word."""
    chance = random.Random(3)
    clients = [asking.server.client() for asking in all_asking]
    try:
        for number in range(rounds + 1):
            for asking, client in zip(all_asking, clients, strict=True):
                for asked in get_args(Asked):
                    word = asking.load.word(chance.randrange(asking.runs))
                    question = asking.server.question(asked, word)
                    took_s, answer = client.timed(question)
                    _check(asking, asked, asking.server.found(answer))
                    if number:  # the first round warms up
                        asking.ms[asked].append(took_s * 1000)
    finally:
        for client in clients:
            client.close()


def wait_until_stored(server: Server, spans: int) -> float:
    """Return when the count began that found so many spans."""
    # Its end would charge those who are asked page by page for the counting itself.
    seen, progress = -1, time.monotonic()
    while True:
        asked = time.perf_counter()
        if (found := server.spans()) >= spans:
            return asked
        took_s = time.perf_counter() - asked
        if found > seen:
            seen, progress = found, time.monotonic()
        elif time.monotonic() - progress > _STORED_S_MAX:
            raise ServerFailed(f"{server.label} shows {found} of {spans} spans\n{server.last_words()}")
        # Counting takes the processor that the server needs: never more than a tenth of the time.
        time.sleep(max(_POLL_S, 9 * took_s))


def say(text: str) -> None:
    """Tell the person who waits what is going on."""
    print(f"bench-peers: {text}", file=sys.stderr, flush=True)


def _warm_up(server: Server, requests: Sequence[Request]) -> float:
    """Send small requests over connections of their own, so that each worker has had one; return how long it took."""
    # MLflow's workers open the database at their first request, which takes each of them seconds.
    start = time.perf_counter()
    for request in requests:
        with closing(server.client()) as client:
            client.send(request, server.headers)
    return wait_until_stored(server, sum(request.spans for request in requests)) - start


def _check(asking: Asking, asked: Asked, found: int) -> None:
    """Refuse an answer that is fast because it is wrong."""
    failed = asking.runs // 20
    least, most = {"list": (min(LISTED, asking.runs),) * 2, "errors": (min(LISTED, failed),) * 2, "text": (1, 1)}[asked]
    if not least <= found <= most:
        raise ServerFailed(f"{asking.label}: {asked} found {found}, not {least}")
