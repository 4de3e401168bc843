"""Count what is asked, how it was answered and how long that took, for Prometheus."""

from __future__ import annotations

import threading
from collections import defaultdict

_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counters:
    """Add up since the server began. Threads share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, int], int] = defaultdict(int)
        self._seconds: dict[str, float] = defaultdict(float)
        self._within: dict[str, list[int]] = defaultdict(lambda: [0] * len(_BOUNDS_S))
        self._sums: dict[str, int] = defaultdict(int)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        with self._lock:
            self._answers[route, status] += 1
            self._seconds[route] += seconds
            within = self._within[route]
            for at, bound in enumerate(_BOUNDS_S):
                within[at] += seconds <= bound

    def add(self, name: str, amount: int) -> None:
        """Add to something else that is counted, such as the spans that were taken in."""
        with self._lock:
            self._sums[name] += amount

    def lines(self) -> list[str]:
        """Return all of it in the form that Prometheus reads."""
        with self._lock:
            out = [
                "# HELP playhead_requests_total Requests that were answered.",
                "# TYPE playhead_requests_total counter",
            ]
            for (route, status), number in sorted(self._answers.items()):
                out.append(f'playhead_requests_total{{route="{route}",status="{status}"}} {number}')
            name = "playhead_request_seconds"
            out += [f"# HELP {name} How long answers took.", f"# TYPE {name} histogram"]
            for route, within in sorted(self._within.items()):
                total = sum(number for (named, _), number in self._answers.items() if named == route)
                bounds = [*(f"{bound:g}" for bound in _BOUNDS_S), "+Inf"]
                for bound, number in zip(bounds, [*within, total], strict=True):
                    out.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {number}')
                out.append(f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                out.append(f'{name}_count{{route="{route}"}} {total}')
            for name, number in sorted(self._sums.items()):
                out += [f"# TYPE playhead_{name}_total counter", f"playhead_{name}_total {number}"]
            return out
