"""Compare Playhead's server with Phoenix, MLflow and a floor, in one run on one machine, and print one table.

    python -m bench.peers.run [--only PART,…] [--without NAME,…] [--quick] [--rounds N] [--phoenix-runs N]

Ratios are taken within a round, in which every server had its turn: absolute numbers move with the machine. Progress
goes to stderr. It exits with 1 if a goal is missed, with 2 if something could not be measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from http.client import HTTPException
from statistics import median

from bench.peers import measure
from bench.peers.environments import environments
from bench.peers.load import SPANS_OF_A_TRACE, Texts
from bench.peers.measure import Asking, Idle, Ingested, say
from bench.peers.process import ServerFailed
from bench.peers.report import Line, at_least, at_most, ratio, within
from bench.peers.servers import SERVERS, Asked, Playhead
from tests.matrix.environments import Unavailable, Unresolvable

PEERS = ("phoenix", "mlflow")
_QUESTIONS: dict[Asked, str] = {"list": "list newest 100", "errors": "list failed", "text": "search one word"}
_MB = 1_000_000


@dataclass(frozen=True)
class Size:
    """How much is sent and asked."""

    rounds: int
    traces: int  # to Playhead and the floor
    traces_of_peers: int
    killed_traces: int
    runs_of_phoenix: int  # it is asked about; it takes them at two hundred spans a second
    runs_of_mlflow: int  # its search takes eight milliseconds for each
    runs: tuple[int, int]  # of Playhead alone; the second of two spans each
    questions: int  # rounds

    def runs_of(self, name: str) -> int:
        """Return how many runs a peer is asked about."""
        return self.runs_of_phoenix if name == "phoenix" else self.runs_of_mlflow


FULL = Size(3, 1000, 1000, 200, 3000, 500, (10_000, 100_000), 15)
QUICK = Size(1, 200, 50, 50, 300, 100, (1_000, 10_000), 5)


class Comparison:
    """One run of the whole, with what the parts have measured so far."""

    def __init__(self, names: list[str], size: Size) -> None:
        self.names = names
        self.size = size
        self._idle: dict[str, list[Idle]] = {}

    def start(self) -> Iterator[Line]:
        """Measure start-up with a new folder, and memory at rest."""
        for number in range(self.size.rounds):
            for name in self.names:
                self._measure_idle(name, f"start-up, round {number + 1}")
        for name in self.names:
            found = self._idle[name][-self.size.rounds :]
            seconds, memory = median(one.start_s for one in found), median(one.memory for one in found) / _MB
            label = SERVERS[name].label
            if name != "playhead":
                yield Line(f"start-up, {label}", f"{seconds:.2f} s")
                yield Line(f"memory at rest, {label}", f"{memory:,.0f} MB")
                continue
            yield within(f"start-up, {label}", seconds, "s", 1)
            yield within(f"memory at rest, {label}", memory, "MB", 80)

    def ingest(self) -> Iterator[Line]:
        """Measure how many spans a second can be taken, stored and shown, and what they take on disk."""
        found: dict[str, list[Ingested]] = {name: [] for name in self.names}
        for number in range(self.size.rounds):
            for name in self.names:
                spans = self._traces(name) * SPANS_OF_A_TRACE
                say(f"ingest, round {number + 1}: {SERVERS[name].label}, {spans:,} spans")
                found[name].append(self._ingest(name, number))
        for name, results in found.items():
            label = f"{SERVERS[name].label}, {results[0].spans:,} spans"
            yield Line(f"ingest, {label}", f"{median(one.rate for one in results):,.0f} spans/s")
            yield Line(
                "  with the first requests", f"{median(one.rate_from_the_start for one in results):,.0f} spans/s"
            )
            warm_up = f"{measure.WARM_UP_REQUESTS} small requests"
            yield Line(f"  before it, {warm_up}", f"{median(one.warm_up_s for one in results):,.2f} s")
            yield Line("  requests answered", f"{median(one.ack_rate for one in results):,.1f} /s")
            quantiles = [median(one.answer_ms(share) for one in results) for share in (0.5, 0.99)]
            yield Line("  until answered, p50 / p99", " / ".join(f"{ms:,.1f}" for ms in quantiles) + " ms")
            if refused := median(one.refused for one in results):
                yield Line("  refused for the moment, and sent again", f"{refused:,.0f} times")
            memory = median(one.memory for one in results) / _MB
            yield Line("  memory after it", f"{memory:,.0f} MB")
            yield Line("  disk", f"{median(one.disk_per_span for one in results):,.0f} B/span")
        yield from self._ingest_goals(found)

    def disk(self) -> Iterator[Line]:
        """Measure what spans take on disk whose texts cannot be compressed and are never said twice."""
        per_span: dict[str, float] = {}
        for name in self.names:
            say(f"disk, incompressible texts: {SERVERS[name].label}")
            per_span[name] = self._ingest(name, 100, "incompressible").disk_per_span
            yield Line(f"disk, incompressible, {SERVERS[name].label}", f"{per_span[name]:,.0f} B/span")
        ours = per_span.get("playhead")
        for name in PEERS:
            if ours is not None and name in per_span:
                yield Line("  Playhead's", "", f"{ours / per_span[name]:.2f} × {SERVERS[name].label}")

    def kill(self) -> Iterator[Line]:
        """Kill each server right after it answered the last request, and count what it still has."""
        for name in self.names:
            say(f"kill -9: {SERVERS[name].label}")
            with SERVERS[name]() as server:
                sent, left = measure.survivors(server, self.size.killed_traces, seed=40)
            named = f"spans left after kill -9, {SERVERS[name].label}"
            goal = (f"all {sent:,}", left == sent) if name == "playhead" else ("", None)
            yield Line(named, f"{left:,} of {sent:,}", "", *goal)

    def queries(self) -> Iterator[Line]:
        """Measure what it takes to list, filter and search."""
        with ExitStack() as stack:
            asking: dict[tuple[str, int], Asking] = {}
            for name, runs in self._asked():
                is_brief = runs == self.size.runs[1]
                say(f"queries: giving {SERVERS[name].label} {runs:,} runs")
                server = stack.enter_context(SERVERS[name]())
                asking[name, runs] = measure.fill(server, runs, seed=60, is_brief=is_brief)
            say(f"queries: {self.size.questions} rounds")
            measure.ask_in_turns(list(asking.values()), self.size.questions)
        for one in asking.values():
            for asked, text in _QUESTIONS.items():
                yield self._answered(one, asked, f"{text}, {one.label}")
        yield from self._query_goals(asking)

    def _answered(self, one: Asking, asked: Asked, name: str) -> Line:
        ms = one.median_ms(asked)
        if one.server.name == "playhead" and asked != "text" and one.runs == self.size.runs[0]:
            return within(name, ms, "ms", 5)
        return Line(name, f"{ms:,.2f} ms")

    def _query_goals(self, asking: dict[tuple[str, int], Asking]) -> Iterator[Line]:
        if "playhead" not in self.names:
            return
        few, many = (asking["playhead", runs] for runs in self.size.runs)
        for asked in ("list", "errors"):
            grown = ratio(many.ms[asked], few.ms[asked])
            name = f"{_QUESTIONS[asked]}, {many.runs:,} runs"
            yield at_most(name, "", grown, f"that of {few.runs:,}", 1.5)
        for peer in PEERS:
            if peer not in self.names:
                continue
            runs = self.size.runs_of(peer)
            theirs, same = asking[peer, runs], asking["playhead", runs]
            for asked, text in _QUESTIONS.items():
                times = ratio(theirs.ms[asked], same.ms[asked])
                name, of = f"{text}, {same.runs:,} runs each", f"as fast as {theirs.server.label}"
                if (peer, asked) == ("phoenix", "text"):
                    yield at_least(name, "", times, of, 50)
                else:
                    yield Line(name, "", f"{times:.1f} × {of}")

    def _ingest_goals(self, found: dict[str, list[Ingested]]) -> Iterator[Line]:
        rates = {name: [one.rate for one in results] for name, results in found.items()}
        from_the_start = {name: [one.rate_from_the_start for one in results] for name, results in found.items()}
        disk = {name: [one.disk_per_span for one in results] for name, results in found.items()}
        ours = rates.get("playhead") or rates.get("floor")
        us = "playhead" if "playhead" in rates else "floor"
        if ours is None:
            return
        for peer, goal, aim in (("phoenix", 50, 100), ("mlflow", 15, 30)):
            if peer not in rates:
                continue
            label, name = SERVERS[peer].label, f"ingest, {SERVERS[us].label}"
            times, all_times = ratio(ours, rates[peer]), ratio(from_the_start[us], from_the_start[peer])
            # The goals are ratios to what was measured from the start of each server, with all that comes first.
            if us == "playhead":
                yield at_least(f"{name}, from the start", "", all_times, label, goal, aim)
                yield Line(f"{name}, after the first requests", "", f"{times:.1f} × {label}")
            else:
                yield Line(name, "", f"{times:.1f} × {label}")
        if us == "playhead" and "floor" in rates:
            yield Line("ingest, Playhead", "", f"{ratio(ours, rates['floor']):.2f} × the floor")
        if us == "playhead" and "phoenix" in disk:
            yield at_most("disk, Playhead", "", ratio(disk[us], disk["phoenix"]), "Phoenix", 0.5)

    def _ingest(self, name: str, seed: int, texts: Texts = "prose") -> Ingested:
        empty = self._disk_of_nothing(name)
        with SERVERS[name]() as server:
            return measure.ingest(server, self._traces(name), texts, seed, empty)

    def _disk_of_nothing(self, name: str) -> int:
        if name not in self._idle:
            self._measure_idle(name, "an empty folder")
        return self._idle[name][-1].disk

    def _measure_idle(self, name: str, why: str) -> None:
        say(f"{why}: {SERVERS[name].label}")
        with SERVERS[name]() as server:
            self._idle.setdefault(name, []).append(measure.idle(server))

    def _traces(self, name: str) -> int:
        return self.size.traces_of_peers if name in PEERS else self.size.traces

    def _asked(self) -> Iterator[tuple[str, int]]:
        for name in self.names:
            if not SERVERS[name].answers_questions:
                continue
            if name != "playhead":
                yield name, self.size.runs_of(name)
                continue
            # Each peer is compared with Playhead of the same size.
            for runs in sorted({*self.size.runs, *(self.size.runs_of(peer) for peer in PEERS if peer in self.names)}):
                yield name, runs


PARTS: dict[str, Callable[[Comparison], Iterator[Line]]] = {
    "start": Comparison.start,
    "ingest": Comparison.ingest,
    "disk": Comparison.disk,
    "queries": Comparison.queries,
    "kill": Comparison.kill,
}


def main(arguments: list[str]) -> int:
    """Run the parts that were asked for and print their lines as they come."""
    args = _parser().parse_args(arguments)
    names = [name for name in SERVERS if name not in args.without]
    size = QUICK if args.quick else FULL
    if args.rounds:
        size = replace(size, rounds=args.rounds)
    if args.phoenix_runs:
        size = replace(size, runs_of_phoenix=args.phoenix_runs)
    if not (_environments_are_there(names) and _playhead_serves(names)):
        return 2
    comparison = Comparison(names, size)
    missed = broken = False
    for part in args.only or PARTS:
        try:
            for line in PARTS[part](comparison):
                missed |= line.ok is False
                print(line, flush=True)
        except (ServerFailed, OSError, HTTPException) as error:
            say(f"{part} could not be measured: {type(error).__name__}: {error}")
            broken = True
    return 2 if broken else int(missed)


def _environments_are_there(names: list[str]) -> bool:
    known = environments()
    for name in names:
        if name not in known:
            continue
        try:
            known[name].make()
            print(f"      {SERVERS[name].label}: {known[name].pins}", flush=True)
        except (Unavailable, Unresolvable) as error:
            say(f"{error}\n`scripts/bench-environments` makes what is needed; --without {name} leaves it out")
            return False
    return True


def _playhead_serves(names: list[str]) -> bool:
    if "playhead" not in names or Playhead.can_serve():
        return True
    say("this checkout has no `playhead serve`; --without playhead measures the others")
    return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.peers.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=_some_of(list(PARTS)), metavar="PART,…", help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--without", type=_some_of(list(SERVERS)), default=[], metavar="NAME,…", help=f"of {', '.join(SERVERS)}"
    )
    parser.add_argument("--quick", action="store_true", help="a fraction of it: to see that it works, not to judge")
    rounds = f"how often start-up and ingest are measured ({FULL.rounds})"
    parser.add_argument("--rounds", type=int, metavar="N", help=rounds)
    phoenix = f"how many runs Phoenix is asked about ({FULL.runs_of_phoenix:,})"
    parser.add_argument("--phoenix-runs", type=int, metavar="N", help=phoenix)
    return parser


def _some_of(known: list[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
